-- +goose Up

-- A person's word is for the error that they were shown, and names where they said it.
-- What was called known before has no error, and covers nothing: it is asked once more.
ALTER TABLE known_failures ADD COLUMN error TEXT NOT NULL DEFAULT '';
ALTER TABLE known_failures ADD COLUMN pull INTEGER NOT NULL DEFAULT 0;
ALTER TABLE known_failures ADD COLUMN head TEXT NOT NULL DEFAULT '';
