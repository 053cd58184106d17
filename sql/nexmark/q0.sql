-- q0: every bid, as it comes: what the engine costs by itself.
START QUERY q0 INTO TABLE q0 AS
SELECT auction, bidder, price, date_time, extra
FROM bid
OUTPUT MODE APPEND
TRIGGER AVAILABLE NOW;
AWAIT QUERY q0;
SELECT * FROM q0 ORDER BY date_time LIMIT 5;
