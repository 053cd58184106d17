-- What a query calls its streams is not part of what it remembers.
SET clock = 'manual';
CREATE STREAM s (ts TIMESTAMP, k STRING, v INT, WATERMARK FOR ts AS ts);
START QUERY q AS SELECT window.start, upper(k) AS k, sum(v) AS v FROM s GROUP BY window(ts, '1 minute'), upper(k) OUTPUT MODE APPEND TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO s VALUES ('2024-01-01 00:00:10', 'a', 1);
STEP QUERY q;
STOP QUERY q;
START QUERY q AS SELECT window.start, upper(g.k) AS k, sum(g.v) AS v FROM s AS g GROUP BY window(g.ts, '1 minute'), upper(g.k) OUTPUT MODE APPEND TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO s VALUES ('2024-01-01 00:00:20', 'A', 2), ('2024-01-01 00:01:10', 'a', 4);
STEP QUERY q 10 BATCHES;
STOP QUERY q;
