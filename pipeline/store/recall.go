package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"forge/pipeline"
	"forge/pipeline/record"
)

// RecordRecall keeps which learnings a phase was given, had withheld, and used
// (L5). It may be called again for the same phase, first with what was given and
// later with what was used: nothing counts twice.
func (d *DB) RecordRecall(ctx context.Context, tx *sql.Tx, run int64, r pipeline.Recall, at time.Time) error {
	used := map[int64]bool{}
	for _, id := range r.Used {
		used[id] = true
	}
	put := func(id int64, withheld bool) error {
		_, err := d.exec(ctx, tx, `INSERT INTO recalls (run, phase, iteration, role, learning, withheld, used, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (run, phase, iteration, role, learning) DO UPDATE SET used = recalls.used OR excluded.used`,
			run, string(r.Phase), r.Iteration, r.Role, id, withheld, used[id] && !withheld, micros(at))
		if err == nil {
			_, err = d.exec(ctx, tx, `UPDATE memories SET recalled = (SELECT count(*) FROM recalls WHERE learning = $1 AND NOT withheld),
				used = (SELECT count(*) FROM recalls WHERE learning = $1 AND used) WHERE id = $1`, id)
		}
		if err == nil && used[id] {
			err = d.weigh(ctx, tx, id)
		}
		return err
	}
	for _, part := range []struct {
		ids      []int64
		withheld bool
	}{{r.Withheld, true}, {r.Given, false}, {r.Used, false}} {
		for _, id := range part.ids {
			if err := put(id, part.withheld); err != nil {
				return fmt.Errorf("record recall of learning %d in %s of run %d: %w", id, r.Phase, run, err)
			}
		}
	}
	return nil
}

// Recalls returns what the phases of a run recalled, in their order.
func (d *DB) Recalls(ctx context.Context, run int64) ([]pipeline.Recall, error) {
	doing := fmt.Sprintf("list recalls of run %d", run)
	rows, err := d.reader.QueryContext(ctx, `SELECT phase, iteration, role, learning, withheld, used FROM recalls WHERE run = $1 ORDER BY at, iteration, phase, role, learning`, run)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	var out []pipeline.Recall
	_, err = collect(rows, doing, func(*struct{}) error {
		var r pipeline.Recall
		var id int64
		var withheld, used bool
		if err := rows.Scan(&r.Phase, &r.Iteration, &r.Role, &id, &withheld, &used); err != nil {
			return err
		}
		if n := len(out); n == 0 || out[n-1].Phase != r.Phase || out[n-1].Iteration != r.Iteration || out[n-1].Role != r.Role {
			out = append(out, r)
		}
		last := &out[len(out)-1]
		switch {
		case withheld:
			last.Withheld = append(last.Withheld, id)
		default:
			last.Given = append(last.Given, id)
			if used {
				last.Used = append(last.Used, id)
			}
		}
		return nil
	})
	return out, err
}

// RecordReflection keeps what a look back at a run gave; id is its own within the
// run, so that a repeat is one.
func (d *DB) RecordReflection(ctx context.Context, tx *sql.Tx, run int64, id string, r pipeline.Reflection, at time.Time) error {
	learnings, err := json.Marshal(r.Learnings)
	if err == nil {
		_, err = d.exec(ctx, tx, `INSERT INTO reflections (run, id, trigger, now, learnings, micro_usd, refused, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (run, id) DO NOTHING`, run, id, r.Trigger, r.Now, string(learnings), r.Usage.MicroUSD, clean(r.Refused), micros(at))
	}
	if err != nil {
		return fmt.Errorf("record reflection %s of run %d: %w", id, run, err)
	}
	return nil
}

// Reflections returns the looks back at a run, in their order.
func (d *DB) Reflections(ctx context.Context, run int64) ([]pipeline.Reflection, error) {
	doing := fmt.Sprintf("list reflections of run %d", run)
	rows, err := d.reader.QueryContext(ctx, `SELECT trigger, now, learnings, micro_usd, refused FROM reflections WHERE run = $1 ORDER BY at, id`, run)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(r *pipeline.Reflection) error {
		var learnings []byte
		if err := rows.Scan(&r.Trigger, &r.Now, &learnings, &r.Usage.MicroUSD, &r.Refused); err != nil {
			return err
		}
		return json.Unmarshal(learnings, &r.Learnings)
	})
}

// PutOutcome keeps what became of a run, instead of what was known before.
func (d *DB) PutOutcome(ctx context.Context, tx *sql.Tx, o record.Outcome) error {
	h := record.Holdout{}
	if o.Holdout != nil {
		h = *o.Holdout
	}
	_, err := d.change(ctx, tx, `INSERT INTO outcomes (run, first_pass, caught, bounces, findings, dismissed, micro_usd, at, holdout, held_out)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (run) DO UPDATE SET first_pass = excluded.first_pass, caught = excluded.caught, bounces = excluded.bounces, findings = excluded.findings,
		dismissed = excluded.dismissed, micro_usd = excluded.micro_usd, at = excluded.at,
		holdout = excluded.holdout, held_out = excluded.held_out`,
		o.Run, o.FirstPass, o.Caught, o.Bounces, o.Findings, o.Dismissed, o.MicroUSD, micros(o.At), h.Share, h.Out)
	if err != nil {
		return fmt.Errorf("keep outcome of run %d: %w", o.Run, err)
	}
	return nil
}

