-- Refused, with the rule, the place and the way out.
CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT);
START QUERY q AS SELECT k, count(*) FROM s GROUP BY k OUTPUT MODE APPEND;
