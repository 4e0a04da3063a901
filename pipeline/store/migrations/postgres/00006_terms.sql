-- +goose Up

-- What learnings are about, by terms, so that a signal finds those that it may
-- touch without reading the others: key words, and files by category. size is
-- the number of the learning's key words. memories.terms is the same by learning;
-- '' is one that was kept before there were any.
CREATE TABLE memory_terms (
    scope    TEXT    NOT NULL,
    term     TEXT    NOT NULL,
    learning BIGINT  NOT NULL REFERENCES memories (id),
    size     BIGINT NOT NULL,
    PRIMARY KEY (scope, term, learning)
);
ALTER TABLE memories ADD COLUMN terms TEXT NOT NULL DEFAULT '';
CREATE INDEX memories_termless ON memories (scope) WHERE terms = '';
CREATE INDEX signals_at ON signals (scope, at);
