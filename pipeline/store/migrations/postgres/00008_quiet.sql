-- +goose Up

-- Most of what GitHub sends concerns nothing that Forge does. A list leaves it out
-- unless somebody asks for it; the indexes hold the others alone.
ALTER TABLE deliveries ADD COLUMN quiet BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX deliveries_heard ON deliveries (id) WHERE NOT quiet;
CREATE INDEX deliveries_heard_repo ON deliveries (repo, id) WHERE NOT quiet;

-- Tokens of models without a price: what they cost is not in micro_usd.
ALTER TABLE runs ADD COLUMN unpriced BIGINT NOT NULL DEFAULT 0;
