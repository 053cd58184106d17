-- An input that has said nothing for its IDLE AFTER, on the query's clock, holds the watermark back no longer; its rows count again when they come.
SET clock = 'manual';
CREATE STREAM a (ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE STREAM b (ts TIMESTAMP, WATERMARK FOR ts AS ts IDLE AFTER '1 minute');
START QUERY q AS SELECT window.start, count(*) AS n FROM (SELECT ts FROM a UNION ALL SELECT ts FROM b) u GROUP BY window(ts, '10 seconds') OUTPUT MODE APPEND TRIGGER MANUAL;
INSERT INTO a VALUES ('2024-01-01 00:00:05'), ('2024-01-01 00:00:25');
STEP QUERY q 10 BATCHES;
-- Nothing is closed: b could still bring rows of any time.
ADVANCE CLOCK BY '59 seconds';
STEP QUERY q 10 BATCHES;
-- A minute has passed: b is left out, and a's 00:00:25 closes the first window.
ADVANCE CLOCK BY '1 second';
STEP QUERY q 10 BATCHES;
-- b is back with a row that is not late by the query's watermark; its 00:00:26 is the minimum now.
INSERT INTO b VALUES ('2024-01-01 00:00:26');
INSERT INTO a VALUES ('2024-01-01 00:00:45');
STEP QUERY q 10 BATCHES;
STOP QUERY q;
