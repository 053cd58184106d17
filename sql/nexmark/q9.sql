-- q9: the winning bid of every auction: the highest, of those the first, within the auction's time.
START QUERY q9 INTO TABLE q9 AS
SELECT id, item_name, seller, category, auction, bidder, price, bid_time
FROM (
    SELECT a.id, a.item_name, a.seller, a.category, b.auction, b.bidder, b.price, b.date_time AS bid_time,
        row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS place
    FROM auction AS a JOIN bid AS b ON a.id = b.auction
    WHERE b.date_time BETWEEN a.date_time AND a.expires
)
WHERE place = 1
OUTPUT MODE UPDATE
TRIGGER AVAILABLE NOW;
AWAIT QUERY q9;
SELECT * FROM q9 ORDER BY id LIMIT 5;