// Drawn lists the outcomes of a repository's runs ("owner/name"; "" for all) for which it
// was drawn whether they work without what was learnt, of all times, in the order of runs:
// whether their first review was approved, and what was drawn.
func (d *DB) Drawn(ctx context.Context, repo string) ([]record.Outcome, error) {
	const doing = "list outcomes by hold-out"
	rows, err := d.reader.QueryContext(ctx, `SELECT o.run, o.first_pass, o.at, o.holdout, o.held_out
		FROM outcomes o JOIN runs r ON r.id = o.run WHERE (CAST($1 AS TEXT) = '' OR r.repo = $1) AND o.holdout > 0 ORDER BY o.run`, repo)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(o *record.Outcome) error {
		var at int64
		o.Holdout = &record.Holdout{}
		err := rows.Scan(&o.Run, &o.FirstPass, &at, &o.Holdout.Share, &o.Holdout.Out)
		o.At = fromMicros(at)
		return err
	})
}

// Outcomes lists the outcomes of a repository's runs ("owner/name"; "" for all)
// since a time, oldest first, with the learnings that they were given and that
// were withheld. A learning that one phase was given and another not counts as given.
func (d *DB) Outcomes(ctx context.Context, repo string, since time.Time) ([]record.Outcome, error) {
	const doing = "list outcomes"
	rows, err := d.reader.QueryContext(ctx, `SELECT o.run, o.first_pass, o.caught, o.bounces, o.findings, o.dismissed, o.micro_usd, o.at
		FROM outcomes o JOIN runs r ON r.id = o.run WHERE (CAST($1 AS TEXT) = '' OR r.repo = $1) AND o.at >= $2 ORDER BY o.run`, repo, micros(since))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	list, err := collect(rows, doing, func(o *record.Outcome) error {
		var at int64
		err := rows.Scan(&o.Run, &o.FirstPass, &o.Caught, &o.Bounces, &o.Findings, &o.Dismissed, &o.MicroUSD, &at)
		o.At = fromMicros(at)
		return err
	})
	if err != nil {
		return nil, err
	}
	of := make(map[int64]int, len(list))
	for i := range list {
		of[list[i].Run] = i
	}
	reviewed, others := make([][]int64, len(list)), make([][]int64, len(list)) // learnings, by outcome
	// By run, as recalls are kept: to put them in order here costs less than there.
	rows, err = d.reader.QueryContext(ctx, `SELECT c.run, c.learning, c.withheld, c.phase FROM outcomes o CROSS JOIN recalls c
		WHERE c.run = o.run AND o.at >= $2 AND (CAST($1 AS TEXT) = '' OR o.run IN (SELECT id FROM runs WHERE repo = $1))`, repo, micros(since))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	_, err = collect(rows, doing, func(*struct{}) error {
		var run, learning int64
		var withheld bool
		var phase pipeline.Phase
		if err := rows.Scan(&run, &learning, &withheld, &phase); err != nil {
			return err
		}
		i, ok := of[run]
		if !ok { // unreachable but for a run that ended between the two queries
			return nil
		}
		if phase == pipeline.PhaseReview {
			reviewed[i] = append(reviewed[i], learning)
		} else {
			others[i] = append(others[i], learning)
		}
		if withheld {
			list[i].Withheld = append(list[i].Withheld, learning)
		} else {
			list[i].Given = append(list[i].Given, learning)
		}
		return nil
	})
	for i, ids := range reviewed {
		if len(ids) > 0 {
			list[i].Reviewers = make(map[int64]bool, len(ids))
		}
		for _, id := range ids {
			list[i].Reviewers[id] = !slices.Contains(others[i], id)
		}
	}
	for i := range list {
		o := &list[i]
		slices.Sort(o.Given)
		o.Given = slices.Compact(o.Given)
		slices.Sort(o.Withheld)
		o.Withheld = slices.DeleteFunc(slices.Compact(o.Withheld), func(id int64) bool {
			_, given := slices.BinarySearch(o.Given, id)
			return given
		})
		if len(o.Withheld) == 0 {
			o.Withheld = nil
		}
	}
	return list, err
}

// Suppressed is a finding that a run did not post.
type Suppressed struct {
	Run int64
	At  time.Time // of the first review that held it back
	pipeline.SuppressedFinding
}

