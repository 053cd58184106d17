-- q2: the bids for a few auctions.
START QUERY q2 INTO TABLE q2 AS
SELECT auction, price
FROM bid
WHERE auction % 123 = 0
OUTPUT MODE APPEND
TRIGGER AVAILABLE NOW;
AWAIT QUERY q2;
SELECT * FROM q2 ORDER BY auction, price DESC LIMIT 5;
