-- +goose Up

-- The servers on this database, each as it said last how it is; one that is asked to
-- drain begins nothing any more. The rows of those that are gone are deleted after a day.
CREATE TABLE servers (
    id         TEXT    NOT NULL PRIMARY KEY,
    process    TEXT    NOT NULL,
    version    TEXT    NOT NULL,
    started    BIGINT  NOT NULL,
    beat       BIGINT  NOT NULL,
    drain      BIGINT  NOT NULL DEFAULT 0 CHECK (drain IN (0, 1)),
    load_milli BIGINT  NOT NULL,
    processors BIGINT  NOT NULL,
    free_disk  BIGINT  NOT NULL
);
