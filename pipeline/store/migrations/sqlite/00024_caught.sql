-- +goose Up

-- Of what a run's first review raised, more was confirmed than not. Of older runs it is not
-- known, on either side of what is compared.
ALTER TABLE outcomes ADD COLUMN caught INTEGER NOT NULL DEFAULT 0;
