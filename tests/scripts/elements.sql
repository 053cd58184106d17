-- Functions that need every value of a group: what is remembered of them, and when it is known again.
SET clock = 'manual';
SET partitions = 2;
CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT, WATERMARK FOR ts AS ts);
EXPLAIN SELECT window.start, k, array_agg(v) AS vs, array_agg(v ORDER BY v DESC) AS down, median(v) AS m, array_agg(DISTINCT k) AS ks, string_agg(k, ',') AS text, nth_value(v, 2) AS second, count(DISTINCT v) AS n FROM s GROUP BY window(ts, '1 minute'), k;
EXPLAIN SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v) AS m, percentile_cont(0.9) WITHIN GROUP (ORDER BY v) AS p, var_pop(DISTINCT v) AS spread FROM s;
START QUERY q INTO BLACKHOLE AS SELECT k, array_agg(v) AS vs, sum(CAST(v AS INT)) AS total FROM s GROUP BY k OUTPUT MODE UPDATE TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO s VALUES (NULL, 'a', 1);
STEP QUERY q;
STOP QUERY q;
-- An alias and another number of partitions change nothing.
SET partitions = 3;
START QUERY q INTO BLACKHOLE AS SELECT x.k, sum(CAST(x.v AS INT)) AS t, array_agg(x.v) AS all FROM s AS x GROUP BY x.k OUTPUT MODE UPDATE TRIGGER MANUAL CHECKPOINT '$TMP/cp';
STOP QUERY q;
-- What is collected is part of what is remembered.
START QUERY q INTO BLACKHOLE AS SELECT k, array_agg(v + 1) AS vs, sum(CAST(v AS INT)) AS total FROM s GROUP BY k OUTPUT MODE UPDATE TRIGGER MANUAL
CHECKPOINT '$TMP/cp';
