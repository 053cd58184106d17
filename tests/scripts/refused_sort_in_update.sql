-- Refused, with the rule, the place and the way out.
CREATE STREAM s (k STRING);
START QUERY q AS SELECT k, count(*) AS n FROM s GROUP BY k ORDER BY n OUTPUT MODE UPDATE;
