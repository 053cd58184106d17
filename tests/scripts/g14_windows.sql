-- G14: which windows hold a time. Size 10, slide 3; size 10 with offsets of 5 and −5; no time, no window.
CREATE STREAM s (ts TIMESTAMP);
INSERT INTO s SELECT to_timestamp_seconds(x) FROM (VALUES (27), (34), (56), (NULL)) AS t (x);
SELECT extract(epoch FROM ts)::BIGINT AS ts, extract(epoch FROM window.start)::BIGINT AS start FROM s GROUP BY window(ts, '10 seconds', '3 seconds'), ts ORDER BY 1, 2;
CREATE STREAM o (ts TIMESTAMP);
INSERT INTO o SELECT to_timestamp_seconds(x) FROM (VALUES (2), (-2)) AS t (x);
SELECT window, count(*) AS n FROM o GROUP BY window(ts, size => '10 seconds', offset => '5 seconds') ORDER BY window.start;
CREATE STREAM m (ts TIMESTAMP);
INSERT INTO m SELECT to_timestamp_seconds(x) FROM (VALUES (25), (30)) AS t (x);
SELECT window.start, window.end, count(*) AS n FROM m GROUP BY window(ts, '10 seconds', '10 seconds', '-5 seconds');
SELECT window_start, window_end, count(*) AS n FROM TUMBLE(m, ts, '10 seconds') GROUP BY window_start, window_end ORDER BY 1;
SELECT window_start, window_end, ts FROM HOP(m, ts, '5 seconds', '10 seconds') ORDER BY 1, 3;
