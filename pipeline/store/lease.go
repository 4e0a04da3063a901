package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

const (
	takeLease  = `UPDATE runs SET lease_owner = $2, lease_until = $3 WHERE id = $1 AND (lease_owner = '' OR lease_until <= $4)`
	renewLease = `UPDATE runs SET lease_until = $3 WHERE id = $1 AND lease_owner = $2`
	endLease   = `UPDATE runs SET lease_owner = '', lease_until = 0, due = $4 WHERE id = $1 AND lease_owner = $2 AND seq = $3`
	dropLease  = `UPDATE runs SET lease_owner = '', lease_until = 0 WHERE id = $1 AND lease_owner = $2`
	clearLease = `UPDATE runs SET lease_owner = '', lease_until = 0 WHERE lease_owner <> ''`
	hasten     = `UPDATE runs SET due = $1 WHERE due > $1`
	selectOff  = `SELECT id, seq FROM runs work WHERE due > $1 AND state = 'running' AND waits LIKE $2 AND` + notPaused + ` ORDER BY due, id LIMIT 1000`
	selectHeld = `SELECT lease_owner, lease_until FROM runs WHERE id = $1 AND lease_owner <> '' AND lease_until > $2`
	selectDue  = `SELECT id, parent FROM runs work WHERE due > 0 AND due <= $1 AND (lease_owner = '' OR lease_until <= $1) AND` + notPaused + ` ORDER BY due, id LIMIT $2`
)

// Lease makes owner the one that may advance the run, until now+ttl. It is false
// when the run has an owner whose lease has not run out, also when that is owner
// itself: give every worker a name of its own.
func (d *DB) Lease(ctx context.Context, run int64, owner string, now time.Time, ttl time.Duration) (bool, error) {
	if owner == "" {
		return false, fmt.Errorf("lease run %d: no owner given", run)
	}
	return d.lease(ctx, "lease", run, takeLease, run, owner, micros(now.Add(ttl)), micros(now))
}

// Renew extends owner's lease to now+ttl. It is false when another has taken the
// run over: owner must stop at once.
func (d *DB) Renew(ctx context.Context, run int64, owner string, now time.Time, ttl time.Duration) (bool, error) {
	return d.lease(ctx, "renew lease of", run, renewLease, run, owner, micros(now.Add(ttl)))
}

// Holder returns who may advance the run, and until when, unless they extend that; ""
// for nobody.
func (d *DB) Holder(ctx context.Context, run int64, now time.Time) (owner string, until time.Time, err error) {
	var at int64
	err = d.reader.QueryRowContext(ctx, selectHeld, run, micros(now)).Scan(&owner, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return "", time.Time{}, nil
	}
	if err != nil {
		return "", time.Time{}, fmt.Errorf("who holds run %d: %w", run, err)
	}
	return owner, time.UnixMicro(at).UTC(), nil
}

// Release ends owner's lease of a run that has nothing more to do after event
// seq. It is false, and the lease goes on, when more events have arrived since;
// it is false, too, when owner has lost the lease.
func (d *DB) Release(ctx context.Context, run int64, owner string, seq int64) (bool, error) {
	return d.lease(ctx, "release", run, endLease, run, owner, seq, 0)
}

// Postpone is Release for a run that has to be looked at again at a later time,
// or as soon as an event arrives.
func (d *DB) Postpone(ctx context.Context, run int64, owner string, seq int64, until time.Time) (bool, error) {
	return d.lease(ctx, "postpone", run, endLease, run, owner, seq, max(1, micros(until)))
}

// Drop ends owner's lease and leaves the run as due as it is: another worker
// goes on with it at once.
func (d *DB) Drop(ctx context.Context, run int64, owner string) error {
	_, err := d.lease(ctx, "drop", run, dropLease, run, owner)
	return err
}

func (d *DB) lease(ctx context.Context, doing string, run int64, query string, args ...any) (bool, error) {
	n, err := d.change(ctx, nil, query, args...)
	if err != nil {
		return false, fmt.Errorf("%s run %d: %w", doing, run, err)
	}
	return n == 1, nil
}

// Due lists runs that have something to do and nobody who does it, ended ones
// included: their end may have to be published; what is paused is not. The longest due come first; parts are
// those that build modules of others.
func (d *DB) Due(ctx context.Context, now time.Time, limit int) (runs, parts []int64, err error) {
	rows, err := d.reader.QueryContext(ctx, selectDue, micros(now), limitOr(limit, 100))
	if err != nil {
		return nil, nil, fmt.Errorf("list due runs: %w", err)
	}
	list, err := collect(rows, "list due runs", func(r *[2]int64) error { return rows.Scan(&r[0], &r[1]) })
	for _, r := range list {
		if r[1] == 0 {
			runs = append(runs, r[0])
		} else {
			parts = append(parts, r[0])
		}
	}
	return runs, parts, err
}

// Hasten makes the runs that are to be looked at later due at once.
func (d *DB) Hasten(ctx context.Context, now time.Time) error {
	if _, err := d.change(ctx, nil, hasten, micros(now)); err != nil {
		return fmt.Errorf("make runs due: %w", err)
	}
	return nil
}

// PutOff lists the runs that are to be looked at later and whose wait begins with these words, with
// the number of their last event; what is paused is not.
func (d *DB) PutOff(ctx context.Context, now time.Time, waits string) ([][2]int64, error) {
	rows, err := d.reader.QueryContext(ctx, selectOff, micros(now), waits+"%")
	if err != nil {
		return nil, fmt.Errorf("list runs that wait: %w", err)
	}
	return collect(rows, "list runs that wait", func(r *[2]int64) error { return rows.Scan(&r[0], &r[1]) })
}

// ClearLeases ends all leases after a restart: an SQLite file has one server, so
// whoever held them is gone. On PostgreSQL it does nothing: they run out.
func (d *DB) ClearLeases(ctx context.Context) error {
	if d.dialect == dialectPostgres {
		return nil
	}
	if _, err := d.change(ctx, nil, clearLease); err != nil {
		return fmt.Errorf("clear leases: %w", err)
	}
	return nil
}
