-- q17: what an auction was offered in a day.
START QUERY q17 INTO TABLE q17 AS
SELECT auction, to_char(date_time, '%Y-%m-%d') AS day,
    count(*) AS bids,
    count(*) FILTER (WHERE price < 10000) AS rank1,
    count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2,
    count(*) FILTER (WHERE price >= 1000000) AS rank3,
    min(price) AS lowest, max(price) AS highest, avg(price) AS average, sum(price) AS total
FROM bid
GROUP BY auction, to_char(date_time, '%Y-%m-%d')
OUTPUT MODE UPDATE
TRIGGER AVAILABLE NOW;
AWAIT QUERY q17;
SELECT * FROM q17 ORDER BY auction, day LIMIT 5;
