-- +goose Up

-- "Forg": tells a Forge database from any other SQLite file.
PRAGMA application_id = 1181708903;

CREATE TABLE runs (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    key         TEXT    NOT NULL UNIQUE,
    trace       TEXT    NOT NULL,
    seq         INTEGER NOT NULL,
    repo_id     INTEGER NOT NULL,
    repo        TEXT    NOT NULL,
    issue       INTEGER NOT NULL,
    title       TEXT    NOT NULL,
    branch      TEXT    NOT NULL,
    pull        INTEGER NOT NULL DEFAULT 0,
    state       TEXT    NOT NULL CHECK (state IN ('running', 'waiting', 'stopped', 'verified', 'accepted', 'cancelled', 'failed', 'skipped')),
    phase       TEXT    NOT NULL DEFAULT '',
    iteration   INTEGER NOT NULL DEFAULT 0,
    micro_usd   INTEGER NOT NULL DEFAULT 0,
    started     INTEGER NOT NULL,
    updated     INTEGER NOT NULL,
    due         INTEGER NOT NULL DEFAULT 1,
    lease_owner TEXT    NOT NULL DEFAULT '',
    lease_until INTEGER NOT NULL DEFAULT 0
) STRICT;

-- One active run for an issue. A local repository has no number: its name counts.
CREATE UNIQUE INDEX runs_active ON runs (repo_id, issue)
    WHERE issue > 0 AND repo_id <> 0 AND state IN ('running', 'waiting', 'stopped');
CREATE UNIQUE INDEX runs_active_local ON runs (repo, issue)
    WHERE issue > 0 AND repo_id = 0 AND state IN ('running', 'waiting', 'stopped');
CREATE INDEX runs_issue ON runs (repo_id, issue);
CREATE INDEX runs_pull ON runs (repo_id, pull);
CREATE INDEX runs_branch ON runs (repo_id, branch);
CREATE INDEX runs_repo ON runs (repo, id);
CREATE INDEX runs_due ON runs (due, id) WHERE due > 0;

-- Clustered by run: a replay reads neighbouring pages.
CREATE TABLE events (
    run    INTEGER NOT NULL REFERENCES runs (id),
    seq    INTEGER NOT NULL,
    id     TEXT    NOT NULL,
    type   TEXT    NOT NULL,
    source TEXT    NOT NULL,
    time   INTEGER NOT NULL,
    data   TEXT    NOT NULL,
    PRIMARY KEY (run, seq),
    UNIQUE (run, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE findings (
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
    state       TEXT    NOT NULL CHECK (state IN ('open', 'fixed', 'dismissed', 'accepted')),
    first_seen  INTEGER NOT NULL,
    last_seen   INTEGER NOT NULL,
    times       INTEGER NOT NULL,
    fixed_in    TEXT    NOT NULL,
    PRIMARY KEY (run, phase, kind, fingerprint)
) STRICT, WITHOUT ROWID;
CREATE INDEX findings_category ON findings (category, state);

CREATE TABLE bounces (
    run       INTEGER NOT NULL REFERENCES runs (id),
    n         INTEGER NOT NULL,
    phase     TEXT    NOT NULL,
    number    INTEGER NOT NULL,
    iteration INTEGER NOT NULL,
    blocking  INTEGER NOT NULL,
    weight    INTEGER NOT NULL,
    issues    TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    resolved  INTEGER NOT NULL CHECK (resolved IN (0, 1)),
    PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE gates (
    run      INTEGER NOT NULL REFERENCES runs (id),
    id       TEXT    NOT NULL,
    kind     TEXT    NOT NULL,
    guard    TEXT    NOT NULL,
    question TEXT    NOT NULL,
    opened   INTEGER NOT NULL,
    closed   INTEGER NOT NULL CHECK (closed IN (0, 1)),
    answers  INTEGER NOT NULL,
    choice   TEXT    NOT NULL,
    actor_id INTEGER NOT NULL,
    actor    TEXT    NOT NULL,
    answered INTEGER NOT NULL,
    PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX gates_open ON gates (opened) WHERE closed = 0;

CREATE TABLE feedback_events (
    run      INTEGER NOT NULL REFERENCES runs (id),
    seq      INTEGER NOT NULL,
    type     TEXT    NOT NULL,
    actor_id INTEGER NOT NULL,
    actor    TEXT    NOT NULL,
    gate     TEXT    NOT NULL,
    finding  TEXT    NOT NULL,
    choice   TEXT    NOT NULL,
    text     TEXT    NOT NULL,
    via      TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX feedback_events_type ON feedback_events (type, at);

CREATE TABLE deliveries (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    guid     TEXT    NOT NULL UNIQUE,
    event    TEXT    NOT NULL,
    action   TEXT    NOT NULL,
    repo     TEXT    NOT NULL,
    received INTEGER NOT NULL,
    state    TEXT    NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'done', 'dead')),
    attempts INTEGER NOT NULL DEFAULT 0,
    next     INTEGER NOT NULL DEFAULT 0,
    outcome  TEXT    NOT NULL DEFAULT '',
    error    TEXT    NOT NULL DEFAULT '',
    finished INTEGER NOT NULL DEFAULT 0,
    payload  BLOB    NOT NULL
) STRICT;
CREATE INDEX deliveries_waiting ON deliveries (id) WHERE state = 'waiting';
CREATE INDEX deliveries_dead ON deliveries (id) WHERE state = 'dead';

CREATE TABLE tape (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    run  INTEGER NOT NULL REFERENCES runs (id),
    key  TEXT    NOT NULL,
    step INTEGER NOT NULL,
    hash TEXT    NOT NULL,
    data BLOB    NOT NULL,
    UNIQUE (run, key, step)
) STRICT;
