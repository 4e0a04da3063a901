package store

import (
	"errors"
	"testing"
	"time"

	"forge/pipeline/record"
)

// Covers S30: what is paused is not there for whoever looks for work, and is all there
// again afterwards.
func TestPauses(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx, now := t.Context(), time.Now()
		run := begin(t, d, 1)
		deliveries := []record.Delivery{{GUID: "a", Repo: run.Repo.FullName(), Received: now}, {GUID: "b", Repo: "else/where", Received: now}, {GUID: "c", Received: now}}
		must(t, d.KeepDeliveries(ctx, deliveries))
		set := func(repo string, paused bool) {
			t.Helper()
			must(t, d.SetPaused(ctx, Pause{At: now, Actor: "mia", Repo: repo, Paused: paused, Reason: "why"}))
		}
		look := func(what string, runs, waiting, pauses int) {
			t.Helper()
			due, parts, err := d.Due(ctx, now.Add(time.Hour), 100)
			must(t, err)
			want(t, what+": due runs", len(due)+len(parts), runs)
			list, err := d.WaitingDeliveries(ctx, now.Add(time.Hour), 100)
			must(t, err)
			want(t, what+": waiting deliveries", len(list), waiting)
			all, err := d.Pauses(ctx)
			must(t, err)
			want(t, what+": pauses", len(all), pauses)
			g, err := d.Gauges(ctx, now.Add(time.Hour))
			must(t, err)
			want(t, what+": pauses for a monitor", g.Pauses, int64(pauses))
			paused, err := d.Paused(ctx, run.Repo.FullName())
			must(t, err)
			want(t, what+": the run's repository is paused", paused, runs == 0)
		}
		look("before", 1, 3, 0)
		set("", true)
		look("all", 0, 0, 1)
		set("ELSE/where", true)
		look("all and one", 0, 0, 2)
		set("", false)
		look("one", 1, 2, 1)
		set("else/Where", false)
		set(run.Repo.FullName(), true)
		look("the run's", 0, 2, 1)
		set(run.Repo.FullName(), false)
		look("afterwards", 1, 3, 0)
		if err := d.SetPaused(ctx, Pause{}); !errors.Is(err, ErrNoChange) {
			t.Errorf("to let go on what is not paused: %v; want ErrNoChange", err)
		}
		log, err := d.PauseLog(ctx, now.Add(-time.Second))
		must(t, err)
		want(t, "words", len(log), 6)
	})
}
