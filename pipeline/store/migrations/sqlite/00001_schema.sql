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
    lease_until INTEGER NOT NULL DEFAULT 0,
    unpriced    INTEGER NOT NULL DEFAULT 0, -- tokens of models without a price: what they cost is not in micro_usd
    parent      INTEGER NOT NULL DEFAULT 0, -- of a run that builds a module: the run whose plan it is of
    part        TEXT    NOT NULL DEFAULT '', -- and which module
    waits       TEXT    NOT NULL DEFAULT ''  -- what its phase waits for outside of Forge, in a few words, and until when
) STRICT;

-- One active run for an issue. A local repository has no number: its name counts.
CREATE UNIQUE INDEX runs_active ON runs (repo_id, issue)
    WHERE issue > 0 AND repo_id <> 0 AND state IN ('running', 'waiting', 'stopped');
CREATE UNIQUE INDEX runs_active_local ON runs (repo, issue)
    WHERE issue > 0 AND repo_id = 0 AND state IN ('running', 'waiting', 'stopped');
CREATE INDEX runs_issue ON runs (repo_id, issue);
CREATE INDEX runs_pull ON runs (repo_id, pull);
CREATE INDEX runs_branch ON runs (repo_id, branch);
CREATE INDEX runs_due ON runs (due, id) WHERE due > 0;
CREATE INDEX runs_parent ON runs (parent, id) WHERE parent <> 0;
-- Each list that people choose is a stretch of an index, at any page.
CREATE INDEX runs_repo ON runs (repo, id, parent);
CREATE INDEX runs_state ON runs (state, id, parent);
CREATE INDEX runs_repo_state ON runs (repo, state, id, parent);

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
    state       TEXT    NOT NULL CHECK (state IN ('open', 'fixed', 'withdrawn', 'dismissed', 'accepted')),
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
    asked    TEXT    NOT NULL DEFAULT '', -- who is asked first
    PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX gates_open ON gates (opened) WHERE NOT closed; -- used where the condition stands as it is written here

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
    payload  BLOB    NOT NULL,
    -- Most of what GitHub sends concerns nothing that Forge does. A list leaves it out
    -- unless somebody asks for it; indexes hold the others alone.
    quiet    INTEGER NOT NULL DEFAULT 0 CHECK (quiet IN (0, 1)),
    lane     TEXT    NOT NULL DEFAULT '' -- what production says is read by another part of the server than the engine
) STRICT;
CREATE INDEX deliveries_waiting ON deliveries (id) WHERE state = 'waiting';
CREATE INDEX deliveries_dead ON deliveries (id) WHERE state = 'dead';
CREATE INDEX deliveries_repo ON deliveries (repo, id);
CREATE INDEX deliveries_heard ON deliveries (id) WHERE NOT quiet;
CREATE INDEX deliveries_heard_repo ON deliveries (repo, id) WHERE NOT quiet;

CREATE TABLE tape (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    run  INTEGER NOT NULL REFERENCES runs (id),
    key  TEXT    NOT NULL,
    step INTEGER NOT NULL,
    hash TEXT    NOT NULL,
    data BLOB    NOT NULL,
    UNIQUE (run, key, step)
) STRICT;

-- What model calls cost, by day (UTC, as 20260102): the caps on a day and a month
-- are held against it, and it outlives the events that it was summed from.
CREATE TABLE spend (
    day       INTEGER NOT NULL PRIMARY KEY,
    micro_usd INTEGER NOT NULL
);

-- Tests that failed before somebody's work, and that a person has called known: they
-- do not stop a run until they have passed once.
CREATE TABLE known_failures (
    repo  TEXT    NOT NULL,
    test  TEXT    NOT NULL,
    login TEXT    NOT NULL,
    at    INTEGER NOT NULL,
    run   INTEGER NOT NULL REFERENCES runs (id),
    error TEXT    NOT NULL DEFAULT '', -- what the person was shown: their word is for it alone
    pull  INTEGER NOT NULL DEFAULT 0,  -- where they said it
    head  TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (repo, test)
) STRICT, WITHOUT ROWID;

-- How often something happened in one place (an issue, a conversation) since a moment.
CREATE TABLE turns (
    place TEXT    NOT NULL PRIMARY KEY,
    since INTEGER NOT NULL,
    n     INTEGER NOT NULL
) STRICT;

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
    changed    INTEGER NOT NULL DEFAULT 1,  -- by the database's own clock, in microseconds: servers keep their index in memory right by it
    terms      TEXT    NOT NULL DEFAULT '', -- its rows of memory_terms: JSON
    cites      TEXT    NOT NULL DEFAULT '', -- the code that it is about, as it stood when that was learnt: JSON
    UNIQUE (scope, key)
) STRICT;
CREATE INDEX memories_scope ON memories (scope, state);
CREATE INDEX memories_signal ON memories (scope, signal) WHERE signal <> '';
CREATE INDEX memories_finding ON memories (finding) WHERE finding <> '';
CREATE INDEX memories_changed ON memories (changed);