// SuppressedFindings lists the findings that were held back in a repository's runs ("owner/name";
// "" for all) that ended since a time, each once in its run, in the order of runs.
func (d *DB) SuppressedFindings(ctx context.Context, repo string, since time.Time) ([]Suppressed, error) {
	const doing = "list findings that were held back"
	rows, err := d.reader.QueryContext(ctx, `SELECT e.run, e.time, e.data FROM outcomes o JOIN runs r ON r.id = o.run JOIN events e ON e.run = o.run
		WHERE (CAST($1 AS TEXT) = '' OR r.repo = $1) AND o.at >= $2 AND e.type = $3 AND e.data LIKE '%"held":[{%' ORDER BY e.run, e.seq`,
		repo, micros(since), string(pipeline.EventPhaseCompleted))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	var out []Suppressed
	type key struct {
		run     int64
		finding string
	}
	seen := map[key]bool{}
	_, err = collect(rows, doing, func(*struct{}) error {
		var run, at int64
		var text []byte
		var data pipeline.Data
		if err := rows.Scan(&run, &at, &text); err != nil {
			return err
		}
		if err := json.Unmarshal(text, &data); err != nil {
			return fmt.Errorf("decode an event of run %d: %w", run, err)
		}
		if data.Review == nil { // somebody's words happen to look like it
			return nil
		}
		for _, h := range data.Review.Suppressed {
			if k := (key{run, h.Finding.Fingerprint}); !seen[k] {
				seen[k] = true
				out = append(out, Suppressed{run, fromMicros(at), h})
			}
		}
		return nil
	})
	return out, err
}

// Unlearned returns events of people's feedback that the reader called name has
// not passed yet, of each run in their order: what a crash left over comes again.
// A limit of 0 is 100.
func (d *DB) Unlearned(ctx context.Context, name string, limit int) ([]pipeline.Event, error) {
	doing := "list feedback after cursor " + name
	rows, err := d.reader.QueryContext(ctx, `SELECT e.run, e.seq, e.id, e.type, e.source, e.time, e.data, r.trace
		FROM feedback_events f JOIN runs r ON r.id = f.run LEFT JOIN cursors c ON c.name = $1 AND c.run = f.run
		JOIN events e ON e.run = f.run AND e.seq = f.seq
		WHERE f.seq > COALESCE(c.seq, 0) ORDER BY f.run, f.seq LIMIT $2`, name, limitOr(limit, 100))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(e *pipeline.Event) error {
		var at int64
		var data []byte
		if err := rows.Scan(&e.Run, &e.Seq, &e.ID, &e.Type, &e.Source, &at, &data, &e.Trace); err != nil {
			return err
		}
		e.Time = fromMicros(at)
		return json.Unmarshal(data, &e.Data)
	})
}

// AdvanceCursor notes that the reader called name has passed a run's events up to
// seq. It never goes back. Call it in the transaction that keeps what was learnt.
func (d *DB) AdvanceCursor(ctx context.Context, tx *sql.Tx, name string, run, seq int64) error {
	_, err := d.change(ctx, tx, `INSERT INTO cursors (name, run, seq) VALUES ($1, $2, $3)
		ON CONFLICT (name, run) DO UPDATE SET seq = excluded.seq WHERE cursors.seq < excluded.seq`, name, run, seq)
	if err != nil {
		return fmt.Errorf("advance cursor %s of run %d to %d: %w", name, run, seq, err)
	}
	return nil
}

// Cursor returns how far the reader called name has come in a run; 0 at its start.
func (d *DB) Cursor(ctx context.Context, name string, run int64) (seq int64, err error) {
	err = d.reader.QueryRowContext(ctx, `SELECT seq FROM cursors WHERE name = $1 AND run = $2`, name, run).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read cursor %s of run %d: %w", name, run, err)
	}
	return seq, nil
}

// Trend is how many findings of a category were dismissed in a stretch of time.
type Trend struct {
	From      time.Time `json:"from"`
	Dismissed int       `json:"dismissed"`
}

// DismissalTrend counts the dismissals of a category ("" for all) in a scope from
// a time on, in steps of the given length; steps without any are left out (M3).
func (d *DB) DismissalTrend(ctx context.Context, scope string, category pipeline.Category, from time.Time, step time.Duration) ([]Trend, error) {
	doing := fmt.Sprintf("list dismissals of %s in %s", category, scope)
	if step < time.Second {
		return nil, fmt.Errorf("%s: a step of %v is too short: give a second or more", doing, step)
	}
	rows, err := d.reader.QueryContext(ctx, `SELECT (at - $3) / $4 AS n, count(*) FROM signals WHERE scope = $1 AND kind = 'dismissed' AND NOT off
		AND (CAST($2 AS TEXT) = '' OR category = $2) AND at >= $3 GROUP BY n ORDER BY n`, scope, category, micros(from), step.Microseconds())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(t *Trend) error {
		var n int64
		err := rows.Scan(&n, &t.Dismissed)
		t.From = from.Add(time.Duration(n) * step)
		return err
	})
}
