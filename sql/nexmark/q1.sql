-- q1: the price of every bid in euro.
START QUERY q1 INTO TABLE q1 AS
SELECT auction, bidder, CAST(0.908 AS DECIMAL(10, 3)) * price AS price, date_time, extra
FROM bid
OUTPUT MODE APPEND
TRIGGER AVAILABLE NOW;
AWAIT QUERY q1;
SELECT * FROM q1 ORDER BY date_time LIMIT 5;
