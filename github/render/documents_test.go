package render

import (
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/module"
	"forge/pipeline/rollout"
)

// Covers V11: a document for the specification, for each iteration that is over of the run and
// its modules, and for what came of it; what is still going on has none, and the newest
// stand first in the comment, which names what it has no room for.
func TestDocuments(t *testing.T) {
	t.Parallel()
	done := func(n int) pipeline.Iteration {
		return pipeline.Iteration{Number: n, Result: pipeline.ResultPassed, Review: &pipeline.Review{Summary: "all is well"}}
	}
	run := &pipeline.Run{ID: 7, Trace: "cafe", State: pipeline.StateRunning,
		Task: pipeline.Task{Issue: 3, Title: "Log in", Body: "Tell @octocat. <!-- hidden -->" + strings.Repeat("word ", 6000)},
		Plan: &pipeline.Plan{Summary: "three modules", Steps: []string{"one"}, Criteria: []pipeline.Criterion{{ID: "AC1", Text: "it works"}}}}
	run.Iterations = []pipeline.Iteration{done(1), {Number: 2, Result: pipeline.ResultInProgress, Review: &pipeline.Review{}}}
	child := &pipeline.Run{ID: 8, State: pipeline.StateVerified, Part: &module.Of{Run: 7, Module: module.Module{ID: "auth"}}}
	child.Iterations = []pipeline.Iteration{done(1)}
	paths := func(docs []Document) (out []string) {
		for _, d := range docs {
			out = append(out, d.Path)
		}
		return out
	}
	want := "specification.md validation/auth-1.md validation/integration-1.md"
	if got := strings.Join(paths(DocumentsOf(run, []*pipeline.Run{child})), " "); got != want {
		t.Errorf("documents of a run at work: %s; want %s", got, want)
	}
	run.State, run.Ended = pipeline.StateAccepted, "accepted by ann"
	docs := DocumentsOf(run, []*pipeline.Run{child})
	if got := strings.Join(paths(docs), " "); got != want+" feedback/insights.md" {
		t.Errorf("documents of a run that has ended: %s", got)
	}
	at := time.Date(2026, 7, 1, 12, 30, 0, 0, time.UTC)
	run.Rollouts = []rollout.Status{{Deployment: 9, Environment: "prod/eu west", Commit: "c0ffee", At: at, State: rollout.Unhealthy, Changed: at.Add(time.Hour), Why: "errors"}}
	docs = DocumentsOf(run, []*pipeline.Run{child})
	last := docs[len(docs)-1]
	if last.Path != "deployment/prod-eu-west-20260701-1230.md" || last.Title != "Deployment to prod/eu west" || !strings.Contains(last.Body, "it runs in prod/eu west since 2026-07-01 12:30 UTC, unhealthy: errors") ||
		!strings.Contains(last.Body, "commit `c0ffee`") || !strings.Contains(last.Body, "deployment 9") || !strings.Contains(last.Body, "**AC1** it works") {
		t.Errorf("the record of the deployment: %+v", last)
	}
	// each deployment leaves one, also where it was not watched, and says who agreed
	run.Deployed = []rollout.Status{{Deployment: 8, Environment: "staging", At: at.Add(-2 * time.Hour), State: rollout.Replaced, Why: "deployment 10"}, run.Rollouts[0]}
	run.Shipped = []rollout.Step{{Environment: "staging", Deployment: 10, Commit: "beef", At: at.Add(-time.Hour), Succeeded: at.Add(-50 * time.Minute)},
		{Environment: "prod/eu west", Deployment: 9, By: "ann", At: at}}
	run.Escaped = []string{"cart.go"}
	docs = DocumentsOf(run, []*pipeline.Run{child})
	last3 := docs[len(docs)-3:]
	if got := strings.Join(paths(last3), " "); got != "deployment/staging-20260701-1030.md deployment/staging-20260701-1140.md deployment/prod-eu-west-20260701-1230.md" {
		t.Errorf("the deployments' records: %s", got)
	}
	for n, want := range []string{"deployment 10", "in staging since 2026-07-01 11:40 UTC, not watched\n- commit `beef`", "agreed to by ann"} {
		if !strings.Contains(last3[n].Body, want) {
			t.Errorf("no %q in %s", want, last3[n].Body)
		}
	}
	for _, want := range []string{"#### In production\n\n- in staging since", "- in prod/eu west since 2026-07-01 12:30 UTC, unhealthy: errors\n- a defect in `cart.go` reached production"} {
		if insights := docs[len(docs)-4]; insights.Path != "feedback/insights.md" || !strings.Contains(insights.Body, want) {
			t.Errorf("no %q in %+v", want, insights)
		}
	}
	if got := DocumentsOf(&pipeline.Run{Plan: &pipeline.Plan{Question: "which?"}}, nil); got != nil {
		t.Errorf("a plan with a question has documents: %v", got)
	}
	v := Renderer{Run: run, Web: "https://github.com", Host: "github.com", Slug: "forge", Label: "forge"}
	for range 4 {
		docs = append(docs, docs[0]) // more than fits
	}
	body := v.Documents(docs)
	if strings.Contains(body, "@octocat") || strings.Contains(body, "hidden") || len(body) > MaxText*2 ||
		!strings.Contains(body, "Not shown here, for want of room: `specification.md`") {
		t.Errorf("the comment: %.3000s", body)
	}
	if i, j := strings.Index(body, "Insights"), strings.Index(body, "Validation of module auth 1"); i < 0 || j < i {
		t.Errorf("insights at %d, the module's validation at %d; want the newest first", i, j)
	}
}

// A question of a module that nobody answers leaves that module out, and not the run.
func TestUnansweredModule(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 1, 12, 30, 0, 0, time.UTC)
	run := &pipeline.Run{ID: 8, State: pipeline.StateWaiting, Config: config.Default(), Updated: at,
		Gates: []pipeline.Gate{{ID: "gate/1", Opened: at, Choices: []pipeline.Choice{{Name: "cancel"}}}}}
	v := Renderer{Run: run, Slug: "forge"}
	for part, want := range map[*module.Of]string{nil: "the run is cancelled on 2026-", {Module: module.Module{ID: "auth"}}: "the module `auth` is left out, with what needs it, on 2026-"} {
		run.Part = part
		for what, text := range map[string]string{"question": v.choices(&run.Gates[0]), "reminder": v.Reminder("k", &run.Gates[0])} {
			if !strings.Contains(text, want) {
				t.Errorf("the %s: %q does not say %q", what, text, want)
			}
		}
	}
}
