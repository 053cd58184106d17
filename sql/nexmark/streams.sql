-- The streams of the Nexmark benchmark, for the queries beside this file: 100,000 events, fifty seconds of event time.
--     levada -f sql/nexmark/streams.sql -f sql/nexmark/q5.sql
CREATE STREAM person (WATERMARK FOR date_time AS date_time - INTERVAL '4 seconds')
    WITH (connector = 'nexmark', type = 'person', events = 100000, rate = 2000, max_events_per_trigger = 20000);
CREATE STREAM auction (WATERMARK FOR date_time AS date_time - INTERVAL '4 seconds')
    WITH (connector = 'nexmark', type = 'auction', events = 100000, rate = 2000, max_events_per_trigger = 20000);
CREATE STREAM bid (WATERMARK FOR date_time AS date_time - INTERVAL '4 seconds')
    WITH (connector = 'nexmark', type = 'bid', events = 100000, rate = 2000, max_events_per_trigger = 20000);
-- What q13 looks bids up in.
CREATE TABLE side AS SELECT value AS key, 'v' || value AS value FROM generate_series(0, 9999);
