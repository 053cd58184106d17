-- Windows of hours over days: refused where the time stands, not in the first batch.
CREATE STREAM s (d DATE, n INT);
START QUERY q AS SELECT window.start, count(*) FROM s
    GROUP BY window(d, '1 hour');
