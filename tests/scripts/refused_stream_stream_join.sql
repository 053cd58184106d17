-- Refused, with the rule, the place and the way out.
CREATE STREAM a (k STRING);
CREATE STREAM b (k STRING);
START QUERY q AS SELECT a.k FROM a LEFT JOIN b ON a.k = b.k OUTPUT MODE APPEND;
