-- q4: the average price that auctions of a category were closed at. An auction's highest bid rises, and takes its share of the
-- average back with it.
START QUERY q4 INTO TABLE q4 AS
SELECT category, avg(final) AS average
FROM (
    SELECT a.id, a.category, max(b.price) AS final
    FROM auction AS a JOIN bid AS b ON a.id = b.auction
    WHERE b.date_time BETWEEN a.date_time AND a.expires
    GROUP BY a.id, a.category
)
GROUP BY category
OUTPUT MODE UPDATE
TRIGGER AVAILABLE NOW;
AWAIT QUERY q4;
SELECT * FROM q4 ORDER BY category LIMIT 5;
