-- What \pset says holds for the console sinks that are started afterwards.
CREATE STREAM s (v INT);
INSERT INTO s VALUES (1), (2);
\pset format csv
START QUERY q INTO CONSOLE AS SELECT v FROM s TRIGGER ONCE;
AWAIT QUERY q;
