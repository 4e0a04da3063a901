-- +goose Up

-- Each list that people choose is a stretch of an index, at any page: runs by
-- state, by repository and state, deliveries by repository.
CREATE INDEX runs_state ON runs (state, id);
CREATE INDEX runs_repo_state ON runs (repo, state, id);
CREATE INDEX deliveries_repo ON deliveries (repo, id);

-- Who is asked first, so that a list of questions needs no run.
ALTER TABLE gates ADD COLUMN asked TEXT NOT NULL DEFAULT '';
UPDATE gates SET asked = COALESCE((SELECT e.data::jsonb -> 'gate' -> 'for' ->> 'login' FROM events e
    WHERE e.run = gates.run AND e.type = 'gate.requested' AND e.data::jsonb -> 'gate' ->> 'id' = gates.id LIMIT 1), '') WHERE NOT closed;

-- The sums of a day in one piece: a report reads as many rows as there are days,
-- not one for each sum. What has none, or an empty one, is read from the sums.
CREATE TABLE metric_days (
    repo TEXT   NOT NULL,
    day  BIGINT NOT NULL,
    sums BYTEA  NOT NULL,
    PRIMARY KEY (repo, day)
);
