-- +goose Up

-- What a signed payload is known by: whoever has seen one can send it again under another
-- GUID, which the signature does not cover. NULL: it may come again.
ALTER TABLE deliveries ADD COLUMN digest BLOB;
CREATE UNIQUE INDEX deliveries_digest ON deliveries (digest) WHERE digest IS NOT NULL;
