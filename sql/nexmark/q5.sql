-- q5: the auctions with the most bids of the last ten seconds, every two seconds.
START QUERY q5 INTO TABLE q5 AS
WITH counts AS (
    SELECT auction, window AS w, count(*) AS bids
    FROM bid
    GROUP BY auction, window(date_time, '10 seconds', '2 seconds')
)
SELECT c.w.start AS start, c.auction, c.bids
FROM counts AS c JOIN (SELECT w, max(bids) AS most FROM counts GROUP BY w) AS m ON c.w = m.w AND c.bids = m.most
OUTPUT MODE APPEND
TRIGGER AVAILABLE NOW;
AWAIT QUERY q5;
SELECT * FROM q5 ORDER BY start, auction LIMIT 5;
