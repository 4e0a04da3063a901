-- +goose Up

-- What production says is read by another part of the server than the engine.
ALTER TABLE deliveries ADD COLUMN lane TEXT NOT NULL DEFAULT '';

-- An incident's log is what it is; the row is folded from it.
CREATE TABLE incidents (
    id          BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    seq         BIGINT  NOT NULL,
    repo        TEXT    NOT NULL,
    environment TEXT    NOT NULL,
    kind        TEXT    NOT NULL CHECK (kind IN ('anomaly', 'error', 'health')),
    grp         TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('open', 'recovering', 'resolved', 'dismissed')),
    severity    TEXT    NOT NULL CHECK (severity IN ('warning', 'critical')),
    title       TEXT    NOT NULL,
    opened      BIGINT  NOT NULL,
    updated     BIGINT  NOT NULL,
    ended       BIGINT  NOT NULL DEFAULT 0,
    data        TEXT    NOT NULL
);
-- What goes on is one incident.
CREATE UNIQUE INDEX incidents_active ON incidents (grp) WHERE state IN ('open', 'recovering');
CREATE INDEX incidents_repo ON incidents (repo, id);
CREATE INDEX incidents_ended ON incidents (repo, ended);

CREATE TABLE incident_events (
    incident BIGINT  NOT NULL REFERENCES incidents (id),
    seq      BIGINT  NOT NULL,
    type     TEXT    NOT NULL,
    at       BIGINT  NOT NULL,
    data     TEXT    NOT NULL,
    PRIMARY KEY (incident, seq)
);

-- What was brought where, by whomever. succeeded is 0 while it has not.
CREATE TABLE deployments (
    repo        TEXT    NOT NULL,
    id          BIGINT  NOT NULL,
    environment TEXT    NOT NULL,
    sha         TEXT    NOT NULL,
    ref         TEXT    NOT NULL,
    task        TEXT    NOT NULL,
    creator     TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    created     BIGINT  NOT NULL,
    changed     BIGINT  NOT NULL,
    succeeded   BIGINT  NOT NULL DEFAULT 0,
    previous    TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (repo, id)
);
CREATE INDEX deployments_environment ON deployments (repo, environment, succeeded);
