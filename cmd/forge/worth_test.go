package main

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"forge/cmd/forge/shell"
	"forge/learn/impact"
	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// Covers M3, L5: what learning is worth, on the screen and as JSON, from what the
// database holds of runs and decisions.
func TestMemoryWorth(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run(shell.Done, []string{"0 runs had learnings that fit"}, "memory", "worth")
	c.run(shell.Misused, []string{"did you mean --days 90?"}, "memory", "worth", "--days", "100")
	tried(t, c.db())
	c.run(shell.Done, []string{"Runs with memory against runs without: first review approved 50 % of 16 against 50 % of 8; too few runs to tell.",
		"24 runs had learnings that fit: 36 were given, 12 withheld", "−100 pt", "+1.00", "Skip the linter", "12 ",
		"1 learning(s) with too few runs", "24 given, 0 withheld"}, "memory", "worth", "--repo", "acme/site")
	c.run(shell.Misused, []string{"did you mean acme/site?"}, "memory", "worth", "--repo", "acme/sites")
	predicted(t, c.db())
	c.run(shell.Done, []string{"held back, by week", "22 % at most"}, "memory",
		"worth", "--repo", "acme/shop")
	var rep impact.Report
	if err := json.Unmarshal([]byte(c.run(shell.Done, nil, "memory", "worth", "--json", "--days", "30")), &rep); err != nil {
		t.Fatal(err)
	}
	first := rep.Learnings[0]
	if len(rep.Learnings) != 2 || first.Content != "Skip the linter" || first.Scope != "repo:acme/site" || first.State != "active" ||
		first.FirstPass.Value != -1 || rep.Overall.Runs != 24 {
		t.Errorf("got %+v", rep)
	}
}

// tried fills a database with runs that do worse with the first of two learnings,
// and with two decisions of which one is taken back.
func tried(t *testing.T, db *store.DB) {
	t.Helper()
	defer db.Close()
	now := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var ids []int64
	must(db.Tx(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		for _, text := range []string{"Skip the linter", "Close files"} {
			got, err := db.SaveLearnings(ctx, tx, []pipeline.Learning{
				{Key: text, Scope: "repo:acme/site", Type: pipeline.LearningProcedural, Content: text, Source: "reflection", Weight: 1, Base: 0.9,
					Created: now, State: "active"}})
			if err != nil {
				return err
			}
			ids = append(ids, got...)
		}
		for i, s := range []pipeline.Signal{{Kind: pipeline.SignalDismissed, Text: "no"}, {Kind: pipeline.SignalApplied}, {Kind: pipeline.SignalApplied, Off: true}} {
			s.Key, s.At, s.Weight, s.Actor, s.Scope = fmt.Sprint("s", i), now, 1, pipeline.Actor{ID: 1, Login: "ann"}, "repo:acme/site"
			s.About = &pipeline.Finding{Category: "style", Confidence: 0.9}
			if _, err := db.PutSignal(ctx, tx, s); err != nil {
				return err
			}
		}
		return nil
	}))
	for i := range 24 {
		run, err := db.CreateRun(ctx, fmt.Sprint("run", i),
			pipeline.Start{Repo: pipeline.Repo{ID: 1, Owner: "acme", Name: "site"}, Task: pipeline.Task{Issue: i + 2}, Config: config.Default(),
				Base: "b", Branch: fmt.Sprint("forge/", i)},
			now, fmt.Sprintf("%032x", i+1), nil)
		must(err)
		r := pipeline.Recall{Phase: pipeline.PhaseImplement, Iteration: 1, Role: "implementer", Given: ids}
		o := record.Outcome{Run: run.ID, Bounces: 1, At: now, Holdout: &record.Holdout{Share: 0.1, Out: i%3 == 0}}
		if i%2 == 0 {
			r.Given, r.Withheld, o.FirstPass, o.Bounces = ids[1:], ids[:1], true, 0
		}
		must(db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			if err := db.RecordRecall(ctx, tx, run.ID, r, now); err != nil {
				return err
			}
			return db.PutOutcome(ctx, tx, o)
		}))
	}
}

// predicted fills a database with decisions on two rules of another repository, and
// with a run that held findings back.
func predicted(t *testing.T, db *store.DB) {
	t.Helper()
	defer db.Close()
	ctx, now := t.Context(), time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		for i := range 20 {
			s := pipeline.Signal{Key: fmt.Sprint("mended/", i), Kind: pipeline.SignalFixedByHuman, At: now.Add(time.Duration(i-20) * time.Minute),
				Weight: 1, Actor: pipeline.Actor{ID: 1, Login: "ann"}, Scope: "repo:acme/shop",
				About: &pipeline.Finding{Category: "style", Rule: "doc", File: "a.go", Severity: pipeline.SeverityInfo, Confidence: 0.9}}
			if i%10 == 9 {
				s.Kind, s.About.Rule = pipeline.SignalDismissed, "length"
			}
			if _, err := db.PutSignal(ctx, tx, s); err != nil {
				return err
			}
		}
		return nil
	}))
	run, err := db.CreateRun(ctx, "shop", pipeline.Start{Repo: pipeline.Repo{ID: 2, Owner: "acme", Name: "shop"},
		Task: pipeline.Task{Issue: 1}, Config: config.Default(), Base: "b", Branch: "forge/shop"},
		now, fmt.Sprintf("%032x", 99), nil)
	must(err)
	review := pipeline.Review{}
	for i := range 3 {
		review.Suppressed = append(review.Suppressed,
			pipeline.SuppressedFinding{Finding: pipeline.Finding{Fingerprint: fmt.Sprint("f", i), Category: "style"},
				Why: "people here would dismiss it"})
	}
	must(db.Append(ctx, run, []pipeline.Event{{ID: "review", Type: pipeline.EventPhaseCompleted, Source: "forge", Time: now,
		Data: pipeline.Data{Phase: &pipeline.PhaseRef{Phase: pipeline.PhaseReview, Iteration: 1, Attempt: 1}, Review: &review}}}, nil))
	must(db.PutOutcome(ctx, nil, record.Outcome{Run: run.ID, At: now}))
}
