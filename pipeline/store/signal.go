package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"forge/pipeline"
)

// JudgeFunc says what a signal does: which learnings it bears, and the evidence
// that it gives. later are the signals of its scope that happened after it, the
// latest of each key. known are the learnings of its scope, in every state, that it
// may say something about, and perhaps others: those of the same finding; those of
// its finding's category that name its file, a folder above or a pattern for it;
// and those that share with its finding's message and rule at least two key words
// ([text.KeyWords]), and two in five of the shorter list. A signal that was
// taken back says nothing about any.
type JudgeFunc = func(s pipeline.Signal, known []pipeline.Learning, later []pipeline.Signal) ([]pipeline.Learning, []pipeline.Evidence)

// PutSignal keeps a signal unless one that counts more is there with its scope
// and key, and reports whether it did.
func (d *DB) PutSignal(ctx context.Context, tx *sql.Tx, s pipeline.Signal) (changed bool, err error) {
	s.Scope, s.Key = clean(s.Scope), clean(s.Key)
	if s.Scope == "" || s.Key == "" || s.Kind == "" || s.At.IsZero() {
		return false, fmt.Errorf("keep signal %q of %q (kind %q, %v): it is not complete", s.Key, s.Scope, s.Kind, s.At)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("keep signal %s of %s: %w", s.Key, s.Scope, err)
		}
	}()
	if err := d.lockScope(ctx, tx, s.Scope); err != nil {
		return false, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return false, err
	}
	// What counts is what would be read: the same bytes on both engines.
	data := clean(string(text))
	if err := json.Unmarshal([]byte(data), &s); err != nil {
		return false, err // unreachable: it was just encoded
	}
	var had string
	err = tx.QueryRowContext(ctx, `SELECT data FROM signals WHERE scope = $1 AND key = $2`, s.Scope, s.Key).Scan(&had)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, err
	}
	if err == nil {
		var old pipeline.Signal
		if err := json.Unmarshal([]byte(had), &old); err != nil {
			return false, err
		}
		if !s.Supersedes(old) {
			return false, nil
		}
	}
	var category pipeline.Category
	if s.About != nil {
		category = s.About.Category
	}
	_, err = d.exec(ctx, tx, `INSERT INTO signals (scope, key, kind, off, run, category, finding, at, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (scope, key) DO UPDATE SET kind = excluded.kind, off = excluded.off, run = excluded.run, category = excluded.category,
		finding = excluded.finding, at = excluded.at, data = excluded.data`,
		s.Scope, s.Key, clean(string(s.Kind)), s.Off, s.Run, clean(category), clean(s.Finding), micros(s.At), data)
	return err == nil, err
}

// lockScope makes changes of a scope's memory wait for each other until the
// transaction ends. SQLite has one writer anyway.
func (d *DB) lockScope(ctx context.Context, tx *sql.Tx, scope string) error {
	if d.dialect == dialectSQLite {
		return nil
	}
	h := fnv.New64a()
	h.Write([]byte("memory " + scope))
	_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(h.Sum64()))
	return err
}

// LearnSignal takes a signal in and does to the memory what judge says, whole:
// what the signal's key bore or said before and does not any more is withdrawn,
// or taken back. It reports whether anything changed: a repeat, or a signal that
// came too late, does not. Call it in the transaction that appends the events.
func (d *DB) LearnSignal(ctx context.Context, tx *sql.Tx, s pipeline.Signal, judge JudgeFunc) (changed bool, err error) {
	changed, err = d.PutSignal(ctx, tx, s)
	if err != nil || !changed {
		return changed, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("learn from signal %s of %s: %w", s.Key, s.Scope, err)
		}
	}()
	later, err := signalsBy(ctx, tx, `scope = $1 AND key <> $2 AND at > $3`, s.Scope, s.Key, micros(s.At))
	if err != nil {
		return false, err
	}
	known, err := d.touched(ctx, tx, s)
	if err != nil {
		return false, err
	}
	learnings, evidence := judge(s, known, later)
	touched, err := d.takeBack(ctx, tx, s) // to be weighed anew
	if err != nil {
		return false, err
	}
	ids, err := d.SaveLearnings(ctx, tx, learnings)
	if err != nil {
		return false, err
	}
	touched = append(touched, ids...)
	for _, id := range ids { // born (again): what signals said of an earlier version does not count
		if _, err := d.exec(ctx, tx, `DELETE FROM evidence WHERE learning = $1 AND EXISTS (SELECT 1 FROM signals s WHERE s.scope = $2 AND s.key = evidence.key)`, id, s.Scope); err != nil {
			return false, err
		}
	}
	if err := d.ApplyEvidence(ctx, tx, s.Scope, evidence); err != nil {
		return false, err
	}
	slices.Sort(touched)
	for _, id := range slices.Compact(touched) {
		if slices.ContainsFunc(evidence, func(e pipeline.Evidence) bool { return e.Learning == id }) {
			continue // weighed just now
		}
		if err := d.weigh(ctx, tx, id); err != nil {
			return false, err
		}
	}
	return true, nil
}

// takeBack undoes what a signal's key did so far and returns the learnings that
// it had said something about.
func (d *DB) takeBack(ctx context.Context, tx *sql.Tx, s pipeline.Signal) ([]int64, error) {
	rows, err := tx.QueryContext(ctx, `SELECT e.learning FROM evidence e WHERE e.key = $1 AND (SELECT m.scope FROM memories m WHERE m.id = e.learning) = $2`, s.Key, s.Scope)
	if err != nil {
		return nil, err
	}
	touched, err := collect(rows, "list what a signal touched", func(id *int64) error { return rows.Scan(id) })
	if err != nil {
		return nil, err
	}
	for _, id := range touched {
		if _, err := d.exec(ctx, tx, `UPDATE evidence SET off = $3, at = $4 WHERE learning = $1 AND key = $2`, id, s.Key, true, micros(s.At)); err != nil {
			return nil, err
		}
	}
	_, err = d.exec(ctx, tx, `UPDATE memories SET state = $3 WHERE scope = $1 AND signal = $2 AND signal <> '' AND state = $4`, s.Scope, s.Key,
		string(pipeline.LearningWithdrawn), string(pipeline.LearningActive))
	return touched, err
}

// HasSignal reports whether a signal with the key is known, taken back or not.
func (d *DB) HasSignal(ctx context.Context, scope, key string) (had bool, err error) {
	err = d.reader.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM signals WHERE scope = $1 AND key = $2)`, clean(scope), clean(key)).Scan(&had)
	if err != nil {
		err = fmt.Errorf("look for signal %s of %s: %w", key, scope, err)
	}
	return had, err
}

// Signals lists the latest signal of each key of a scope, oldest first.
func (d *DB) Signals(ctx context.Context, scope string) ([]pipeline.Signal, error) {
	return signalsBy(ctx, d.reader, `scope = $1`, scope)
}

func signalsBy(ctx context.Context, q queryer, where string, args ...any) ([]pipeline.Signal, error) {
	rows, err := q.QueryContext(ctx, `SELECT data FROM signals WHERE `+where+` ORDER BY at, key`, args...)
	if err != nil {
		return nil, fmt.Errorf("list signals: %w", err)
	}
	return collect(rows, "list signals", func(s *pipeline.Signal) error {
		var data []byte
		if err := rows.Scan(&data); err != nil {
			return err
		}
		return json.Unmarshal(data, s)
	})
}
