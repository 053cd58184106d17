-- The tour: generated auction bids, counted in ten-second windows, shown as they change and kept as files.
CREATE STREAM bids (WATERMARK FOR date_time AS date_time - INTERVAL '2 seconds')
    WITH (connector = 'nexmark', type = 'bid', events = 200000, rate = 10000);

-- A live table of bids a window: every batch prints the windows that it changed.
START QUERY per_window AS
    SELECT window.start AS "window", count(*) AS bids, max(price) AS highest
    FROM bids
    GROUP BY window(date_time, '10 seconds')
    OUTPUT MODE UPDATE
    TRIGGER AVAILABLE NOW;
AWAIT QUERY per_window;

-- The same, final and exactly once, in files: a window is written when the watermark has closed it.
CREATE SINK hot WITH (connector = 'file', path = '/tmp/levada-tour/hot-auctions', format = 'json');
START QUERY hot INTO hot AS
    SELECT window.start AS start, auction, count(*) AS bids
    FROM bids
    GROUP BY window(date_time, '10 seconds'), auction
    HAVING count(*) > 30
    OUTPUT MODE APPEND
    TRIGGER AVAILABLE NOW
    CHECKPOINT '/tmp/levada-tour/hot-checkpoint';
AWAIT QUERY hot;

-- What the files hold, read back through their manifest.
CREATE STREAM hot_auctions (start TIMESTAMP, auction BIGINT, bids BIGINT)
    WITH (connector = 'file', path = '/tmp/levada-tour/hot-auctions', format = 'json');
SELECT start, count(*) AS hot_auctions, max(bids) AS most_bids FROM hot_auctions GROUP BY start ORDER BY start;
