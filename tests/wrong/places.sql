-- Where an error stands: the row and column of an INSERT, the clause or name that says which file or folder.
CREATE STREAM s (a INT, t TIMESTAMP, d DATE, b BYTEA, x STRUCT<p INT, q STRING>, l ARRAY<DOUBLE>);
INSERT INTO s (a, t) VALUES (1, NULL), (2147483648, NULL);
INSERT INTO s (a, t) VALUES (1, '2024-01-01'), (2, '-0001-01-01 00:00:00');
INSERT INTO s (d) VALUES ('2024-02-30');
INSERT INTO s (a) SELECT 2147483648;
INSERT INTO s (a) SELECT 'many';
START QUERY q INTO BLACKHOLE AS SELECT a FROM s CHECKPOINT '/proc/x';
START QUERY q INTO BLACKHOLE AS SELECT a FROM s CHECKPOINT 'Cargo.toml';
CREATE SINK o WITH (connector = 'file', path = 'testdata/numbers', format = 'json');
START QUERY q INTO o AS SELECT a FROM s;
-- Types have the names that SQL gives them.
SELECT median(b) FROM s;
SELECT sum(x) FROM s;
SELECT sum(l) FROM s;
SHOW COLUMNS FROM s;
DESCRIBE s;
