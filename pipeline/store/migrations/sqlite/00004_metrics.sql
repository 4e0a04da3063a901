-- +goose Up

-- What each day's observations add up to, by repository and, with repo '', for
-- all. A period is the sum of its days; the rows outlive the events.
CREATE TABLE metric_snapshots (
    repo    TEXT    NOT NULL,
    day     INTEGER NOT NULL,
    metric  TEXT    NOT NULL,
    label   TEXT    NOT NULL,
    bucket  INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    total   INTEGER NOT NULL,
    squares REAL    NOT NULL,
    PRIMARY KEY (repo, day, metric, label, bucket)
) STRICT, WITHOUT ROWID;
