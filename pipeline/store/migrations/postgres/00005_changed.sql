-- +goose Up

-- When a learning was last changed, by the database's own clock, in microseconds:
-- servers keep their index in memory right by it.
ALTER TABLE memories ADD COLUMN changed BIGINT NOT NULL DEFAULT 1;
CREATE INDEX memories_changed ON memories (changed);

-- +goose StatementBegin
CREATE FUNCTION forge_memory_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed := CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT);
    RETURN NEW;
END;
$$;
-- +goose StatementEnd

CREATE TRIGGER memories_changed BEFORE INSERT OR UPDATE ON memories FOR EACH ROW EXECUTE FUNCTION forge_memory_changed();
