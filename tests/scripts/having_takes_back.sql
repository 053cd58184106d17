-- HAVING in UPDATE mode: a group that ceases to fulfil it is sent as a delete, one that changed as old and new row.
SET clock = 'manual';
CREATE STREAM s (k STRING, v BIGINT);
START QUERY q AS SELECT k, sum(v) AS total FROM s GROUP BY k HAVING sum(v) > 10 OUTPUT MODE UPDATE TRIGGER MANUAL;
INSERT INTO s VALUES ('a', 11), ('b', 5);
STEP QUERY q;
INSERT INTO s VALUES ('a', 1), ('b', 7);
STEP QUERY q;
INSERT INTO s VALUES ('a', -5), ('b', 0);
STEP QUERY q;
