package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Pause is a word of somebody who stops work, or lets it go on.
type Pause struct {
	Seq    int64
	At     time.Time
	Actor  string
	Repo   string // "owner/name" in lower case; "" for all
	Paused bool   // false: it goes on
	Reason string
}

const (
	pauseColumns = `SELECT seq, at, actor, repo, paused, reason FROM pauses`
	lastOfRepo   = ` seq = (SELECT MAX(q.seq) FROM pauses q WHERE q.repo = pauses.repo)`
	insertPause  = `INSERT INTO pauses (at, actor, repo, paused, reason) VALUES ($1, $2, $3, $4, $5)`
	selectPaused = `SELECT count(*) FROM pauses WHERE paused = 1 AND repo IN ('', $1) AND` + lastOfRepo

	// notPaused is for a table with a column repo.
	notPaused = ` NOT EXISTS (SELECT 1 FROM pauses WHERE paused = 1 AND (pauses.repo = '' OR pauses.repo = lower(work.repo)) AND` + lastOfRepo + `)`
)

// ErrNoChange says that what was asked for is so already.
var ErrNoChange = errors.New("it is so already")

// SetPaused stops work, of one repository or (repo "") of all, or lets it go on. The
// error is ErrNoChange when that is so already.
func (d *DB) SetPaused(ctx context.Context, p Pause) error {
	p.Repo = strings.ToLower(p.Repo)
	err := d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var was int
		err := tx.QueryRowContext(ctx, `SELECT paused FROM pauses WHERE repo = $1 AND`+lastOfRepo, p.Repo).Scan(&was)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		now := 0
		if p.Paused {
			now = 1
		}
		if was == now {
			return ErrNoChange
		}
		_, err = d.exec(ctx, tx, insertPause, micros(p.At), clean(p.Actor), clean(p.Repo), now, clean(p.Reason))
		return err
	})
	if err != nil && !errors.Is(err, ErrNoChange) {
		err = fmt.Errorf("pause work: %w", err)
	}
	return err
}

// Paused reports whether the work of a repository is stopped, by itself or with all;
// of "", whether all is.
func (d *DB) Paused(ctx context.Context, repo string) (bool, error) {
	var n int
	if err := d.reader.QueryRowContext(ctx, selectPaused, strings.ToLower(repo)).Scan(&n); err != nil {
		return false, fmt.Errorf("is work paused: %w", err)
	}
	return n > 0, nil
}

// Pauses lists what is stopped now: all first, then repositories by name.
func (d *DB) Pauses(ctx context.Context) ([]Pause, error) {
	return d.pauses(ctx, pauseColumns+` WHERE paused = 1 AND`+lastOfRepo+` ORDER BY repo`)
}

// PauseLog lists every word about pauses since a time, oldest first.
func (d *DB) PauseLog(ctx context.Context, since time.Time) ([]Pause, error) {
	return d.pauses(ctx, pauseColumns+` WHERE at >= $1 ORDER BY seq`, micros(since))
}

func (d *DB) pauses(ctx context.Context, query string, args ...any) ([]Pause, error) {
	rows, err := d.reader.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list pauses: %w", err)
	}
	return collect(rows, "list pauses", func(p *Pause) error {
		var at int64
		var paused int
		err := rows.Scan(&p.Seq, &at, &p.Actor, &p.Repo, &paused, &p.Reason)
		p.At, p.Paused = fromMicros(at), paused == 1
		return err
	})
}