-- Their words. The scope is a term of the index, so that a search reads the
-- postings of its own scope only; rowid is the learning's id.
CREATE VIRTUAL TABLE memories_text USING fts5 (scope, words, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2');

CREATE TRIGGER memories_inserted AFTER INSERT ON memories
BEGIN
    UPDATE memories SET changed = CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000 WHERE id = NEW.id;
END;

CREATE TRIGGER memories_updated AFTER UPDATE ON memories WHEN NEW.changed = OLD.changed
BEGIN
    UPDATE memories SET changed = CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000 WHERE id = NEW.id;
END;

-- What learnings are about, by terms, so that a signal finds those that it may
-- touch without reading the others: key words, and files by category. size is
-- the number of the learning's key words.
CREATE TABLE memory_terms (
    scope    TEXT    NOT NULL,
    term     TEXT    NOT NULL,
    learning INTEGER NOT NULL REFERENCES memories (id),
    size     INTEGER NOT NULL,
    PRIMARY KEY (scope, term, learning)
) STRICT, WITHOUT ROWID;

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
CREATE INDEX signals_at ON signals (scope, at);

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
    at         INTEGER NOT NULL,
    holdout    REAL    NOT NULL DEFAULT 0, -- the probability with which working without what was learnt was drawn; 0: nothing was drawn
    held_out   INTEGER NOT NULL DEFAULT 0 CHECK (held_out IN (0, 1)), -- what came of it
    caught     INTEGER NOT NULL DEFAULT 0 -- of what its first review raised, more was confirmed than not
) STRICT;

-- How far a reader of the log has come in each run.
CREATE TABLE cursors (
    name TEXT    NOT NULL,
    run  INTEGER NOT NULL REFERENCES runs (id),
    seq  INTEGER NOT NULL,
    PRIMARY KEY (name, run)
) STRICT, WITHOUT ROWID;

-- What each day's observations add up to, by repository and, with repo '', for
-- all. A period is the sum of its days; the rows outlive the events.
CREATE TABLE metric_snapshots (
    repo    TEXT    NOT NULL,
    day     INTEGER NOT NULL,
    metric  TEXT    NOT NULL,
    label   TEXT    NOT NULL,
    bucket  INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    total   INTEGER NOT NULL,
    squares REAL    NOT NULL,
    PRIMARY KEY (repo, day, metric, label, bucket)
) STRICT, WITHOUT ROWID;

-- The sums of a day in one piece: a report reads as many rows as there are days,
-- not one for each sum.
CREATE TABLE metric_days (
    repo TEXT    NOT NULL,
    day  INTEGER NOT NULL,
    sums BLOB    NOT NULL,
    PRIMARY KEY (repo, day)
) STRICT, WITHOUT ROWID;

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

-- An incident's log is what it is; the row is folded from it.
CREATE TABLE incidents (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    seq         INTEGER NOT NULL,
    repo        TEXT    NOT NULL,
    environment TEXT    NOT NULL,
    kind        TEXT    NOT NULL CHECK (kind IN ('anomaly', 'error', 'health')),
    grp         TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('open', 'recovering', 'resolved', 'dismissed')),
    severity    TEXT    NOT NULL CHECK (severity IN ('warning', 'critical')),
    title       TEXT    NOT NULL,
    opened      INTEGER NOT NULL,
    updated     INTEGER NOT NULL,
    ended       INTEGER NOT NULL DEFAULT 0,
    data        TEXT    NOT NULL
) STRICT;
-- What goes on is one incident.
CREATE UNIQUE INDEX incidents_active ON incidents (grp) WHERE state IN ('open', 'recovering');
CREATE INDEX incidents_repo ON incidents (repo, id);
CREATE INDEX incidents_ended ON incidents (repo, ended);

CREATE TABLE incident_events (
    incident INTEGER NOT NULL REFERENCES incidents (id),
    seq      INTEGER NOT NULL,
    type     TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    data     TEXT    NOT NULL,
    PRIMARY KEY (incident, seq)
) STRICT, WITHOUT ROWID;

-- What was brought where, by whomever. succeeded is 0 while it has not.
CREATE TABLE deployments (
    repo        TEXT    NOT NULL,
    id          INTEGER NOT NULL,
    environment TEXT    NOT NULL,
    sha         TEXT    NOT NULL,
    ref         TEXT    NOT NULL,
    task        TEXT    NOT NULL,
    creator     TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    created     INTEGER NOT NULL,
    changed     INTEGER NOT NULL,
    succeeded   INTEGER NOT NULL DEFAULT 0,
    previous    TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (repo, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX deployments_environment ON deployments (repo, environment, succeeded);

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

-- The way of a run's work into production. active: it goes on; busy: it merges or
-- deploys, which one of a repository does at a time. data is what has happened, as JSON.
CREATE TABLE ships (
    run    INTEGER NOT NULL PRIMARY KEY,
    repo   TEXT    NOT NULL,
    seq    INTEGER NOT NULL,
    active INTEGER NOT NULL,
    busy   INTEGER NOT NULL,
    data   TEXT    NOT NULL
) STRICT;
CREATE INDEX ships_active ON ships (run) WHERE active = 1;
CREATE UNIQUE INDEX ships_busy ON ships (repo) WHERE busy = 1;

-- Who is told of events, by a name of the operator's: since when, which server does it
-- now, and why nobody does any more. How far each has come in a run is in cursors.
CREATE TABLE subscribers (
    name   TEXT    NOT NULL PRIMARY KEY,
    since  INTEGER NOT NULL,
    holder TEXT    NOT NULL DEFAULT '',
    until  INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0, -- since when nothing gets through; 0: it does
    paused TEXT    NOT NULL DEFAULT ''
) STRICT;

-- How far a subscriber has come in each incident.
CREATE TABLE incident_cursors (
    name     TEXT    NOT NULL,
    incident INTEGER NOT NULL REFERENCES incidents (id),
    seq      INTEGER NOT NULL,
    PRIMARY KEY (name, incident)
) STRICT;
CREATE INDEX incident_cursors_incident ON incident_cursors (incident);

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
