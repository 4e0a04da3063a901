package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

// Seen is a finding as one of the runs has it.
type Seen struct {
	Run      int64               `json:"run"`
	Repo     string              `json:"repo"` // of the run
	Severity pipeline.Severity   `json:"severity"`
	Category pipeline.Category   `json:"category"`
	File     string              `json:"file,omitempty"`
	Line     int                 `json:"line,omitempty"`
	Message  string              `json:"message"`
	State    pipeline.IssueState `json:"state"`
}

// SeenFindings lists where the runs of a repository ("owner/name") have a finding of
// this fingerprint, newest first. A limit of 0 is 100.
func (d *DB) SeenFindings(ctx context.Context, repo, fingerprint string, limit int) ([]Seen, error) {
	const doing = "list runs with a finding"
	rows, err := d.reader.QueryContext(ctx, `SELECT f.run, r.repo, f.severity, f.category, f.file, f.line, f.message, f.state
		FROM runs r JOIN findings f ON f.run = r.id WHERE r.repo = $1 AND f.fingerprint = $2 ORDER BY f.run DESC, f.phase LIMIT $3`, repo, fingerprint, limitOr(limit, 100))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(s *Seen) error {
		return rows.Scan(&s.Run, &s.Repo, &s.Severity, &s.Category, &s.File, &s.Line, &s.Message, &s.State)
	})
}

// Summary is what a review said in short.
type Summary struct {
	Run       int64     `json:"run"`
	Iteration int       `json:"iteration"`
	At        time.Time `json:"at"`
	Text      string    `json:"text"`
}

// Summaries lists the summaries of reviews that hold these words, newest first: of a
// repository's ("owner/name") newest 500 runs that changed since a time. A limit of
// 0 is 100.
func (d *DB) Summaries(ctx context.Context, repo string, since time.Time, words string, limit int) ([]Summary, error) {
	const doing = "list summaries of reviews"
	like := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(words) + "%"
	rows, err := d.reader.QueryContext(ctx, `SELECT e.run, e.time, e.data FROM (SELECT id FROM runs WHERE repo = $1 AND updated >= $2 ORDER BY id DESC LIMIT 500) r
		JOIN events e ON e.run = r.id WHERE e.type = 'phase.completed' AND e.data LIKE $3 ESCAPE '\' ORDER BY e.run DESC, e.seq DESC LIMIT $4`,
		repo, micros(since), like, limitOr(limit, 100))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	list, err := collect(rows, doing, func(s *Summary) error {
		var at int64
		var data []byte
		if err := rows.Scan(&s.Run, &at, &data); err != nil {
			return err
		}
		var e pipeline.Data
		s.At = fromMicros(at)
		if err := json.Unmarshal(data, &e); err != nil || e.Review == nil || e.Phase == nil {
			return err
		}
		s.Iteration, s.Text = e.Phase.Iteration, e.Review.Summary
		return nil
	})
	return slices.DeleteFunc(list, func(s Summary) bool { return !strings.Contains(s.Text, words) }), err
}
