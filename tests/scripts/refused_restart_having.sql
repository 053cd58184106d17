-- A result table holds rows that HAVING let through; under another HAVING they could not be taken back.
SET clock = 'manual';
CREATE STREAM s (k STRING, v BIGINT);
START QUERY q INTO TABLE t AS SELECT k, sum(v) AS total FROM s GROUP BY k HAVING sum(v) > 1 TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO s VALUES ('a', 5);
STEP QUERY q;
STOP QUERY q;
-- Another alias of the stream, and another WHERE, make the same rows of what is remembered.
START QUERY q INTO TABLE t AS SELECT g.k, sum(g.v) AS total FROM s g WHERE v > 0 GROUP BY g.k HAVING sum(g.v) > 1 TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO s VALUES ('a', 1);
STEP QUERY q;
SELECT * FROM t;
STOP QUERY q;
START QUERY q INTO TABLE t AS
    SELECT k, sum(v) AS total FROM s GROUP BY k HAVING sum(v) > 5
    TRIGGER MANUAL CHECKPOINT '$TMP/cp';
