-- +goose Up

-- The way of a run's work into production. active: it goes on; busy: it merges or
-- deploys, which one of a repository does at a time. data is what has happened, as JSON.
CREATE TABLE ships (
    run    BIGINT  NOT NULL PRIMARY KEY,
    repo   TEXT    NOT NULL,
    seq    BIGINT  NOT NULL,
    active BIGINT  NOT NULL,
    busy   BIGINT  NOT NULL,
    data   TEXT    NOT NULL
);
CREATE INDEX ships_active ON ships (run) WHERE active = 1;
CREATE UNIQUE INDEX ships_busy ON ships (repo) WHERE busy = 1;
