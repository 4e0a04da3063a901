package store

import (
	"context"
	"fmt"
	"time"

	"forge/pipeline"
)

// Scopes lists the scopes that anything was ever remembered of, by name.
func (d *DB) Scopes(ctx context.Context) ([]string, error) {
	const doing = "list the scopes of the memory"
	rows, err := d.reader.QueryContext(ctx, `SELECT DISTINCT scope FROM memories ORDER BY scope`)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(s *string) error { return rows.Scan(s) })
}

// Use is a phase that recalled a learning: what it was given for, and whether it
// was of use.
type Use struct {
	Run       int64          `json:"run"`
	Repo      string         `json:"repo"`  // of the run
	State     pipeline.State `json:"state"` // of the run, now
	Phase     pipeline.Phase `json:"phase"`
	Iteration int            `json:"iteration"`
	Role      string         `json:"role"`
	Withheld  bool           `json:"withheld,omitempty"` // left out at random, to measure what it is worth
	Used      bool           `json:"used,omitempty"`
	At        time.Time      `json:"at"`
}

// Uses lists the phases that recalled a learning, newest first. A limit of 0 is 100.
func (d *DB) Uses(ctx context.Context, learning int64, limit int) ([]Use, error) {
	doing := fmt.Sprintf("list recalls of learning %d", learning)
	rows, err := d.reader.QueryContext(ctx, `SELECT c.run, r.repo, r.state, c.phase, c.iteration, c.role, c.withheld, c.used, c.at
		FROM recalls c JOIN runs r ON r.id = c.run WHERE c.learning = $1 ORDER BY c.at DESC, c.run DESC, c.iteration DESC, c.phase, c.role LIMIT $2`,
		learning, limitOr(limit, 100))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(u *Use) error {
		var at int64
		err := rows.Scan(&u.Run, &u.Repo, &u.State, &u.Phase, &u.Iteration, &u.Role, &u.Withheld, &u.Used, &at)
		u.At = fromMicros(at)
		return err
	})
}
