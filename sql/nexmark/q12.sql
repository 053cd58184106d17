-- q12: how many bids a person makes in ten seconds of processing time: of the clock when a batch reads them, not of the events.
START QUERY q12 INTO TABLE q12 AS
SELECT bidder, count(*) AS bids, window.start AS start, window.end AS "end"
FROM (SELECT bidder, now() AS read_at FROM bid) AS b
GROUP BY bidder, window(read_at, '10 seconds')
OUTPUT MODE UPDATE
TRIGGER AVAILABLE NOW;
AWAIT QUERY q12;
SELECT bidder, sum(bids) AS bids FROM q12 GROUP BY bidder ORDER BY bids DESC, bidder LIMIT 5;
