-- Values that count once: remembered one by one in a state of their own, and forgotten with their group.
SET clock = 'manual';
SET partitions = 3;
CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT, f DOUBLE, WATERMARK FOR ts AS ts);
EXPLAIN SELECT window.start, k, count(DISTINCT v) AS n, sum(DISTINCT v) AS total, count(DISTINCT f) FILTER (WHERE v > 1) AS kinds, min(DISTINCT v) AS least FROM s GROUP BY window(ts, '1 minute'), k;
START QUERY q AS SELECT window.start, k, count(DISTINCT v) AS n, sum(DISTINCT v) AS total, count(DISTINCT f) FILTER (WHERE v > 1) AS kinds, min(DISTINCT v) AS least FROM s GROUP BY window(ts, '1 minute'), k OUTPUT MODE APPEND TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO s VALUES ('2024-01-01 00:00:10', 'a', 1, 0.0), ('2024-01-01 00:00:11', 'a', 2, -0.0), ('2024-01-01 00:00:12', 'b', NULL, 1.0), ('2024-01-01 00:01:10', 'a', 2, 1.0);
STEP QUERY q;
STOP QUERY q;
-- Known again in another number of partitions.
SET partitions = 2;
START QUERY q AS SELECT window.start, k, count(DISTINCT v) AS n, sum(DISTINCT v) AS total, count(DISTINCT f) FILTER (WHERE v > 1) AS kinds, min(DISTINCT v) AS least FROM s GROUP BY window(ts, '1 minute'), k OUTPUT MODE APPEND TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO s VALUES ('2024-01-01 00:01:20', 'a', 2, 0.0), ('2024-01-01 00:01:30', 'a', 5, 0.0), ('2024-01-01 00:01:40', 'a', 5, 'NaN'), ('2024-01-01 00:02:30', 'c', 7, 3.0);
STEP QUERY q 10 BATCHES;
STOP QUERY q;
-- All groups and values are forgotten but those of the newest window.
START QUERY q AS SELECT window.start, k, count(DISTINCT v) AS n, sum(DISTINCT v) AS total, count(DISTINCT f) FILTER (WHERE v > 1) AS kinds, min(DISTINCT v) AS least FROM s GROUP BY window(ts, '1 minute'), k OUTPUT MODE APPEND TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO s VALUES ('2024-01-01 00:02:40', 'c', 7, NULL), ('2024-01-01 01:00:00', 'd', NULL, NULL);
STEP QUERY q 10 BATCHES;
STOP QUERY q;
-- What is counted once is part of what is remembered.
START QUERY q AS SELECT window.start, k, count(DISTINCT v) AS n, sum(DISTINCT v) AS total, count(DISTINCT f) FILTER (WHERE v > 2) AS kinds, min(DISTINCT v) AS least FROM s GROUP BY window(ts, '1 minute'), k OUTPUT MODE APPEND TRIGGER MANUAL
CHECKPOINT '$TMP/cp';
