-- Five queries that give out nothing, and the reason of each.
SET clock = 'manual';
CREATE STREAM clicks (ts TIMESTAMP, page STRING, WATERMARK FOR ts AS ts - INTERVAL '10 seconds');
CREATE STREAM views (ts TIMESTAMP, page STRING, WATERMARK FOR ts AS ts - INTERVAL '10 seconds');
CREATE STREAM plain (ts TIMESTAMP, page STRING);
INSERT INTO clicks VALUES ('2026-01-01 00:00:01', '/a'), ('2026-01-01 00:01:00', '/b');

-- 1. An input that has had no rows holds the watermark of both.
START QUERY both_inputs AS
    SELECT window.start, page, count(*) AS n FROM (SELECT * FROM clicks UNION ALL SELECT * FROM views)
    GROUP BY window(ts, '10 seconds'), page OUTPUT MODE APPEND TRIGGER MANUAL;
STEP QUERY both_inputs;
EXPLAIN WHY both_inputs;

-- 2. Its window is not over.
START QUERY still_open AS
    SELECT window.start, count(*) AS n FROM clicks GROUP BY window(ts, '1 hour') OUTPUT MODE APPEND TRIGGER MANUAL;
STEP QUERY still_open;
EXPLAIN WHY still_open;

-- 3. All rows that are asked for are late: others have moved the watermark past them.
START QUERY too_late AS
    SELECT window.start, count(*) AS n FROM clicks WHERE page = '/c'
    GROUP BY window(ts, '10 seconds') OUTPUT MODE APPEND TRIGGER MANUAL;
STEP QUERY too_late;
INSERT INTO clicks VALUES ('2026-01-01 00:01:01', '/a');
STEP QUERY too_late;
INSERT INTO clicks VALUES ('2026-01-01 00:00:02', '/c');
STEP QUERY too_late;
EXPLAIN WHY too_late;

-- 4. WHERE leaves nothing.
START QUERY nothing_left AS SELECT * FROM clicks WHERE page = '/z' TRIGGER MANUAL;
STEP QUERY nothing_left;
EXPLAIN WHY nothing_left;

-- 5. There was no input.
START QUERY no_rows AS SELECT * FROM plain TRIGGER MANUAL;
STEP QUERY no_rows EMPTY;
EXPLAIN WHY no_rows;
