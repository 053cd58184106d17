-- q6: the average price of each seller's last ten auctions that closed, as it was at each of them.
START QUERY q6 INTO TABLE q6 AS
SELECT seller, id, avg(price) OVER (PARTITION BY seller ORDER BY bid_time, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS average
FROM (
    SELECT a.id, a.seller, b.price, b.date_time AS bid_time,
        row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS place
    FROM auction AS a JOIN bid AS b ON a.id = b.auction
    WHERE b.date_time BETWEEN a.date_time AND a.expires
)
WHERE place = 1
OUTPUT MODE UPDATE
TRIGGER AVAILABLE NOW;
AWAIT QUERY q6;
SELECT * FROM q6 ORDER BY seller, id LIMIT 5;
