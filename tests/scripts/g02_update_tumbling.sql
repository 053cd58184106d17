-- G2: the same in UPDATE mode: changed windows are sent at once, closed ones are forgotten in silence.
SET clock = 'manual';
CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '10 seconds');
START QUERY q AS SELECT window.start, count(*) AS n FROM s GROUP BY window(ts, '5 seconds') OUTPUT MODE UPDATE TRIGGER MANUAL;
INSERT INTO s SELECT to_timestamp_seconds(x) FROM (VALUES (10), (11), (12), (13), (14), (15)) AS t (x);
STEP QUERY q 10 BATCHES;
INSERT INTO s SELECT to_timestamp_seconds(25);
STEP QUERY q 10 BATCHES;
INSERT INTO s SELECT to_timestamp_seconds(x) FROM (VALUES (10), (25)) AS t (x);
STEP QUERY q 10 BATCHES;
INSERT INTO s SELECT to_timestamp_seconds(10);
STEP QUERY q 10 BATCHES;
