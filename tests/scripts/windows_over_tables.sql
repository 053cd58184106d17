-- Windows mean the same over a table as over a stream; a row without a time is in none.
CREATE TABLE t AS SELECT to_timestamp_seconds(x)::TIMESTAMP AS ts FROM (VALUES (1), (7), (12), (NULL)) AS v (x);
SELECT window.start, window.end, count(*) AS n FROM t GROUP BY window(ts, '10 seconds', '5 seconds') ORDER BY 1;
SELECT window.start, count(*) AS n FROM t GROUP BY window(ts, '10 seconds') ORDER BY 1;
