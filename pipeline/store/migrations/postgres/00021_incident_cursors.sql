-- +goose Up

-- How far a subscriber has come in each incident. Those of before are not told.
CREATE TABLE incident_cursors (
    name     TEXT    NOT NULL,
    incident BIGINT NOT NULL REFERENCES incidents (id),
    seq      BIGINT NOT NULL,
    PRIMARY KEY (name, incident)
);
CREATE INDEX incident_cursors_incident ON incident_cursors (incident);
INSERT INTO incident_cursors (name, incident, seq) SELECT s.name, i.id, i.seq FROM subscribers s CROSS JOIN incidents i;
