-- Nobody else could resume it: waiting would never end.
CREATE STREAM s (v INT);
START QUERY q INTO BLACKHOLE AS SELECT v FROM s;
PAUSE QUERY q;
AWAIT QUERY q TERMINATION;
