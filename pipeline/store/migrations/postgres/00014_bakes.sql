-- +goose Up

-- The watch over a deployment after it has succeeded. follow_until is when nothing can
-- change about it any more; data is what was measured, as JSON.
CREATE TABLE bakes (
    repo         TEXT    NOT NULL,
    deployment   BIGINT  NOT NULL,
    seq          BIGINT  NOT NULL,
    follow_until BIGINT  NOT NULL,
    data         TEXT    NOT NULL,
    PRIMARY KEY (repo, deployment)
);
CREATE INDEX bakes_follow ON bakes (follow_until);
