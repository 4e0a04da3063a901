//go:build soak

package bus

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/pipeline"
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

// Covers U7: who stores events does not wait for a subscriber that does not answer. Without
// one, with one, and without one again are measured in turn; the third says how far two of
// the same are apart on this machine.
func TestAppendBesideASlowSubscriber(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { appendBeside(t, openStore(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { appendBeside(t, openPostgres(t)) })
}

func appendBeside(t *testing.T, db *store.DB) {
	const rounds, each = 100, 60
	asked := make(chan struct{}, 1)
	r := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		asked <- struct{}{}
		<-req.Context().Done()
	}))
	t.Cleanup(r.Close)
	s := newSender(t, db, Subscriber{URL: r.URL})
	run := newRun(t, db, "a", 1)
	var took [3][]time.Duration
	block := func(name string) (out []time.Duration) {
		for i := range each {
			begun := time.Now()
			e := pipeline.Event{ID: fmt.Sprint("m", name, "/", i), Type: pipeline.EventBaseMoved, Source: "test", Time: now}
			if err := db.Append(t.Context(), run, []pipeline.Event{e}, nil); err != nil {
				t.Fatal(err)
			}
			out = append(out, time.Since(begun))
		}
		return out
	}
	for round := range rounds {
		for turn := range 3 {
			arm := (round + turn) % 3 // each is the first as often as the others
			ctx, stop := context.WithCancel(t.Context())
			var waits sync.WaitGroup
			waits.Go(func() { _ = s.round(ctx) })
			select {
			case <-asked: // from now on it is waited for
			case <-time.After(holdTime):
				t.Fatal("the subscriber is not told")
			}
			if arm != 1 { // what came before is the same for all
				stop()
				waits.Wait()
			}
			took[arm] = append(took[arm], block(fmt.Sprint(round, ".", arm))...)
			stop()
			waits.Wait()
		}
	}
	p := func(list []time.Duration, share float64) time.Duration {
		slices.Sort(list)
		return list[int(float64(len(list)-1)*share)]
	}
	for _, share := range []float64{0.5, 0.9, 0.99} {
		x, y, z := p(took[0], share), p(took[1], share), p(took[2], share)
		t.Logf("p%g of %d: without %v and %v (%.3f), with %v: %.3f of both", 100*share, len(took[0]), x, z, float64(z)/float64(x), y, 2*float64(y)/float64(x+z))
	}
	both := slices.Concat(took[0], took[2])
	limit := p(both, 0.99) * 105 / 100
	over := len(took[1]) - sort.Search(len(took[1]), func(i int) bool { return took[1][i] > limit })
	t.Logf("over 1.05 of the p99 without one: %d of %d with one", over, len(took[1]))
	if p(took[1], 0.5) > p(both, 0.5)*5/4 || // two of the same are up to 12 % apart under load
		over > len(took[1])*2/100 {
		t.Error("events are stored more slowly beside a subscriber that does not answer")
	}
}
