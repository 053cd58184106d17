-- Visits: clicks of one user that are less than half a minute apart.
SET clock = 'manual';
CREATE STREAM clicks (ts TIMESTAMP, who STRING, WATERMARK FOR ts AS ts - INTERVAL '10 seconds');

START QUERY visits INTO TABLE visits AS
    SELECT who, session_window.start AS began, session_window.end AS ended, count(*) AS clicks
    FROM clicks
    GROUP BY who, session_window(ts, '30 seconds')
    OUTPUT MODE UPDATE
    TRIGGER MANUAL;

INSERT INTO clicks VALUES
    ('2026-01-01 09:00:00', 'ann'), ('2026-01-01 09:00:40', 'ann'), ('2026-01-01 09:00:05', 'ben');
STEP QUERY visits;
SELECT * FROM visits ORDER BY who, began;

-- A click between two visits makes one of them: the table loses one row, and the other is replaced.
INSERT INTO clicks VALUES ('2026-01-01 09:00:20', 'ann');
STEP QUERY visits;
SELECT * FROM visits ORDER BY who, began;

-- What is behind the watermark is final, and forgotten by the query; DRAIN closes the rest.
STOP QUERY visits DRAIN;
SELECT * FROM visits ORDER BY who, began;
