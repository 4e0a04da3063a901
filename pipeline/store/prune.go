package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// pruneAtOnce is how many deliveries, or runs, one transaction looks at: the one
// writer of SQLite has others to serve.
const pruneAtOnce = 500

// quietKept is for how long a delivery that nothing followed from is known without its payload.
const quietKept = 90 * 24 * time.Hour

const (
	// pruneStep finds the end of the next deliveries and when the first of them came.
	pruneStep = `SELECT COALESCE(MAX(id), 0), COALESCE(MIN(received), 0) FROM (SELECT id, received FROM deliveries WHERE id > $1 ORDER BY id LIMIT $2) AS next`
	pruneRows = `UPDATE deliveries SET payload = $4 WHERE id > $1 AND id <= $2 AND state = 'done' AND finished < $3 AND LENGTH(payload) > 0`
	// What nothing followed from is not looked up again.
	pruneQuiet = `DELETE FROM deliveries WHERE id > $1 AND id <= $2 AND state = 'done' AND finished < $3 AND quiet`
	pruneRuns  = `SELECT id FROM runs WHERE NOT (` + active + `) AND updated < $1 AND EXISTS (SELECT 1 FROM tape WHERE tape.run = runs.id) ORDER BY id LIMIT $2`
	pruneTape  = `DELETE FROM tape WHERE run = $1`

	pruneIncidents   = `SELECT id FROM incidents WHERE ended > 0 AND ended < $1 ORDER BY id LIMIT $2`
	pruneIncident    = `DELETE FROM incidents WHERE id = $1`
	pruneEvents      = `DELETE FROM incident_events WHERE incident = $1`
	pruneCursors     = `DELETE FROM incident_cursors WHERE incident = $1`
	pruneBakes       = `DELETE FROM bakes WHERE follow_until < $1`
	pruneDeployments = `DELETE FROM deployments WHERE created < $1 AND EXISTS (SELECT 1 FROM deployments o
		WHERE o.repo = deployments.repo AND o.environment = deployments.environment AND o.succeeded > deployments.succeeded)`
)

// PruneDeliveries deletes the payloads of deliveries that were done before a time,
// and reports of how many. The rest of them stays, so that a repeat is still known
// and its outcome can be looked up; of those that nothing followed from for three
// months more. What waits or is dead stays whole.
func (d *DB) PruneDeliveries(ctx context.Context, before time.Time) (int64, error) {
	var all, last int64
	for {
		var end, received int64
		if err := d.reader.QueryRowContext(ctx, pruneStep, last, pruneAtOnce).Scan(&end, &received); err != nil {
			return all, fmt.Errorf("find old deliveries: %w", err)
		}
		if end == 0 || received >= micros(before) { // they are in the order of arrival
			return all, nil
		}
		n, err := d.change(ctx, nil, pruneRows, last, end, micros(before), []byte{})
		if err != nil {
			return all, fmt.Errorf("delete payloads of old deliveries: %w", err)
		}
		if _, err := d.change(ctx, nil, pruneQuiet, last, end, micros(before.Add(-quietKept))); err != nil {
			return all, fmt.Errorf("delete old deliveries that nothing followed from: %w", err)
		}
		all, last = all+n, end
	}
}

// PruneTapes deletes the model calls of runs that ended, and did not change any
// more, before a time, and reports of how many runs. They cannot be replayed then;
// their events stay.
func (d *DB) PruneTapes(ctx context.Context, before time.Time) (runs int, err error) {
	for {
		ids, err := d.idsOf(ctx, "find runs with old tapes", pruneRuns, before)
		if err != nil || len(ids) == 0 {
			return runs, err
		}
		for _, id := range ids {
			if _, err := d.change(ctx, nil, pruneTape, id); err != nil {
				return runs, fmt.Errorf("delete the tape of run %d: %w", id, err)
			}
			runs++
		}
	}
}

// idsOf are the next ones that a query finds before a time.
func (d *DB) idsOf(ctx context.Context, doing, query string, before time.Time) ([]int64, error) {
	rows, err := d.reader.QueryContext(ctx, query, micros(before), pruneAtOnce)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(id *int64) error { return rows.Scan(id) })
}

// PruneProduction deletes the incidents that ended before a time, the watches that were
// over by then, and the deployments of before it, and reports of how many incidents. What
// runs in an environment is never deleted.
func (d *DB) PruneProduction(ctx context.Context, before time.Time) (incidents int, err error) {
	for {
		ids, err := d.idsOf(ctx, "find old incidents", pruneIncidents, before)
		if err != nil {
			return incidents, err
		}
		for _, id := range ids {
			err := d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
				for _, query := range []string{pruneEvents, pruneCursors, pruneIncident} {
					if _, err := d.exec(ctx, tx, query, id); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return incidents, fmt.Errorf("delete incident %d: %w", id, err)
			}
			incidents++
		}
		if len(ids) == 0 {
			break
		}
	}
	for _, query := range []string{pruneBakes, pruneDeployments} {
		if _, err := d.change(ctx, nil, query, micros(before)); err != nil {
			return incidents, fmt.Errorf("delete old deployments: %w", err)
		}
	}
	return incidents, nil
}
