//go:build e2e

package bus

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"forge/pipeline/store"
	"forge/pipeline/store/storetest"
)

// Covers U7: 10,000 events, a subscriber that is away for the first hour, and 20 servers that die
// right after it has answered, with another in their place: none is lost, those of a run come in
// order, and one that comes again has the same id.
func TestTenThousandEvents(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { tenThousand(t, openStore(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { tenThousand(t, openPostgres(t)) })
}

// openPostgres opens a store in a schema of its own.
func openPostgres(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), storetest.Postgres(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func tenThousand(t *testing.T, db *store.DB) {
	const runs, events, kills = 10, 999, 20
	at := now
	var die context.CancelFunc
	died := 0
	r := newReceiver(t, func(n int) int {
		switch {
		case at.Before(now.Add(time.Hour)):
			return 503
		case n%480 == 479 && died < kills:
			died++
			die()
		}
		return 200
	})
	s := newSender(t, db, Subscriber{URL: r.URL})
	for i := range runs {
		newRun(t, db, strings.Repeat("a", i+1), events)
	}
	away := 0
	for round := 0; ; round++ {
		ctx, cancel := context.WithCancel(t.Context())
		die = cancel
		s = New(Options{DB: db, Subscribers: []Subscriber{s.Subscriber}, Log: s.o.Log, Now: func() time.Time { return at }, After: time.After, Hide: s.o.Hide}).to[0]
		err := s.round(ctx)
		cancel()
		if err == nil {
			break
		}
		if round > 1000 {
			t.Fatal(err)
		}
		if at.Before(now.Add(time.Hour)) {
			away++
		}
		at = at.Add(2 * holdTime) // until another server may go on
	}
	last, ids, again := map[int64]int64{}, map[string]string{}, 0
	for _, e := range r.got {
		key := fmt.Sprintf("%d/%d", e.Data.Run, e.Data.Seq)
		switch was := ids[key]; {
		case was != "" && was != e.ID:
			t.Fatalf("%s came as %s and as %s", key, was, e.ID)
		case was != "":
			again++
		case e.Data.Seq != last[e.Data.Run]+1:
			t.Fatalf("run %d: %d comes after %d", e.Data.Run, e.Data.Seq, last[e.Data.Run])
		default:
			ids[key] = e.ID
			last[e.Data.Run]++
		}
	}
	t.Logf("%d events, %d came again; %d tries while the subscriber was away, %d servers died", len(ids), again, away, died)
	if len(ids) != runs*(events+1) || died != kills || away < 20 || len(r.bad) > 0 {
		t.Errorf("%d events, %d died, %d tries while it was away; %q", len(ids), died, away, r.bad)
	}
}
