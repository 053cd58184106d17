-- q7: the highest bid of every ten seconds.
START QUERY q7 INTO TABLE q7 AS
SELECT b.auction, b.price, b.bidder, b.date_time
FROM (SELECT auction, price, bidder, date_time, window(date_time, '10 seconds') AS w FROM bid) AS b
JOIN (SELECT window AS w, max(price) AS most FROM bid GROUP BY window(date_time, '10 seconds')) AS m
    ON b.w = m.w AND b.price = m.most
OUTPUT MODE APPEND
TRIGGER AVAILABLE NOW;
AWAIT QUERY q7;
SELECT * FROM q7 ORDER BY date_time LIMIT 5;
