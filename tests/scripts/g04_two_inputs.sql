-- G4: two inputs with delays of 10 and 5 seconds, policy min. The progress of the last batch shows the watermark it used.
SET clock = 'manual';
CREATE STREAM a (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '10 seconds');
CREATE STREAM b (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 seconds');
START QUERY q INTO BLACKHOLE AS SELECT ts, count(*) AS n FROM (SELECT ts FROM a UNION ALL SELECT ts FROM b) u GROUP BY ts OUTPUT MODE UPDATE TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO a SELECT to_timestamp_seconds(11);
STEP QUERY q 10 BATCHES;
INSERT INTO b SELECT to_timestamp_seconds(6);
STEP QUERY q 10 BATCHES;
INSERT INTO b SELECT to_timestamp_seconds(8);
STEP QUERY q 10 BATCHES;
INSERT INTO a SELECT to_timestamp_seconds(21);
STEP QUERY q 10 BATCHES;
INSERT INTO b SELECT to_timestamp_seconds(x) FROM (VALUES (17), (28), (39)) AS t (x);
STEP QUERY q 10 BATCHES;
INSERT INTO a SELECT to_timestamp_seconds(31);
STEP QUERY q 10 BATCHES;
INSERT INTO a SELECT to_timestamp_seconds(200);
INSERT INTO b SELECT to_timestamp_seconds(190);
STEP QUERY q 10 BATCHES;
-- Every input's own watermark comes back after a restart: 190 of a and 185 of b, so b's next row moves it to 190.
STOP QUERY q;
START QUERY q INTO BLACKHOLE AS SELECT ts, count(*) AS n FROM (SELECT ts FROM a UNION ALL SELECT ts FROM b) u GROUP BY ts OUTPUT MODE UPDATE TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO b SELECT to_timestamp_seconds(200);
STEP QUERY q 10 BATCHES;
STOP QUERY q;
