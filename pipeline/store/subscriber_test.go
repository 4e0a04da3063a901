package store

import (
	"errors"
	"testing"
	"time"
)

// Of two servers one tells a subscriber, the other when the first one's time is over, and
// nobody when it is paused. What was there before it is not told. Covers U7.
func TestSubscriber(t *testing.T) {
	onBoth(t, func(t *testing.T, d *DB) {
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
