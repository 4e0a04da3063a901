-- +goose Up

-- What model calls cost, by day (UTC, as 20260102): the caps on a day and a month
-- are held against it, and it outlives the events that it was summed from.
CREATE TABLE spend (
    day       BIGINT NOT NULL PRIMARY KEY,
    micro_usd BIGINT NOT NULL
);
