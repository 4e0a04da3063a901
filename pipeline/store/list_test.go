package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"forge/pipeline"
	"forge/pipeline/record"
)

// Lists are what a look at every row would choose, on every page, for any number of
// repositories.
func TestListsAgainstLookingAtAll(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		states := []pipeline.State{pipeline.StateRunning, pipeline.StateWaiting, pipeline.StateStopped, pipeline.StateVerified, pipeline.StateFailed}
		repo := func(n int) string { return fmt.Sprint("acme/r", n) }
		var list []record.Delivery
		for i := range 80 {
			_, err := d.SQL().Exec(`INSERT INTO runs (key, trace, seq, repo_id, repo, issue, title, branch, state, started, updated) VALUES ($1, '', 1, $2, $3, $4, '', '', $5, 1, 1)`,
				fmt.Sprint("k", i), i*i%7+1, repo(i*i%7), i+1, string(states[i*3%11%len(states)]))
			must(t, err)
			v := delivery(fmt.Sprintf("g%02d", i)) // PostgreSQL takes them in by name
			v.Repo = repo(i * i % 7)
			if i%3 == 0 {
				v.Outcome = "nothing"
			}
			list = append(list, v)
		}
		must(t, d.KeepDeliveries(t.Context(), list))
		runs, err := d.Runs(t.Context(), Filter{Limit: 1000})
		must(t, err)
		want(t, "runs", len(runs), 80)
		var many []string
		for i := range 900 {
			many = append(many, repo(i+2))
		}
		rapid.Check(t, func(t *rapid.T) {
			f := Filter{State: rapid.SampledFrom(append(states, "")).Draw(t, "state"), Active: rapid.Bool().Draw(t, "active"),
				Limit:  rapid.IntRange(1, 90).Draw(t, "limit"),
				Before: rapid.Int64Range(0, 90).Draw(t, "before"), Repo: rapid.SampledFrom([]string{"", "", repo(1), repo(4), "acme/none"}).Draw(t, "repo"),
				Repos: rapid.SampledFrom([][]string{nil, {}, {repo(1)}, {repo(0), repo(4), "acme/none"}, many}).Draw(t, "repos")}
			heard := rapid.Bool().Draw(t, "heard")
			var wantRuns []RunRow
			var wantGUIDs []string
			for _, r := range runs {
				if (f.Repo != "" && r.Repo != f.Repo) || (f.Repos != nil && !slices.Contains(f.Repos, r.Repo)) || (f.Before != 0 && r.ID >= f.Before) {
					continue
				}
				if len(wantGUIDs) < f.Limit && (!heard || (r.ID-1)%3 != 0) {
					wantGUIDs = append(wantGUIDs, fmt.Sprintf("g%02d", r.ID-1))
				}
				if (f.State == "" || r.State == f.State) && (!f.Active || !r.State.Ended()) && len(wantRuns) < f.Limit {
					wantRuns = append(wantRuns, r)
				}
			}
			got, err := d.Runs(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wantRuns, got); diff != "" {
				t.Errorf("Runs(%+v) (-want +got)\n%s", f, diff)
			}
			found, err := d.Deliveries(t.Context(), DeliveryFilter{Repo: f.Repo, Repos: f.Repos, Before: f.Before, Limit: f.Limit, SkipQuiet: heard})
			if err != nil {
				t.Fatal(err)
			}
			var guids []string
			for _, v := range found {
				guids = append(guids, v.GUID)
			}
			if diff := cmp.Diff(wantGUIDs, guids); diff != "" {
				t.Errorf("Deliveries of %+v (-want +got)\n%s", f, diff)
			}
		})
	})
}

// The list of open questions says who is asked first.
func TestAsked(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		gate := func(n int) pipeline.Data {
			return pipeline.Data{Gate: &pipeline.Gate{ID: fmt.Sprint("gate/", n), Kind: pipeline.GateEscalation, Question: "Go on?",
				For: pipeline.Actor{ID: 5, Login: fmt.Sprint("ann", n)}}}
		}
		add(t, d, begin(t, d, 1), ev("a", pipeline.EventGateRequested, 1, gate(1)))
		add(t, d, begin(t, d, 2), ev("b", "note", 1, pipeline.Data{}), ev("c", pipeline.EventGateRequested, 2, gate(2)))
		list, all, err := d.OpenGates(t.Context(), nil, 10)
		must(t, err)
		want(t, "open questions", all, 2)
		var asked []string
		for _, g := range list {
			asked = append(asked, g.Asked)
		}
		if diff := cmp.Diff([]string{"ann1", "ann2"}, asked); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

// A run that waits for nothing but the question of a module is found among those that wait.
func TestRunWhoseModuleAsks(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		for i, r := range []struct {
			state  string
			parent int
		}{{"running", 0}, {"running", 0}, {"waiting", 0}, {"waiting", 1}, {"running", 1}, {"running", 2}, {"waiting", 3}, {"verified", 0}, {"waiting", 8}} {
			_, err := d.SQL().Exec(`INSERT INTO runs (key, trace, seq, repo_id, repo, issue, title, branch, state, started, updated, parent) VALUES ($1, '', 1, 7, 'acme/shop', $2, '', '', $3, 1, 1, $4)`,
				fmt.Sprint("k", i), i+1, r.state, r.parent)
			must(t, err)
		}
		for _, repos := range [][]string{nil, {"acme/shop"}} {
			rows, err := d.Runs(t.Context(), Filter{State: pipeline.StateWaiting, Repos: repos})
			must(t, err)
			var got []string
			for _, r := range rows {
				got = append(got, fmt.Sprintf("%d %s %d", r.ID, r.State, r.Asks))
			}
			if diff := cmp.Diff([]string{"3 waiting 0", "1 running 1"}, got); diff != "" {
				t.Error(diff)
			}
		}
	})
}
