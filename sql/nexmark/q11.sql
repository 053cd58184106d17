-- q11: how many bids a person made while active: until ten seconds without one have passed.
START QUERY q11 INTO TABLE q11 AS
SELECT bidder, count(*) AS bids, session_window.start AS start, session_window.end AS "end"
FROM bid
GROUP BY bidder, session_window(date_time, '10 seconds')
OUTPUT MODE APPEND
TRIGGER AVAILABLE NOW;
AWAIT QUERY q11;
SELECT * FROM q11 ORDER BY start, bidder LIMIT 5;
