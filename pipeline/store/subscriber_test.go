package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"
)

// Of two servers one tells a subscriber, the other when the first one's time is over, and
// nobody when it is paused. What was there before it is not told. Covers U7.
func TestSubscriber(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		before := begin(t, d, 5)
		for range 2 {
			must(t, d.Subscribe(ctx, "bus/ci", now))
		}
		run := begin(t, d, 6)
		list, err := d.Behind(ctx, "bus/ci", 0, 10)
		must(t, err)
		if len(list) != 1 || list[0] != run.ID {
			t.Errorf("behind: %v, want run %d and not %d", list, run.ID, before.ID)
		}
		holds := func(who string, at time.Time, holds bool) {
			t.Helper()
			held, err := d.HoldSubscriber(ctx, "bus/ci", who, at, at.Add(time.Minute))
			must(t, err)
			want(t, who, held, holds)
		}
		holds("a", now, true)
		holds("b", now.Add(time.Second), false)
		holds("a", now.Add(30*time.Second), true)
		holds("b", now.Add(91*time.Second), true)
		holds("a", now.Add(92*time.Second), false)
		must(t, d.SubscriberFailed(ctx, "bus/ci", now, "it wants no more"))
		holds("b", now.Add(93*time.Second), false)
		s, err := d.Subscriber(ctx, "bus/ci")
		must(t, err)
		want(t, "since", s.Since, now)
		want(t, "failed", s.Failed, now)
		want(t, "paused", s.Paused, "it wants no more")
		must(t, d.SubscriberFailed(ctx, "bus/ci", time.Time{}, ""))
		holds("b", now.Add(94*time.Second), true)
		if _, err := d.Subscriber(ctx, "bus/other"); !errors.Is(err, ErrNotFound) {
			t.Errorf("another: %v", err)
		}
	})
}

// Of incidents, too, nothing of before is told, and what was passed stays so. They are
// deleted with how far a subscriber has come in them.
func TestSubscriberOfIncidents(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		save := func(v *Incident, before int64) {
			t.Helper()
			must(t, d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
				return d.SaveIncident(ctx, tx, v, before, []IncidentEvent{{Seq: v.Seq, Type: "x", At: now, Data: []byte("{}")}})
			}))
		}
		incident := func(group string) *Incident {
			return &Incident{Seq: 1, Repo: "acme/shop", Environment: "production", Kind: "error", Group: group, State: "open", Severity: "critical",
				Opened: now, Updated: now, Data: []byte("{}")}
		}
		old, fresh := incident("old"), incident("fresh")
		save(old, 0)
		must(t, d.Subscribe(ctx, "bus/ci", now))
		save(fresh, 0)
		behind := func(wanted ...int64) {
			t.Helper()
			list, err := d.IncidentsBehind(ctx, "bus/ci", 0, 10)
			must(t, err)
			want(t, "behind", fmt.Sprint(list), fmt.Sprint(wanted))
		}
		behind(fresh.ID)
		must(t, d.PassIncident(ctx, "bus/ci", fresh.ID, 1))
		must(t, d.PassIncident(ctx, "bus/ci", fresh.ID, 0)) // it never goes back
		behind()
		old.Seq, old.State, old.Ended = 2, "resolved", now
		save(old, 1)
		behind(old.ID)
		list, err := d.ChangedIncidents(ctx, now)
		must(t, err)
		want(t, "changed", len(list), 2)
		n, err := d.PruneProduction(ctx, now.Add(time.Hour))
		must(t, err)
		want(t, "pruned", n, 1)
		behind()
	})
}
