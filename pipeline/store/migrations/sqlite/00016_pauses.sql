-- +goose Up

-- Who has stopped all work, or that of a repository, and let it go on: a row for each
-- word of it, never changed. repo is in lower case, '' for all; the last row counts.
CREATE TABLE pauses (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,
    actor  TEXT    NOT NULL,
    repo   TEXT    NOT NULL,
    paused INTEGER NOT NULL CHECK (paused IN (0, 1)),
    reason TEXT    NOT NULL
) STRICT;
CREATE INDEX pauses_repo ON pauses (repo, seq);
