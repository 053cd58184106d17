-- A query that fails says why when it does; the statement that waited for it does not say it again.
CREATE STREAM s (v INT);
START QUERY q INTO BLACKHOLE AS SELECT 10 / v AS x FROM s;
INSERT INTO s VALUES (0);
AWAIT QUERY q;
