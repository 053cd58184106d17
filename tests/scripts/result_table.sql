-- INTO TABLE: a result that can be queried, and that is there again after a restart.
SET clock = 'manual';
CREATE STREAM s (k STRING, v BIGINT);
START QUERY q INTO TABLE totals AS SELECT k, sum(v) AS total FROM s GROUP BY k TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO s VALUES ('a', 1), ('b', 5), ('a', 2);
STEP QUERY q;
SELECT * FROM totals;
STOP QUERY q;
START QUERY q INTO TABLE totals AS SELECT k, sum(v) AS total FROM s GROUP BY k TRIGGER MANUAL CHECKPOINT '$TMP/cp';
SELECT * FROM totals;
INSERT INTO s VALUES ('c', 1), ('b', -5);
STEP QUERY q;
SELECT * FROM totals;
STOP QUERY q;
