-- +goose Up

-- The code that a learning is about, as it stood when that was learnt: JSON, '' for none.
ALTER TABLE memories ADD COLUMN cites TEXT NOT NULL DEFAULT '';
