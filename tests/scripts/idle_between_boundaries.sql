-- With TRIGGER EVERY, AWAIT IDLE and STOP WHEN IDLE look at the sources between two boundaries: when nothing is new, they answer.
SET clock = 'manual';
CREATE STREAM s (n INT);
INSERT INTO s VALUES (1), (2);
START QUERY q AS SELECT n FROM s TRIGGER EVERY '1 hour';
AWAIT QUERY q IDLE TIMEOUT '1 minute';
AWAIT QUERY q IDLE TIMEOUT '1 minute';
STOP QUERY q WHEN IDLE TIMEOUT '1 minute';
