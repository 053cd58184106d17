-- q22: the folders of the address of every bid.
START QUERY q22 INTO TABLE q22 AS
SELECT auction, bidder, price, channel,
    split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3
FROM bid
OUTPUT MODE APPEND
TRIGGER AVAILABLE NOW;
AWAIT QUERY q22;
SELECT * FROM q22 ORDER BY auction, bidder, price LIMIT 5;
