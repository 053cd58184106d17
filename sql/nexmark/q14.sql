-- q14: bids of a middle price, by the time of day, and how often their extra text has a c.
START QUERY q14 INTO TABLE q14 AS
SELECT auction, bidder, CAST(0.908 AS DECIMAL(10, 3)) * price AS price,
    CASE
        WHEN date_part('hour', date_time) BETWEEN 8 AND 18 THEN 'day'
        WHEN date_part('hour', date_time) <= 6 OR date_part('hour', date_time) >= 20 THEN 'night'
        ELSE 'other'
    END AS time_of_day,
    date_time, extra, length(extra) - length(replace(extra, 'c', '')) AS c_count
FROM bid
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
OUTPUT MODE APPEND
TRIGGER AVAILABLE NOW;
AWAIT QUERY q14;
SELECT * FROM q14 ORDER BY date_time LIMIT 5;
