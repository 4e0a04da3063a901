-- +goose Up

-- A reviewer may withdraw a finding.
ALTER TABLE findings DROP CONSTRAINT findings_state_check;
ALTER TABLE findings ADD CONSTRAINT findings_state_check CHECK (state IN ('open', 'fixed', 'withdrawn', 'dismissed', 'accepted'));

-- Tests that failed before somebody's work, and that a person has called known: they
-- do not stop a run until they have passed once.
CREATE TABLE known_failures (
    repo  TEXT   NOT NULL,
    test  TEXT   NOT NULL,
    login TEXT   NOT NULL,
    at    BIGINT NOT NULL,
    run   BIGINT NOT NULL REFERENCES runs (id),
    PRIMARY KEY (repo, test)
);
