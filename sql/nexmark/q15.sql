-- q15: bids, bidders and auctions of a day, by price.
START QUERY q15 INTO TABLE q15 AS
SELECT to_char(date_time, '%Y-%m-%d') AS day,
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
GROUP BY to_char(date_time, '%Y-%m-%d')
OUTPUT MODE UPDATE
TRIGGER AVAILABLE NOW;
AWAIT QUERY q15;
SELECT * FROM q15 ORDER BY day LIMIT 5;
