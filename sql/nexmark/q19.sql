-- q19: the ten highest bids of every auction.
START QUERY q19 INTO TABLE q19 AS
SELECT auction, bidder, price, date_time, place
FROM (
    SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time, bidder) AS place
    FROM bid
)
WHERE place <= 10
OUTPUT MODE UPDATE
TRIGGER AVAILABLE NOW;
AWAIT QUERY q19;
SELECT * FROM q19 ORDER BY auction, place LIMIT 5;
