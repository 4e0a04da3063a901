-- +goose Up

-- The way of a run's work into production. active: it goes on; busy: it merges or
-- deploys, which one of a repository does at a time. data is what has happened, as JSON.
CREATE TABLE ships (
    run    INTEGER NOT NULL PRIMARY KEY,
    repo   TEXT    NOT NULL,
    seq    INTEGER NOT NULL,
    active INTEGER NOT NULL,
    busy   INTEGER NOT NULL,
    data   TEXT    NOT NULL
) STRICT;
CREATE INDEX ships_active ON ships (run) WHERE active = 1;
CREATE UNIQUE INDEX ships_busy ON ships (repo) WHERE busy = 1;
