package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
	"forge/pipeline/record"
)

// What a learning did to findings is found again: where the runs have the finding
// that it is about, and which reviews name it.
func TestWhatLearningsTouched(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		run, other := begin(t, d, 5), begin(t, d, 6)
		put := func(run *pipeline.Run, id, summary string) {
			review := pipeline.Review{Summary: summary}
			ref := &pipeline.PhaseRef{Phase: pipeline.PhaseReview, Iteration: 2}
			events := []pipeline.Event{ev(id+"s", pipeline.EventPhaseEntered, 0, pipeline.Data{Phase: ref}),
				ev(id, pipeline.EventPhaseCompleted, 0, pipeline.Data{Phase: ref, Review: &review})}
			add(t, d, run, events...)
		}
		put(run, "a", "Held back: style, because ann did (learning 7)\nmore")
		put(run, "b", "100% (learning 71)")
		put(other, "c", "nothing")
		list, err := d.Summaries(ctx, "acme/site", now.Add(-time.Hour), "(learning 7)", 0)
		must(t, err)
		if diff := cmp.Diff([]Summary{{Run: run.ID, Iteration: 2, At: now, Text: "Held back: style, because ann did (learning 7)\nmore"}}, list); diff != "" {
			t.Errorf("summaries (-want +got):\n%s", diff)
		}
		for words, want := range map[string]int{"0% (": 1, "%": 1, "_": 0, "Data": 0} {
			list, err := d.Summaries(ctx, "acme/site", time.Time{}, words, 0)
			if err != nil || len(list) != want {
				t.Errorf("summaries with %q: %+v, %v", words, list, err)
			}
		}
		if list, err := d.Summaries(ctx, "acme/other", time.Time{}, "learning", 0); err != nil || len(list) != 0 {
			t.Errorf("summaries elsewhere: %+v, %v", list, err)
		}
		for _, id := range []int64{run.ID, other.ID} {
			_, err := d.change(ctx, nil, `INSERT INTO findings (run, phase, kind, fingerprint, severity, category, rule, file, line, message, confidence, state, first_seen, last_seen, times, fixed_in)
				VALUES ($1, 'review', 'finding', 'fp1', 'error', 'style', '', 'a.go', 3, 'tabs', 1, 'open', 1, 1, 1, '')`, id)
			must(t, err)
		}
		seen, err := d.SeenFindings(ctx, "acme/site", "fp1", 0)
		must(t, err)
		if len(seen) != 2 || seen[0].Run != other.ID || seen[1].Message != "tabs" || seen[1].State != "open" {
			t.Errorf("findings: %+v", seen)
		}
		if seen, err := d.SeenFindings(ctx, "acme/other", "fp1", 0); err != nil || len(seen) != 0 {
			t.Errorf("findings elsewhere: %+v, %v", seen, err)
		}
	})
}

// Deliveries of repositories that somebody does not see are not listed, nor counted;
// nor are those of none.
func TestDeliveriesOfRepositories(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := t.Context()
		var list []record.Delivery
		for i, repo := range []string{"acme/a", "acme/b", "", "acme/a", "acme/c"} {
			list = append(list, record.Delivery{GUID: fmt.Sprint("g", i), Event: "push", Repo: repo, Received: now})
		}
		must(t, d.KeepDeliveries(ctx, list))
		for range maxAttempts {
			must(t, d.FailDelivery(ctx, "g3", "no", now))
		}
		_, err := d.FinishDelivery(ctx, nil, "g0", "fine", false, now)
		must(t, err)
		for _, c := range []struct {
			f    DeliveryFilter
			want string
		}{
			{DeliveryFilter{}, "g4 g3 g2 g1 g0 "}, {DeliveryFilter{Repos: []string{}}, ""}, {DeliveryFilter{Repos: []string{"acme/a", "acme/b"}}, "g3 g1 g0 "},
			{DeliveryFilter{Repos: []string{"acme/a", "acme/b"}, State: record.DeliveryWaiting}, "g1 "},
			{DeliveryFilter{State: record.DeliveryDead, Repo: "acme/a"}, "g3 "},
			{DeliveryFilter{State: record.DeliveryDone}, "g0 "}, {DeliveryFilter{Repos: []string{"acme/a"}, Repo: "acme/b"}, ""},
			{DeliveryFilter{Repos: []string{""}}, "g2 "},
		} {
			list, err := d.Deliveries(ctx, c.f)
			must(t, err)
			got := ""
			for _, v := range list {
				got += v.GUID + " "
			}
			want(t, fmt.Sprintf("deliveries of %+v", c.f), got, c.want)
		}
		for want, repos := range map[Backlog][]string{{Waiting: 3, Dead: 1}: nil, {}: {}, {Waiting: 1, Dead: 1}: {"acme/a", "acme/b"}} {
			if got, err := d.Backlog(ctx, repos); err != nil || got != want {
				t.Errorf("backlog of %v: %+v, %v, want %+v", repos, got, err, want)
			}
		}
	})
}
