package store

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
)

// A reader that goes on from where it was sees every change.
func TestChangedLearnings(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
		made := func(keys ...string) (ids []int64) {
			for _, k := range keys {
				ids = append(ids, save(t, d, pipeline.Learning{Key: k, Scope: site, Type: pipeline.LearningSemantic, Content: k, Source: "human",
					Weight: 1, Base: 0.7, Created: at})...)
			}
			return ids
		}
		var since int64
		seen := map[int64]pipeline.Learning{}
		look := func() (n int) {
			t.Helper()
			next, err := d.ChangedLearnings(t.Context(), since, func(l pipeline.Learning) error { seen[l.ID] = l; n++; return nil })
			must(t, err)
			if next < since {
				t.Errorf("it went back from %d to %d", since, next)
			}
			since = next
			return n
		}
		if n := look(); n != 0 || since != 0 {
			t.Fatalf("an empty memory gives %d learnings, next %d", n, since)
		}
		ids := made("a", "b", "c")
		look()
		must(t, d.ForgetLearning(t.Context(), nil, ids[1], pipeline.Actor{ID: 1, Login: "ann"}, at, ""))
		must(t, d.Tx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			return d.ApplyEvidence(ctx, tx, site, []pipeline.Evidence{{Learning: ids[2], Key: "k", Delta: -0.2, At: at.Add(time.Hour), Why: "test"}})
		}))
		look()
		got := map[string]string{}
		for _, l := range seen {
			got[l.Content] = fmt.Sprintf("%s %.1f", l.State, l.Confidence)
		}
		if diff := cmp.Diff(map[string]string{"a": "active 0.7", "b": "forgotten 0.7", "c": "active 0.5"}, got); diff != "" {
			t.Errorf("what a reader has (-want +got):\n%s", diff)
		}
		evidence, err := d.EvidenceFrom(t.Context(), site, "k")
		must(t, err)
		if len(evidence) != 1 || evidence[0].Learning != ids[2] || evidence[0].Of != "c" {
			t.Errorf("evidence from k: %+v", evidence)
		}
	})
}

// Runs with a pull request are found newest first, page by page.
func TestFollowed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		var want []int64
		for i := range 5 {
			run := begin(t, d, i+1)
			if i == 2 {
				continue // has no pull request
			}
			add(t, d, run, ev("p", pipeline.EventPublishCompleted, 3600*i, pipeline.Data{Publication: &pipeline.Publication{Pull: &pipeline.PullRef{Number: 10 + i}}}))
			want = append([]int64{run.ID}, want...)
		}
		first, err := d.Load(t.Context(), want[3])
		must(t, err)
		for _, tc := range []struct {
			repo   int64
			since  time.Time
			before int64
			limit  int
			want   []int64
		}{
			{0, time.Time{}, 0, 0, want},
			{first.Repo.ID, time.Time{}, 0, 2, want[:2]},
			{first.Repo.ID, time.Time{}, want[1], 2, want[2:]},
			{first.Repo.ID + 1, time.Time{}, 0, 0, nil},
			{0, first.Updated.Add(time.Minute), 0, 0, want[:3]},
		} {
			got, err := d.Followed(t.Context(), tc.repo, tc.since, tc.before, tc.limit)
			must(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Followed(%d, %v, %d, %d) (-want +got):\n%s", tc.repo, tc.since, tc.before, tc.limit, diff)
			}
		}
	})
}
