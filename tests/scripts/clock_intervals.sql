-- An interval may be h:mm:ss wherever one stands.
CREATE STREAM s (ts TIMESTAMP, v INT);
INSERT INTO s VALUES ('2024-01-01 00:10:00', 1), ('2024-01-01 00:59:59', 2), ('2024-01-01 01:00:00', 3);
SELECT window.start, sum(v) AS v FROM s GROUP BY window(ts, '01:00:00') ORDER BY 1;
SELECT window_end, v FROM HOP(s, ts, INTERVAL '0:30', '01:00:00') ORDER BY 2, 1;
SELECT ts + INTERVAL '-1:30:00.5' AS before FROM s WHERE v = 1;
CREATE STREAM r WITH (connector = 'rate', ramp_up_time = '00:00:05');
CREATE STREAM bad WITH (connector = 'rate', ramp_up_time = '00:99');
