-- +goose Up

-- What a run's phase waits for outside of Forge, in a few words, and until when. Of older runs it is
-- not known until their next event.
ALTER TABLE runs ADD COLUMN waits TEXT NOT NULL DEFAULT '';
