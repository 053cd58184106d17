-- A row too far ahead of the query's clock is processed and counted, and moves no watermark.
SET clock = 'manual';
CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts MAX FUTURE SKEW '1 hour');
START QUERY q AS SELECT window.start, count(*) AS n FROM s GROUP BY window(ts, '10 seconds') OUTPUT MODE UPDATE TRIGGER MANUAL;
-- The clock stands at 1970-01-01 00:00:00.
INSERT INTO s VALUES ('1970-01-01 00:00:05'), ('2071-01-01 00:00:00');
STEP QUERY q 10 BATCHES;
INSERT INTO s VALUES ('1970-01-01 00:00:06'), ('1970-01-01 00:59:59');
STEP QUERY q 10 BATCHES;
STOP QUERY q;
