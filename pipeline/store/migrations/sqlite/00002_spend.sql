-- +goose Up

-- What model calls cost, by day (UTC, as 20260102): the caps on a day and a month
-- are held against it, and it outlives the events that it was summed from.
CREATE TABLE spend (
    day       INTEGER NOT NULL PRIMARY KEY,
    micro_usd INTEGER NOT NULL
);
