-- A closed stream ends the queries over it, the batch without data included; rows that are there stay.
CREATE STREAM clicks (page TEXT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '1 second');
START QUERY per_window INTO TABLE seen AS
    SELECT window.start AS start, count(*) AS clicks FROM clicks GROUP BY window(at, '10 seconds')
    OUTPUT MODE APPEND;
INSERT INTO clicks VALUES ('a', '2024-01-01 00:00:01'), ('b', '2024-01-01 00:00:02');
INSERT INTO clicks VALUES ('c', '2024-01-01 00:00:12');
CLOSE STREAM clicks;
AWAIT QUERY per_window TERMINATION;
SELECT * FROM seen;
INSERT INTO clicks VALUES ('d', '2024-01-01 00:00:13');
