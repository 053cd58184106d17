-- A function that gives another value each time makes other rows of a batch that is run again: START says so.
CREATE STREAM s (n INT);
START QUERY q INTO BLACKHOLE AS SELECT n, random() AS r, uuid() AS u FROM s TRIGGER ONCE;
AWAIT QUERY q;
START QUERY p INTO BLACKHOLE AS SELECT n, random() + random() AS r FROM s TRIGGER ONCE;
AWAIT QUERY p;
START QUERY o INTO BLACKHOLE AS SELECT n, now() AS t FROM s TRIGGER ONCE;
AWAIT QUERY o;
