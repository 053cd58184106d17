-- q16: bids, bidders and auctions of a channel and a day, by price, and the last minute there was one.
START QUERY q16 INTO TABLE q16 AS
SELECT channel, to_char(date_time, '%Y-%m-%d') AS day, max(to_char(date_time, '%H:%M')) AS last_minute,
    count(*) AS bids,
    count(*) FILTER (WHERE price < 10000) AS rank1,
    count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2,
    count(*) FILTER (WHERE price >= 1000000) AS rank3,
    count(DISTINCT bidder) AS bidders,
    count(DISTINCT bidder) FILTER (WHERE price < 10000) AS bidders_rank1,
    count(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS bidders_rank2,
    count(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS bidders_rank3,
    count(DISTINCT auction) AS auctions,
    count(DISTINCT auction) FILTER (WHERE price < 10000) AS auctions_rank1,
    count(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS auctions_rank2,
    count(DISTINCT auction) FILTER (WHERE price >= 1000000) AS auctions_rank3
FROM bid
GROUP BY channel, to_char(date_time, '%Y-%m-%d')
OUTPUT MODE UPDATE
TRIGGER AVAILABLE NOW;
AWAIT QUERY q16;
SELECT * FROM q16 ORDER BY channel, day LIMIT 5;
