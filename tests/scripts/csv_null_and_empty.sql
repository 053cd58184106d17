-- csv: NULL is nothing, the empty text is "", and both come back as what they were.
CREATE STREAM s (id INT, a STRING, b STRING);
INSERT INTO s VALUES (1, NULL, ''), (2, '', NULL), (NULL, 'x,y', '"q"');
CREATE SINK out WITH (connector = 'file', path = '$TMP/out', format = 'csv');
START QUERY q INTO out AS SELECT * FROM s TRIGGER ONCE CHECKPOINT '$TMP/cp';
AWAIT QUERY q;
CREATE SINK shown WITH (connector = 'stdout', format = 'csv');
START QUERY r INTO shown AS SELECT * FROM s TRIGGER ONCE;
AWAIT QUERY r;
CREATE STREAM back (id INT, a STRING, b STRING) WITH (connector = 'file', path = '$TMP/out', format = 'csv', header = true);
SELECT *, a IS NULL AS a_null, b IS NULL AS b_null FROM back;
