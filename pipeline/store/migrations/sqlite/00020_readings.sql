-- +goose Up

-- What gates of quality came to at the bases of runs, by how it was measured: it is measured
-- once for all runs on a base. The rows of over a month ago are deleted.
CREATE TABLE readings (
    repo    TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    reading TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (repo, key)
) STRICT;
CREATE INDEX readings_at ON readings (at);
