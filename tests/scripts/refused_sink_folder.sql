-- A sink does not take over a folder with other files in it: its manifest would hide them.
CREATE STREAM s (n BIGINT);
CREATE SINK o WITH (connector = 'file', path = '$ROOT/testdata/numbers', format = 'json');
START QUERY q INTO o AS SELECT n FROM s TRIGGER AVAILABLE NOW;
