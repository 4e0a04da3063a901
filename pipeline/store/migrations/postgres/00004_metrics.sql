-- +goose Up

-- What each day's observations add up to, by repository and, with repo '', for
-- all. A period is the sum of its days; the rows outlive the events.
CREATE TABLE metric_snapshots (
    repo    TEXT   NOT NULL,
    day     BIGINT NOT NULL,
    metric  TEXT   NOT NULL,
    label   TEXT   NOT NULL,
    bucket  BIGINT NOT NULL,
    n       BIGINT NOT NULL,
    total   BIGINT NOT NULL,
    squares DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (repo, day, metric, label, bucket)
);
