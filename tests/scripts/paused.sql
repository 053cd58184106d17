-- Nothing comes from a paused query: STOP WHEN IDLE ends it at once, and what waits for batches says to RESUME it.
SET clock = 'manual';
CREATE STREAM s (n INT);
INSERT INTO s VALUES (1);
START QUERY q AS SELECT n FROM s TRIGGER MANUAL;
PAUSE QUERY q;
STOP QUERY q WHEN IDLE;
START QUERY q AS SELECT n FROM s TRIGGER MANUAL;
PAUSE QUERY q;
RESUME QUERY q;
STEP QUERY q;
PAUSE QUERY q;
STEP QUERY q;
