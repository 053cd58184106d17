-- now() and its kin are the batch's time on the query's clock, inside aggregates too.
SET clock = 'manual';
ADVANCE CLOCK TO TIMESTAMP '2024-06-01 23:30:00';
CREATE STREAM s (k STRING, n INT);
INSERT INTO s VALUES ('a', 1);
START QUERY q AS SELECT k, now() AS t, current_timestamp AS u, current_date AS d, current_time AS c FROM s TRIGGER ONCE;
AWAIT QUERY q;
START QUERY r AS SELECT k, max(now()) AS newest, count(*) AS n FROM s WHERE now() > TIMESTAMP '2024-01-01' GROUP BY k TRIGGER MANUAL;
STEP QUERY r;
ADVANCE CLOCK BY '1 minute';
INSERT INTO s VALUES ('a', 2), ('b', 3);
STEP QUERY r;
STOP QUERY r;
-- In the zone that the session has.
SET timezone = '+02:00';
START QUERY z AS SELECT k, now() AS t, current_date AS d, current_time AS c FROM s WHERE n = 1 TRIGGER ONCE;
AWAIT QUERY z;
