-- Refused, with the rule, the place and the way out.
CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT);
START QUERY q AS SELECT window.start, count(*) FROM s GROUP BY window(ts, '5 seconds') OUTPUT MODE APPEND;
