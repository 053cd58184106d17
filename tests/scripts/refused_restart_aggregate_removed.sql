-- On the checkpoint of a query that aggregates, the same without the aggregate is refused, and the old one goes on.
SET clock = 'manual';
CREATE STREAM s (k STRING, v BIGINT);
START QUERY q INTO BLACKHOLE AS SELECT k, count(*) AS n FROM s GROUP BY k TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO s VALUES ('a', 1);
STEP QUERY q;
STOP QUERY q;
START QUERY q INTO BLACKHOLE AS
    SELECT k FROM s
    TRIGGER MANUAL CHECKPOINT '$TMP/cp';
