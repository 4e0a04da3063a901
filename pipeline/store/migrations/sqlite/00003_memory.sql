-- +goose Up

-- What Forge remembers. A learning's identity on every machine is scope and key.
CREATE TABLE memories (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    scope      TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    type       TEXT    NOT NULL CHECK (type IN ('episodic', 'semantic', 'procedural')),
    category   TEXT    NOT NULL,
    content    TEXT    NOT NULL,
    context    TEXT    NOT NULL,
    paths      TEXT    NOT NULL,
    tags       TEXT    NOT NULL,
    source     TEXT    NOT NULL,
    author_id  INTEGER NOT NULL,
    author     TEXT    NOT NULL,
    bot        INTEGER NOT NULL DEFAULT 0,
    weight     REAL    NOT NULL,
    run        INTEGER NOT NULL,
    signal     TEXT    NOT NULL,
    finding    TEXT    NOT NULL,
    code       TEXT    NOT NULL,
    base       REAL    NOT NULL CHECK (base >= 0 AND base <= 1),
    confidence REAL    NOT NULL CHECK (confidence >= 0 AND confidence <= 1),
    pro        INTEGER NOT NULL,
    contra     INTEGER NOT NULL,
    created    INTEGER NOT NULL,
    touched    INTEGER NOT NULL,
    recalled   INTEGER NOT NULL DEFAULT 0,
    used       INTEGER NOT NULL DEFAULT 0,
    edited     INTEGER NOT NULL DEFAULT 0,
    merged     INTEGER NOT NULL DEFAULT 0,
    state      TEXT    NOT NULL CHECK (state IN ('active', 'withdrawn', 'merged', 'retired', 'forgotten')),
    UNIQUE (scope, key)
) STRICT;
CREATE INDEX memories_scope ON memories (scope, state);
CREATE INDEX memories_signal ON memories (scope, signal) WHERE signal <> '';
CREATE INDEX memories_finding ON memories (finding) WHERE finding <> '';

-- Their words. The scope is a term of the index, so that a search reads the
-- postings of its own scope only; rowid is the learning's id.
CREATE VIRTUAL TABLE memories_text USING fts5 (scope, words, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2');

-- The latest signal of each key.
CREATE TABLE signals (
    scope    TEXT    NOT NULL,
    key      TEXT    NOT NULL,
    kind     TEXT    NOT NULL,
    off      INTEGER NOT NULL CHECK (off IN (0, 1)),
    run      INTEGER NOT NULL,
    category TEXT    NOT NULL,
    finding  TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    data     TEXT    NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX signals_kind ON signals (scope, kind, at);
CREATE INDEX signals_run ON signals (run);

-- What signals say for and against learnings: one row for both.
CREATE TABLE evidence (
    learning INTEGER NOT NULL REFERENCES memories (id),
    key      TEXT    NOT NULL,
    delta    REAL    NOT NULL,
    why      TEXT    NOT NULL,
    actor_id INTEGER NOT NULL,
    actor    TEXT    NOT NULL,
    run      INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    off      INTEGER NOT NULL CHECK (off IN (0, 1)),
    PRIMARY KEY (learning, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX evidence_signal ON evidence (key);

-- Every change of a learning by a person or a rule: who, when, what.
CREATE TABLE memory_history (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    learning INTEGER NOT NULL REFERENCES memories (id),
    at       INTEGER NOT NULL,
    actor_id INTEGER NOT NULL,
    actor    TEXT    NOT NULL,
    what     TEXT    NOT NULL,
    before   TEXT    NOT NULL,
    after    TEXT    NOT NULL
) STRICT;
CREATE INDEX memory_history_learning ON memory_history (learning, id);

-- Which learnings an agent was given, which were withheld to measure them, and
-- which it used.
CREATE TABLE recalls (
    run       INTEGER NOT NULL REFERENCES runs (id),
    phase     TEXT    NOT NULL,
    iteration INTEGER NOT NULL,
    role      TEXT    NOT NULL,
    learning  INTEGER NOT NULL REFERENCES memories (id),
    withheld  INTEGER NOT NULL CHECK (withheld IN (0, 1)),
    used      INTEGER NOT NULL CHECK (used IN (0, 1)),
    at        INTEGER NOT NULL,
    PRIMARY KEY (run, phase, iteration, role, learning)
) STRICT, WITHOUT ROWID;
CREATE INDEX recalls_learning ON recalls (learning, run);

CREATE TABLE reflections (
    run       INTEGER NOT NULL REFERENCES runs (id),
    id        TEXT    NOT NULL,
    trigger   TEXT    NOT NULL,
    now       INTEGER NOT NULL CHECK (now IN (0, 1)),
    learnings TEXT    NOT NULL,
    micro_usd INTEGER NOT NULL,
    refused   TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;

-- What became of runs, to tell what learnings are worth.
CREATE TABLE outcomes (
    run        INTEGER NOT NULL PRIMARY KEY REFERENCES runs (id),
    first_pass INTEGER NOT NULL CHECK (first_pass IN (0, 1)),
    bounces    INTEGER NOT NULL,
    findings   INTEGER NOT NULL,
    dismissed  INTEGER NOT NULL,
    micro_usd  INTEGER NOT NULL,
    at         INTEGER NOT NULL
) STRICT;

-- How far a reader of the log has come in each run.
CREATE TABLE cursors (
    name TEXT    NOT NULL,
    run  INTEGER NOT NULL REFERENCES runs (id),
    seq  INTEGER NOT NULL,
    PRIMARY KEY (name, run)
) STRICT, WITHOUT ROWID;
