-- G13: stop and start on the same checkpoint; what is late stays late.
SET clock = 'manual';
CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '10 seconds');
START QUERY q AS SELECT window.start, count(*) AS n FROM s GROUP BY window(ts, '5 seconds') OUTPUT MODE APPEND TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO s SELECT to_timestamp_seconds(x) FROM (VALUES (10), (11), (12), (13), (14), (15)) AS t (x);
STEP QUERY q 10 BATCHES;
INSERT INTO s SELECT to_timestamp_seconds(25);
STEP QUERY q 10 BATCHES;
STOP QUERY q;
START QUERY q AS SELECT window.start, count(*) AS n FROM s GROUP BY window(ts, '5 seconds') OUTPUT MODE APPEND TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO s SELECT to_timestamp_seconds(x) FROM (VALUES (10), (27), (30)) AS t (x);
STEP QUERY q 10 BATCHES;
STOP QUERY q;
START QUERY q AS SELECT window.start, count(*) AS n FROM s GROUP BY window(ts, '5 seconds') OUTPUT MODE APPEND TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO s SELECT to_timestamp_seconds(17);
STEP QUERY q 10 BATCHES;
INSERT INTO s SELECT to_timestamp_seconds(40);
STEP QUERY q 10 BATCHES;
STOP QUERY q;
