-- +goose Up

-- Who is told of events, by a name of the operator's: since when, which server does it
-- now, and why nobody does any more. How far each has come in a run is in cursors.
CREATE TABLE subscribers (
    name   TEXT    NOT NULL PRIMARY KEY,
    since  BIGINT NOT NULL,
    holder TEXT    NOT NULL DEFAULT '',
    until  BIGINT NOT NULL DEFAULT 0,
    failed BIGINT NOT NULL DEFAULT 0, -- since when nothing gets through; 0: it does
    paused TEXT    NOT NULL DEFAULT ''
);
