-- +goose Up

-- How often something happened in one place (an issue, a conversation) since a moment.
CREATE TABLE turns (
    place TEXT    NOT NULL PRIMARY KEY,
    since BIGINT  NOT NULL,
    n     BIGINT  NOT NULL
);
