-- q18: the last bid of every bidder for every auction.
START QUERY q18 INTO TABLE q18 AS
SELECT auction, bidder, price, channel, url, date_time, extra
FROM (
    SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place
    FROM bid
)
WHERE place = 1
OUTPUT MODE UPDATE
TRIGGER AVAILABLE NOW;
AWAIT QUERY q18;
SELECT * FROM q18 ORDER BY auction, bidder LIMIT 5;
