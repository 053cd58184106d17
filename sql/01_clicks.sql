-- A first stream: clicks, counted by page and ten seconds, with late rows dropped.
-- The clock is ours, so that this lesson gives the same output every time.
SET clock = 'manual';
CREATE STREAM clicks (
    ts TIMESTAMP,
    page STRING,
    WATERMARK FOR ts AS ts - INTERVAL '5 seconds'
);
START QUERY per_page AS
    SELECT window.start, page, count(*) AS clicks
    FROM clicks
    GROUP BY window(ts, '10 seconds'), page
    OUTPUT MODE UPDATE
    TRIGGER MANUAL;

INSERT INTO clicks VALUES ('2026-01-01 00:00:01', '/a'), ('2026-01-01 00:00:04', '/b'), ('2026-01-01 00:00:09', '/a');
STEP QUERY per_page;

INSERT INTO clicks VALUES ('2026-01-01 00:00:16', '/a'), ('2026-01-01 00:00:07', '/b');
STEP QUERY per_page 10 BATCHES;

-- The watermark is now 00:00:11: the first window is closed, and this row is late.
INSERT INTO clicks VALUES ('2026-01-01 00:00:08', '/b');
STEP QUERY per_page 10 BATCHES;
SHOW STREAMS;
