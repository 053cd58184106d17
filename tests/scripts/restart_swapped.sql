-- The order of the SELECT is not part of what a query remembers, nor what else it makes of its aggregates.
SET clock = 'manual';
CREATE STREAM s (k STRING, v BIGINT, f DOUBLE);
START QUERY q AS SELECT k, max(v) AS top, count(*) AS n, sum(v) AS total, avg(f) FILTER (WHERE v > 1) AS mean, count(DISTINCT f) AS kinds FROM s GROUP BY k OUTPUT MODE UPDATE TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO s VALUES ('a', 1, 1.5), ('a', 7, 2.5), ('b', 3, 0.5);
STEP QUERY q;
STOP QUERY q;
START QUERY q AS SELECT count(DISTINCT x.f) AS kinds, sum(x.v) AS total, x.k, avg(x.f) FILTER (WHERE x.v > 1) AS mean, count(*) + max(x.v) AS both FROM s AS x GROUP BY x.k OUTPUT MODE UPDATE TRIGGER MANUAL CHECKPOINT '$TMP/cp';
INSERT INTO s VALUES ('a', 2, 1.5), ('b', 4, 0.5);
STEP QUERY q;
STOP QUERY q;
-- One aggregate less is another state.
START QUERY q AS SELECT k, count(*) AS n FROM s GROUP BY k OUTPUT MODE UPDATE TRIGGER MANUAL
CHECKPOINT '$TMP/cp';
