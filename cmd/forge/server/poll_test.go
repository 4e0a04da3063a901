package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"forge/github"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// sender is a GitHub that has sent deliveries.
type sender struct {
	list  []github.HookDelivery
	fail  map[int]error // by call
	calls int
	since []time.Time
	gone  map[int64]bool
}

func (h *sender) call() error { h.calls++; return h.fail[h.calls] }

func (h *sender) HookDeliveries(_ context.Context, since time.Time) ([]github.HookDelivery, error) {
	h.since = append(h.since, since)
	return slices.DeleteFunc(slices.Clone(h.list), func(d github.HookDelivery) bool { return d.At.Before(since) }), h.call()
}

func (h *sender) HookPayload(_ context.Context, id int64) ([]byte, error) {
	if h.gone[id] {
		return nil, h.call()
	}
	return fmt.Appendf(nil, `{"n":%d}`, id), h.call()
}

// later is an error of a GitHub that wants to be left alone.
type later struct{ time.Duration }

func (l later) Error() string             { return "too many" }
func (l later) RetryAfter() time.Duration { return l.Duration }

// Covers S27: whatever call fails, and whenever the server ends, each delivery is
// kept once, in order; the pauses grow, and are as long as GitHub asks.
func TestPollKeepsEachOnce(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	const n = 7
	for failing := range 2*n + 3 {
		db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		h := &sender{fail: map[int]error{failing: errors.New("broke")}, gone: map[int64]bool{3: true}}
		for i := range int64(n) {
			h.list = append(h.list, github.HookDelivery{ID: i, GUID: fmt.Sprint("g", i), Event: "push", At: now.Add(time.Duration(i) * time.Minute)})
		}
		var kept []string
		make := func() *poller {
			return &poller{github: h, db: db, log: slog.New(slog.DiscardHandler), now: func() time.Time { return now }, seen: map[string]time.Time{},
				take: func(ctx context.Context, guid, event string, payload []byte) error {
					kept = append(kept, guid)
					return db.KeepDeliveries(ctx, []record.Delivery{{GUID: guid, Event: event, Received: now, Payload: payload}})
				}}
		}
		p := make()
		for range 4 {
			if _, err := p.round(t.Context()); err != nil {
				p = make() // as after a start
			}
		}
		if want := []string{"g0", "g1", "g2", "g4", "g5", "g6"}; !slices.Equal(kept, want) {
			t.Errorf("call %d fails: kept %v, want %v", failing, kept, want)
		}
		if last := h.since[len(h.since)-1]; failing == 0 && !last.Equal(now.Add((n-1)*time.Minute-pollOverlap)) {
			t.Errorf("call %d fails: the last round begins at %s", failing, last)
		}
	}
}

func TestPollBacksOff(t *testing.T) {
	h := &sender{fail: map[int]error{1: errors.New("x"), 2: errors.New("x"), 3: later{20 * time.Minute}, 5: errors.New("x")}}
	p := &poller{github: h, log: slog.New(slog.DiscardHandler), now: time.Now, seen: map[string]time.Time{}}
	var pauses []time.Duration
	p.run(t.Context(), 10*time.Second, func(_ context.Context, d time.Duration) bool {
		pauses = append(pauses, d)
		return len(pauses) < 6
	})
	if want := []time.Duration{20 * time.Second, 40 * time.Second, 20 * time.Minute, 10 * time.Second, 20 * time.Second, 10 * time.Second}; !slices.Equal(pauses, want) {
		t.Errorf("pauses %v, want %v", pauses, want)
	}
}
