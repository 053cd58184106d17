-- on_error = 'skip' counts bad records, and bad_records('q') has the newest of them, also when the query has ended.
COPY (VALUES ('1', 'one'), ('two', 'x'), ('3', 'three'), ('4.5', NULL)) TO '$TMP/in/a.csv' STORED AS CSV OPTIONS ('format.has_header' 'false');
CREATE STREAM s (id INT, name STRING) WITH (connector = 'file', path = '$TMP/in', format = 'csv', on_error = 'skip');
START QUERY q INTO TABLE t AS SELECT * FROM s TRIGGER AVAILABLE NOW;
AWAIT QUERY q;
SELECT * FROM t ORDER BY id;
SELECT batch, source, line, error, text FROM bad_records('q') ORDER BY line;
SELECT count(*) AS bad FROM bad_records('q') WHERE file LIKE '%a.csv';
SELECT * FROM late_rows('q');
-- A query without bad records has none; one that is not there is an error.
SELECT * FROM bad_records('p');
