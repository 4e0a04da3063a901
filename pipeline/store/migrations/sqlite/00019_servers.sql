-- +goose Up

-- The servers on this database, each as it said last how it is; one that is asked to
-- drain begins nothing any more. The rows of those that are gone are deleted after a day.
CREATE TABLE servers (
    id         TEXT    NOT NULL PRIMARY KEY,
    process    TEXT    NOT NULL,
    version    TEXT    NOT NULL,
    started    INTEGER NOT NULL,
    beat       INTEGER NOT NULL,
    drain      INTEGER NOT NULL DEFAULT 0 CHECK (drain IN (0, 1)),
    load_milli INTEGER NOT NULL,
    processors INTEGER NOT NULL,
    free_disk  INTEGER NOT NULL
) STRICT;
