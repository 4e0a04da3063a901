-- +goose Up

-- When a learning was last changed, by the database's own clock, in microseconds:
-- servers keep their index in memory right by it.
ALTER TABLE memories ADD COLUMN changed INTEGER NOT NULL DEFAULT 1;
CREATE INDEX memories_changed ON memories (changed);

-- +goose StatementBegin
CREATE TRIGGER memories_inserted AFTER INSERT ON memories
BEGIN
    UPDATE memories SET changed = CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000 WHERE id = NEW.id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER memories_updated AFTER UPDATE ON memories WHEN NEW.changed = OLD.changed
BEGIN
    UPDATE memories SET changed = CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000 WHERE id = NEW.id;
END;
-- +goose StatementEnd
