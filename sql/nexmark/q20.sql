-- q20: the bids for auctions of category 10, with what the auction says. Nothing bounds the time between them.
START QUERY q20 INTO TABLE q20 AS
SELECT b.auction, b.bidder, b.price, b.channel, b.date_time AS bid_time, a.item_name, a.initial_bid, a.reserve,
    a.date_time AS auction_time, a.expires, a.seller, a.category
FROM bid AS b JOIN auction AS a ON b.auction = a.id
WHERE a.category = 10
OUTPUT MODE APPEND
TRIGGER AVAILABLE NOW;
AWAIT QUERY q20;
SELECT * FROM q20 ORDER BY bid_time LIMIT 5;
