-- G15: AVAILABLE NOW reads what is there at the start, in batches by the rate limit, and ends.
CREATE STREAM s (n BIGINT) WITH (connector = 'file', path = '$ROOT/testdata/numbers', format = 'json', max_files_per_trigger = 1);
START QUERY q AS SELECT n FROM s TRIGGER AVAILABLE NOW CHECKPOINT '$TMP/cp';
AWAIT QUERY q;
START QUERY q AS SELECT n FROM s TRIGGER AVAILABLE NOW CHECKPOINT '$TMP/cp';
AWAIT QUERY q;
