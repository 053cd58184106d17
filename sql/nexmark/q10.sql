-- q10: every bid into files by day and minute, exactly once.
CREATE SINK q10 WITH (connector = 'file', path = '/tmp/levada-nexmark/q10', format = 'csv', partition_by = 'day, minute');
START QUERY q10 INTO q10 AS
SELECT auction, bidder, price, date_time, extra,
    to_char(date_time, '%Y-%m-%d') AS day, to_char(date_time, '%H:%M') AS minute
FROM bid
OUTPUT MODE APPEND
TRIGGER AVAILABLE NOW
CHECKPOINT '/tmp/levada-nexmark/q10-checkpoint';
AWAIT QUERY q10;
CREATE STREAM q10_files (auction BIGINT, bidder BIGINT, price BIGINT, date_time TIMESTAMP, extra STRING)
    WITH (connector = 'file', path = '/tmp/levada-nexmark/q10', format = 'csv', header = TRUE);
SELECT count(*) AS bids, max(price) AS highest FROM q10_files;
