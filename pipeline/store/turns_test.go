package store

import (
	"testing"
	"time"
)

// Turns are counted by place, and anew when the window is over; old ones are forgotten.
func TestTurns(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		for _, step := range []struct {
			place string
			after time.Duration
			n     int
			since time.Duration
		}{
			{"a", 0, 1, 0}, {"a", 59 * time.Minute, 2, 0}, {"b", 59 * time.Minute, 1, 59 * time.Minute},
			{"a", time.Hour, 1, time.Hour}, {"a", 61 * time.Minute, 2, time.Hour},
			{"a", 0, 1, 0}, // the clock was put back
		} {
			n, since, err := d.Turn(t.Context(), step.place, now.Add(step.after), time.Hour)
			must(t, err)
			if n != step.n || !since.Equal(now.Add(step.since)) {
				t.Errorf("%s after %s: turn %d since %s, want %d since %s", step.place, step.after, n, since.Sub(now), step.n, step.since)
			}
		}
		must(t, d.PruneTurns(t.Context(), now.Add(time.Minute)))
		want(t, "places", count(t, d, `SELECT COUNT(*) FROM turns`), 1)
	})
}
