package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"forge/pipeline"
)

// Tx is a transaction of the database. It is only handed on: to the methods that
// write.
type Tx = sql.Tx

// commitTime is the longest that a transaction which changes learnings is assumed
// to take from a change to its commit. What two servers change at the same time on
// PostgreSQL may become visible in another order than it was done in.
const commitTime = 30 * time.Second

// ChangedLearnings hands on the learnings, in every state, that were changed since
// a call before, whose result since is; 0 hands on all. What was changed just now
// may come more than once, and nothing is left out. An error of take ends it.
func (d *DB) ChangedLearnings(ctx context.Context, since int64, take func(pipeline.Learning) error) (next int64, err error) {
	doing := fmt.Sprintf("list learnings changed since %d", since)
	latest := int64(0) // that another writer cannot come before any more
	if d.dialect == dialectPostgres {
		if err := d.reader.QueryRowContext(ctx, `SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)`).Scan(&latest); err != nil {
			return since, fmt.Errorf("%s: %w", doing, err)
		}
		latest -= commitTime.Microseconds()
	}
	rows, err := d.reader.QueryContext(ctx, `SELECT `+memoryColumns+`, m.changed FROM memories m WHERE m.changed >= $1 ORDER BY m.changed, m.id`, since)
	if err != nil {
		return since, fmt.Errorf("%s: %w", doing, err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	next = since
	for rows.Next() {
		var r memoryRow
		var changed int64
		if err := rows.Scan(r.fields(&changed)...); err != nil {
			return since, fmt.Errorf("%s: %w", doing, err)
		}
		l, err := r.learning()
		if err == nil {
			err = take(l)
		}
		if err != nil {
			return since, fmt.Errorf("%s: learning %d: %w", doing, r.ID, err)
		}
		if d.dialect == dialectSQLite || changed <= latest {
			next = changed
		}
	}
	if err := rows.Err(); err != nil {
		return since, fmt.Errorf("%s: %w", doing, err)
	}
	return next, nil
}

// EvidenceFrom returns what a signal's key says for and against learnings of its
// scope, by learning; what was taken back is there with Off.
func (d *DB) EvidenceFrom(ctx context.Context, scope, key string) ([]pipeline.Evidence, error) {
	doing := fmt.Sprintf("list evidence from signal %s of %s", key, scope)
	rows, err := d.reader.QueryContext(ctx, `SELECT e.learning, m.key, e.key, e.delta, e.why, e.actor_id, e.actor, e.run, e.at, e.off
		FROM evidence e JOIN memories m ON m.id = e.learning WHERE e.key = $1 AND m.scope = $2 ORDER BY e.learning`, clean(key), clean(scope))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return scanEvidence(rows, doing)
}
