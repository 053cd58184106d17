-- Receipts: what a stopped query has done, and whether it did it right.
SET clock = 'manual';
CREATE STREAM sales (shop STRING, amount BIGINT);
START QUERY totals INTO TABLE totals AS
    SELECT shop, sum(amount) AS total, max(amount) AS largest FROM sales GROUP BY shop TRIGGER MANUAL;

INSERT INTO sales VALUES ('north', 5), ('south', 7);
STEP QUERY totals;
INSERT INTO sales VALUES ('north', 9);
STEP QUERY totals;

-- The query runs again over the rows that its log names, from nothing; what it remembers and its table must be the same.
VERIFY QUERY totals;
STOP QUERY totals;
SELECT * FROM totals ORDER BY shop;
