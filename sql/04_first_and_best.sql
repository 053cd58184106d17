-- Each event once, and the best of each window.
SET clock = 'manual';
CREATE STREAM bids (id BIGINT, item STRING, price BIGINT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '2 seconds');

-- The sender may send twice: the first row of an id counts, and an id is forgotten when the watermark has passed it.
CREATE VIEW bids_once AS SELECT DISTINCT ON (id) WITHIN WATERMARK id, item, price, at FROM bids;

START QUERY once AS SELECT id, item, price FROM bids_once OUTPUT MODE APPEND TRIGGER MANUAL;

-- The two highest bids of each ten seconds, sent when the ten seconds are over.
START QUERY best AS
    SELECT start, place, item, price FROM (
        SELECT window_start AS start, window_end, item, price,
               ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price DESC, item) AS place
        FROM TUMBLE(bids, at, '10 seconds'))
    WHERE place <= 2
    OUTPUT MODE APPEND
    TRIGGER MANUAL;

INSERT INTO bids VALUES
    (1, 'lamp', 10, '2026-01-01 00:00:01'), (2, 'lamp', 14, '2026-01-01 00:00:02'),
    (2, 'lamp', 14, '2026-01-01 00:00:02'), (3, 'desk', 90, '2026-01-01 00:00:09');
STEP QUERY once;
STEP QUERY best;

INSERT INTO bids VALUES (4, 'desk', 95, '2026-01-01 00:00:14'), (1, 'lamp', 10, '2026-01-01 00:00:11');
STEP QUERY once;
STEP QUERY best;
STEP QUERY best EMPTY;
