-- +goose Up

-- A run that builds a module of another one's plan: of which run, and which module. Lists
-- show it with that run.
ALTER TABLE runs ADD COLUMN parent BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN part TEXT NOT NULL DEFAULT '';
CREATE INDEX runs_parent ON runs (parent, id) WHERE parent <> 0;

DROP INDEX runs_repo;
CREATE INDEX runs_repo ON runs (repo, id, parent);
DROP INDEX runs_state;
CREATE INDEX runs_state ON runs (state, id, parent);
DROP INDEX runs_repo_state;
CREATE INDEX runs_repo_state ON runs (repo, state, id, parent);
