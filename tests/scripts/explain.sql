-- What EXPLAIN shows: fragments, operators, what bounds each state, and what a batch may cost.
CREATE STREAM s (ts TIMESTAMP, k TEXT, v INT, WATERMARK FOR ts AS ts - INTERVAL '5 seconds');
EXPLAIN SELECT window.start, k, count(*) AS n FROM s GROUP BY window(ts, '10 seconds', '5 seconds'), k;
EXPLAIN SELECT k, count(DISTINCT v) AS values, median(v) AS middle, approx_median(v) AS about FROM s GROUP BY k;
