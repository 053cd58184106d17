-- G5: the progress document's event times; its watermark is the one that the batch used.
SET clock = 'manual';
CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '10 seconds');
START QUERY q AS SELECT window.start, count(*) AS n FROM s GROUP BY window(ts, '5 seconds') OUTPUT MODE APPEND TRIGGER MANUAL;
INSERT INTO s SELECT to_timestamp_seconds(15);
STEP QUERY q;
INSERT INTO s SELECT to_timestamp_seconds(x) FROM (VALUES (10), (12), (14)) AS t (x);
STEP QUERY q;
INSERT INTO s SELECT to_timestamp_seconds(25);
STEP QUERY q;
STEP QUERY q;
