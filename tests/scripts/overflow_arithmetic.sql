-- A product that does not fit its type.
CREATE STREAM s (b BIGINT);
INSERT INTO s VALUES (5), (4611686018427387904);
SELECT b * 2 AS twice FROM s WHERE b < 10;
SELECT b * 2 AS twice FROM s;
