-- Refused, with the rule, the place and the way out.
CREATE STREAM orders (customer STRING, amount BIGINT);
SELECT custmer
FROM orders;
