package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// Bake is the row of the watch over a deployment.
type Bake struct {
	Repo       string // "owner/name"
	Deployment int64  // GitHub's
	Seq        int64  // of its last change; 0: it is new
	Follow     time.Time
	Data       []byte // JSON
}

const (
	insertBake = `INSERT INTO bakes (repo, deployment, seq, follow_until, data) VALUES ($1, $2, 1, $3, $4) ON CONFLICT DO NOTHING`
	updateBake = `UPDATE bakes SET seq = seq + 1, follow_until = $4, data = $5 WHERE repo = $1 AND deployment = $2 AND seq = $3`
	selectBake = `SELECT repo, deployment, seq, follow_until, data FROM bakes `
)

// SaveBake writes the row, and counts Seq on. The error is ErrConflict when somebody
// else has written since it was read.
func (d *DB) SaveBake(ctx context.Context, v *Bake) error {
	return d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		query, args := insertBake, []any{clean(v.Repo), v.Deployment, micros(v.Follow), clean(string(v.Data))}
		if v.Seq > 0 {
			query, args = updateBake, []any{clean(v.Repo), v.Deployment, v.Seq, micros(v.Follow), clean(string(v.Data))}
		}
		n, err := d.exec(ctx, tx, query, args...)
		if err == nil && n == 0 {
			err = ErrConflict
		}
		if err != nil {
			return fmt.Errorf("save the watch over deployment %d: %w", v.Deployment, err)
		}
		v.Seq++
		return nil
	})
}

// BakeFilter chooses bakes. Zero fields choose all.
type BakeFilter struct {
	Repo  string
	Repos []string
	Since time.Time // something may have changed after it
	Limit int       // 0: 100
}

// Bakes lists the watches over deployments, newest first.
func (d *DB) Bakes(ctx context.Context, f BakeFilter) ([]Bake, error) {
	repos := (Filter{Repo: f.Repo, Repos: f.Repos}).repos()
	if repos != nil && len(repos) == 0 {
		return nil, nil
	}
	args := []any{micros(f.Since)}
	where := "follow_until >= $1" + ofRepos("repo", slices.Clone(repos), &args)
	args = append(args, limitOr(f.Limit, 100))
	rows, err := d.reader.QueryContext(ctx, selectBake+fmt.Sprintf("WHERE %s ORDER BY follow_until DESC, deployment DESC LIMIT $%d", where, len(args)), args...)
	if err != nil {
		return nil, fmt.Errorf("list the watches over deployments: %w", err)
	}
	return collect(rows, "list the watches over deployments", func(v *Bake) error {
		var follow int64
		err := rows.Scan(&v.Repo, &v.Deployment, &v.Seq, &follow, &v.Data)
		v.Follow = fromMicros(follow)
		return err
	})
}
