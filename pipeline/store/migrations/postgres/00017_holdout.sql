-- +goose Up

-- Whether a run worked without what was learnt: the probability with which that was
-- drawn when it began, 0 for runs for which nothing was drawn, and what came of it.
ALTER TABLE outcomes ADD COLUMN holdout DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE outcomes ADD COLUMN held_out BOOLEAN NOT NULL DEFAULT FALSE;
