package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
)

// Ship is the row of the way of a run's work into production.
type Ship struct {
	Run    int64
	Repo   string // "owner/name"
	Seq    int64  // of its last change; 0: it is new
	Active bool   // it goes on
	Busy   bool   // it merges or deploys: one of a repository does
	Data   []byte // JSON
}

const (
	insertShip = `INSERT INTO ships (run, repo, seq, active, busy, data) VALUES ($1, $2, 1, $3, $4, $5) ON CONFLICT DO NOTHING`
	updateShip = `UPDATE ships SET seq = seq + 1, active = $3, busy = $4, data = $5 WHERE run = $1 AND seq = $2
		AND ($4 = 0 OR NOT EXISTS (SELECT 1 FROM ships o WHERE o.repo = ships.repo AND o.busy = 1 AND o.run <> ships.run))`
	selectShip = `SELECT run, repo, seq, active, busy, data FROM ships `
)

// SaveShip writes the row, and counts Seq on. The error is ErrConflict when somebody
// else has written since it was read, or another one of the repository is busy.
func (d *DB) SaveShip(ctx context.Context, v *Ship) error {
	number := map[bool]int{true: 1}
	return d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		query, args := insertShip, []any{v.Run, clean(v.Repo), number[v.Active], number[v.Busy], clean(string(v.Data))}
		if v.Seq > 0 {
			query, args = updateShip, []any{v.Run, v.Seq, number[v.Active], number[v.Busy], clean(string(v.Data))}
		}
		n, err := d.exec(ctx, tx, query, args...)
		if err == nil && n == 0 {
			err = ErrConflict
		}
		if err != nil {
			return fmt.Errorf("save how run %d is shipped: %w", v.Run, err)
		}
		v.Seq++
		return nil
	})
}

// Ship returns how a run's work is shipped. The error is ErrNotFound when it is not.
func (d *DB) Ship(ctx context.Context, run int64) (*Ship, error) {
	var v Ship
	err := v.scan(d.reader.QueryRowContext(ctx, selectShip+"WHERE run = $1", run))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read how run %d is shipped: %w", run, err)
	}
	return &v, nil
}

// ActiveShips lists those that go on, oldest first: of these repositories, nil for all.
func (d *DB) ActiveShips(ctx context.Context, repos []string) ([]Ship, error) {
	if repos != nil && len(repos) == 0 {
		return nil, nil
	}
	var args []any
	rows, err := d.reader.QueryContext(ctx, selectShip+"WHERE active = 1"+ofRepos("repo", slices.Clone(repos), &args)+" ORDER BY run", args...)
	if err != nil {
		return nil, fmt.Errorf("list what is shipped: %w", err)
	}
	return collect(rows, "list what is shipped", func(v *Ship) error { return v.scan(rows) })
}

// Ships lists all, oldest first.
func (d *DB) Ships(ctx context.Context) ([]Ship, error) {
	rows, err := d.reader.QueryContext(ctx, selectShip+"ORDER BY run")
	if err != nil {
		return nil, fmt.Errorf("list what was shipped: %w", err)
	}
	return collect(rows, "list what was shipped", func(v *Ship) error { return v.scan(rows) })
}

func (v *Ship) scan(row interface{ Scan(...any) error }) error {
	var active, busy int64
	err := row.Scan(&v.Run, &v.Repo, &v.Seq, &active, &busy, &v.Data)
	v.Active, v.Busy = active == 1, busy == 1
	return err
}
