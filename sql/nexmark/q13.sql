-- q13: every bid with what a static table says of it.
START QUERY q13 INTO TABLE q13 AS
SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid AS b JOIN side AS s ON b.auction % 10000 = s.key
OUTPUT MODE APPEND
TRIGGER AVAILABLE NOW;
AWAIT QUERY q13;
SELECT * FROM q13 ORDER BY date_time LIMIT 5;
