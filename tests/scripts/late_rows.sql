-- Rows that came too late for their window are dropped and counted; late_rows('q') has the newest of them.
SET clock = 'manual';
CREATE STREAM s (ts TIMESTAMP, k STRING, v INT, note STRING, WATERMARK FOR ts AS ts - INTERVAL '5 seconds');
START QUERY q INTO BLACKHOLE AS
    SELECT window.start, k, sum(v) AS total FROM s GROUP BY window(ts, '00:00:10'), k TRIGGER MANUAL;
INSERT INTO s VALUES ('2024-01-01 00:01:00', 'a', 1, 'x');
STEP QUERY q 9 BATCHES;
INSERT INTO s VALUES ('2024-01-01 00:00:00', 'a', 2, 'x'), ('2024-01-01 00:01:01', 'b', 3, 'x'),
                     ('2024-01-01 00:00:49.5', NULL, 4, 'x'), (NULL, 'c', 5, 'x');
STEP QUERY q 9 BATCHES;
SELECT * FROM late_rows('q') ORDER BY row;
-- It is what the process knows now: no part of a query that goes on.
START QUERY r INTO BLACKHOLE AS SELECT s.k FROM s JOIN late_rows('q') l ON s.v = l.batch;
