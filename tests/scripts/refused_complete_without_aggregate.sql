-- Refused, with the rule, the place and the way out.
CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT);
START QUERY q AS SELECT k FROM s OUTPUT MODE COMPLETE;
