-- Two streams that meet: payments within an hour of their order, and orders that nobody paid.
SET clock = 'manual';
CREATE STREAM orders (id BIGINT, amount BIGINT, ordered TIMESTAMP, WATERMARK FOR ordered AS ordered - INTERVAL '5 minutes');
CREATE STREAM payments (order_id BIGINT, paid TIMESTAMP, WATERMARK FOR paid AS paid - INTERVAL '5 minutes');

-- The condition bounds what has to be remembered: an order for an hour, a payment until no order of its time can come.
EXPLAIN STATE SELECT o.id, p.paid
    FROM orders o JOIN payments p ON o.id = p.order_id AND p.paid BETWEEN o.ordered AND o.ordered + INTERVAL '1 hour';

-- LEFT JOIN: an order without a payment is sent once, when none can come any more.
START QUERY settled AS
    SELECT o.id, o.amount, p.paid
    FROM orders o LEFT JOIN payments p
        ON o.id = p.order_id AND p.paid BETWEEN o.ordered AND o.ordered + INTERVAL '1 hour'
    OUTPUT MODE APPEND
    TRIGGER MANUAL;

INSERT INTO orders VALUES (1, 120, '2026-01-01 10:00:00'), (2, 80, '2026-01-01 10:10:00');
INSERT INTO payments VALUES (1, '2026-01-01 10:20:00');
STEP QUERY settled;

-- Time goes on in both streams: an hour and five minutes later order 2 is given up.
INSERT INTO orders VALUES (3, 30, '2026-01-01 11:30:00');
INSERT INTO payments VALUES (3, '2026-01-01 11:31:00');
STEP QUERY settled;
STEP QUERY settled EMPTY;
EXPLAIN WHY settled;
