-- +goose Up

-- A reviewer may withdraw a finding. A CHECK cannot be changed: the table is made anew.
CREATE TABLE findings_next (
    run         INTEGER NOT NULL REFERENCES runs (id),
    phase       TEXT    NOT NULL,
    kind        TEXT    NOT NULL CHECK (kind IN ('finding', 'failure')),
    fingerprint TEXT    NOT NULL,
    severity    TEXT    NOT NULL,
    category    TEXT    NOT NULL,
    rule        TEXT    NOT NULL,
    file        TEXT    NOT NULL,
    line        INTEGER NOT NULL,
    message     TEXT    NOT NULL,
    confidence  REAL    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('open', 'fixed', 'withdrawn', 'dismissed', 'accepted')),
    first_seen  INTEGER NOT NULL,
    last_seen   INTEGER NOT NULL,
    times       INTEGER NOT NULL,
    fixed_in    TEXT    NOT NULL,
    PRIMARY KEY (run, phase, kind, fingerprint)
) STRICT, WITHOUT ROWID;
INSERT INTO findings_next (run, phase, kind, fingerprint, severity, category, rule, file, line, message, confidence, state, first_seen, last_seen, times, fixed_in)
    SELECT run, phase, kind, fingerprint, severity, category, rule, file, line, message, confidence, state, first_seen, last_seen, times, fixed_in FROM findings;
DROP TABLE findings;
ALTER TABLE findings_next RENAME TO findings;
CREATE INDEX findings_category ON findings (category, state);

-- Tests that failed before somebody's work, and that a person has called known: they
-- do not stop a run until they have passed once.
CREATE TABLE known_failures (
    repo  TEXT    NOT NULL,
    test  TEXT    NOT NULL,
    login TEXT    NOT NULL,
    at    INTEGER NOT NULL,
    run   INTEGER NOT NULL REFERENCES runs (id),
    PRIMARY KEY (repo, test)
) STRICT, WITHOUT ROWID;
