-- +goose Up

-- The watch over a deployment after it has succeeded. follow_until is when nothing can
-- change about it any more; data is what was measured, as JSON.
CREATE TABLE bakes (
    repo         TEXT    NOT NULL,
    deployment   INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    follow_until INTEGER NOT NULL,
    data         TEXT    NOT NULL,
    PRIMARY KEY (repo, deployment)
) STRICT, WITHOUT ROWID;
CREATE INDEX bakes_follow ON bakes (follow_until);
