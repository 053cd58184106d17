-- q8: who came and opened an auction within the same ten seconds.
START QUERY q8 INTO TABLE q8 AS
SELECT p.id, p.name, p.w.start AS start
FROM (SELECT id, name, window AS w FROM person GROUP BY id, name, window(date_time, '10 seconds')) AS p
JOIN (SELECT seller, window AS w FROM auction GROUP BY seller, window(date_time, '10 seconds')) AS a
    ON p.id = a.seller AND p.w = a.w
OUTPUT MODE APPEND
TRIGGER AVAILABLE NOW;
AWAIT QUERY q8;
SELECT * FROM q8 ORDER BY id LIMIT 5;
