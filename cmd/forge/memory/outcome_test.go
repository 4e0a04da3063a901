package memory

import (
	"context"
	"slices"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/store"
)

// Covers L5: a first review caught something when more of it was confirmed than not; what
// people asked for themselves, and what came up later, says nothing about it.
func TestCaught(t *testing.T) {
	t.Parallel()
	raised := func(first int, category pipeline.Category, states ...pipeline.IssueState) (out []pipeline.Issue) {
		for _, s := range states {
			out = append(out, pipeline.Issue{Phase: pipeline.PhaseReview, First: first, State: s, Finding: &pipeline.Finding{Category: category}})
		}
		return out
	}
	const style = pipeline.CategoryStyle
	for _, c := range []struct {
		name     string
		findings []pipeline.Issue
		want     bool
	}{
		{"nothing raised", nil, false},
		{"fixed", raised(1, style, pipeline.IssueFixed), true},
		{"taken as it is", raised(1, style, pipeline.IssueAccepted), true},
		{"not decided", raised(1, style, pipeline.IssueOpen), false},
		{"withdrawn", raised(1, style, pipeline.IssueWithdrawn), false},
		{"as many dismissed", raised(1, style, pipeline.IssueFixed, pipeline.IssueDismissed), false},
		{"more fixed", raised(1, style, pipeline.IssueFixed, pipeline.IssueDismissed, pipeline.IssueFixed), true},
		{"by a person", raised(1, pipeline.CategoryHuman, pipeline.IssueFixed), false},
		{"later", raised(2, style, pipeline.IssueFixed), false},
	} {
		run := &pipeline.Run{}
		if run.Findings = c.findings; outcomeOf(run).Caught != c.want {
			t.Errorf("%s: caught %v, want %v", c.name, !c.want, c.want)
		}
	}
}

// Covers M3: a dismissal after the verdict is part of what became of the run.
func TestOutcomeAfterTheVerdict(t *testing.T) {
	t.Parallel()
	m, run := bare(t, nil)
	m.o.Reflection = false
	f := pipeline.Finding{ID: "F1", Fingerprint: "fp1", Severity: pipeline.SeverityWarning, Category: pipeline.CategoryStyle,
		Message: "Quote it", File: "a.sh", Line: 1}
	review := pipeline.PhaseRef{Phase: pipeline.PhaseReview, Iteration: 1, Attempt: 1}
	implement := pipeline.PhaseRef{Phase: pipeline.PhaseImplement, Iteration: 1, Attempt: 1}
	note(t, m, run,
		pipeline.Event{ID: "i", Type: pipeline.EventPhaseEntered, Data: pipeline.Data{Phase: &implement}},
		pipeline.Event{ID: "j", Type: pipeline.EventPhaseCompleted,
			Data: pipeline.Data{Phase: &implement, Implementation: &pipeline.Implementation{Parent: "b", Head: "h"}}},
		pipeline.Event{ID: "p", Type: pipeline.EventPhaseEntered, Data: pipeline.Data{Phase: &review}},
		pipeline.Event{ID: "r", Type: pipeline.EventPhaseCompleted,
			Data: pipeline.Data{Phase: &review, Review: &pipeline.Review{Head: "h", Findings: []pipeline.Finding{f}}}},
		pipeline.Event{ID: "v", Type: pipeline.EventRunVerified})
	outcome := func() (findings, dismissed int) {
		t.Helper()
		for _, id := range m.takeEnds(t.Context()) {
			if err := m.RunEnded(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		list, err := m.o.DB.Outcomes(t.Context(), "", time.Time{})
		if err != nil || len(list) != 1 {
			t.Fatalf("outcomes %+v, %v", list, err)
		}
		return list[0].Findings, list[0].Dismissed
	}
	tell := func(events ...pipeline.Event) {
		t.Helper()
		now, err := m.o.DB.Load(t.Context(), run.ID)
		if err != nil {
			t.Fatal(err)
		}
		m.OnEvents(now, events)
	}
	tell(pipeline.Event{Type: pipeline.EventRunVerified})
	if n, d := outcome(); n != 1 || d != 0 {
		t.Fatalf("at the verdict %d findings, %d of them dismissed", n, d)
	}
	said := pipeline.SignalEvents([]pipeline.Signal{{Key: "dismissed/1", Kind: pipeline.SignalDismissed, Actor: ann,
		Weight: 1, Finding: "fp1", At: m.o.Now().Add(time.Hour)}})
	note(t, m, run, said...)
	tell(said...)
	if n, d := outcome(); n != 1 || d != 1 {
		t.Errorf("after it %d findings, %d of them dismissed", n, d)
	}
}

// Covers M3: what a person told Forge, or dismissed with a reason, is never left out to find out what it is
// worth; what they did without one, and what a model read in an answer, is.
func TestReasonsAreNotWithheld(t *testing.T) {
	t.Parallel()
	m, run := bare(t, nil)
	m.o.Withhold = 1
	keys := map[int64]string{}
	for i, tags := range [][]string{nil, {"no_reason"}, {"as_read"}, nil} {
		l := pipeline.Learning{Key: []string{"reason", "no reason", "as read", "told"}[i], Scope: "repo:acme/greet",
			Type: pipeline.LearningSemantic, Source: pipeline.SourceDismissal, Author: ann, Tags: tags, Weight: 1, Base: 0.7, Created: m.o.Now(),
			Content: []string{"Greetings are never quoted", "The greeting needs no tests", "A greeting may be long", "Every greeting ends with a full stop"}[i]}
		if l.Key == "told" {
			l.Source = pipeline.SourceHuman
		}
		err := m.o.DB.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			ids, err := m.o.DB.SaveLearnings(ctx, tx, []pipeline.Learning{l})
			if err == nil {
				keys[ids[0]] = l.Key
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := m.choose(t.Context(), &agent.Job{Run: run, Ref: pipeline.PhaseRef{Phase: pipeline.PhasePlan}}, "planner")
	if err != nil {
		t.Fatal(err)
	}
	named := func(ids []int64) (out []string) {
		for _, id := range ids {
			out = append(out, keys[id])
		}
		slices.Sort(out)
		return out
	}
	if given, out := named(r.Given), named(r.Withheld); !slices.Equal(given, []string{"reason", "told"}) || !slices.Equal(out, []string{"as read", "no reason"}) {
		t.Errorf("given %q, withheld %q", given, out)
	}
}
