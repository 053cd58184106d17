-- What DataFusion would only find out about in a batch works or is refused by START.
SET clock = 'manual';
CREATE STREAM s (k STRING, v BIGINT);
-- Dictionaries are keys by their values, also inside lists and structs, and come out as what they were.
START QUERY q AS SELECT arrow_typeof(d) AS type, d, l, count(*) AS n FROM (SELECT arrow_cast(k, 'Dictionary(Int32, Utf8)') AS d, make_array(named_struct('d', arrow_cast(k, 'Dictionary(Int8, Utf8)'))) AS l FROM s) x GROUP BY d, l OUTPUT MODE UPDATE TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO s VALUES ('a', 1), ('b', 2), (NULL, 3), ('a', 3);
STEP QUERY q;
STOP QUERY q;
START QUERY q AS SELECT arrow_typeof(d) AS type, d, l, count(*) AS n FROM (SELECT arrow_cast(k, 'Dictionary(Int32, Utf8)') AS d, make_array(named_struct('d', arrow_cast(k, 'Dictionary(Int8, Utf8)'))) AS l FROM s) x GROUP BY d, l OUTPUT MODE UPDATE TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO s VALUES ('b', 1), (NULL, 2);
STEP QUERY q;
STOP QUERY q;
-- DISTINCT is not lost where functions are grouped.
START QUERY q AS SELECT k, bit_xor(DISTINCT v) AS once, bit_xor(v) AS every, bit_and(DISTINCT v) AS least FROM s GROUP BY k OUTPUT MODE UPDATE TRIGGER MANUAL;
STEP QUERY q;
INSERT INTO s VALUES ('a', 1), ('a', 3), ('a', 8), ('b', 1);
STEP QUERY q;
STOP QUERY q;
SELECT k, bit_xor(DISTINCT v) AS once, bit_xor(v) AS every, sum(DISTINCT v) AS s FROM s GROUP BY k ORDER BY k;
-- Maps, intervals, and keys that are never NULL.
START QUERY q AS SELECT map([coalesce(k, 'none')], [v]) AS m, CASE WHEN v > 2 THEN INTERVAL '1 day' ELSE INTERVAL '1 month' END AS i, arrow_cast(arrow_cast('ab', 'Binary'), 'FixedSizeBinary(2)') AS b, count(*) AS n FROM s WHERE v = 3 GROUP BY 1, 2, 3 OUTPUT MODE UPDATE TRIGGER MANUAL;
STEP QUERY q;
STOP QUERY q;
-- Refused, as no accumulator is there for the type.
START QUERY q AS SELECT k, min(map([coalesce(k, 'none')], [v])) AS least FROM s GROUP BY k OUTPUT MODE UPDATE TRIGGER MANUAL;
