-- q3: who sells in three states what is of category 10. Nothing bounds the time between a person and their auctions, so both sides
-- are remembered for ever.
START QUERY q3 INTO TABLE q3 AS
SELECT p.name, p.city, p.state, a.id
FROM auction AS a JOIN person AS p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('or', 'id', 'ca')
OUTPUT MODE APPEND
TRIGGER AVAILABLE NOW;
AWAIT QUERY q3;
SELECT * FROM q3 ORDER BY id LIMIT 5;
