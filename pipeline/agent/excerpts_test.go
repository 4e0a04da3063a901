package agent

import (
	"slices"
	"testing"

	"forge/pipeline"
)

// What the planner reads of the files of its plan, the implementer is shown as it stands; a
// part of a part is not shown twice, and other files are not. What a tool gave has its tokens and
// its price in its event. Covers I1.
func TestPlannersExcerpts(t *testing.T) {
	t.Parallel()
	run := newRun()
	ws, log := newWorkspace(t, map[string]string{"calc.go": "package calc\n\nfunc Sub() {}\n", "other.go": "package other\n"}), &eventLog{}
	a := newAgent(t, "anthropic/claude-opus-5-5", tapeModel(t, `-- planner 0/1 --
>>> read
path: ./calc.go
from: 3
>>> read
path: calc.go
from: 2
>>> read
path: other.go
>>> run
command: echo changed > calc.go; cat calc.go
-- planner 0/2 --
@expect changed
>>> submit
summary: s
steps: [calc.go]
criteria: [{text: it subtracts}]
files: [calc.go]
excerpts: [{file: other.go}]
-- implementer 1/1 --
@expect What the planner read
@expect     3	func Sub() {}
@reject package
>>> submit
summary: s
`))
	plan, _, err := a.Plan(t.Context(), job(run, pipeline.PhaseRef{Phase: pipeline.PhasePlan, Attempt: 1}, ws, log))
	if want := []pipeline.Excerpt{{File: "calc.go", From: 2}}; err != nil || !slices.Equal(plan.Excerpts, want) {
		t.Fatalf("excerpts %+v, %v; want %+v", plan.Excerpts, err, want)
	}
	used := 0
	for _, e := range log.events {
		if u := e.Data.Tool; u != nil {
			if used++; u.Tokens == 0 || u.MicroUSD != 4*u.Tokens { // $4 a million
				t.Errorf("%s took %d tokens and %d micro-USD", u.Tool, u.Tokens, u.MicroUSD)
			}
		}
	}
	if used != 5 {
		t.Errorf("%d tools were used, want 5", used)
	}
	run.Plan, run.Iterations = &plan, []pipeline.Iteration{{Number: 1}}
	ws = newWorkspace(t, map[string]string{"calc.go": "package calc\n\nfunc Sub() {}\n"})
	if _, _, err := a.Implement(t.Context(), job(run, pipeline.PhaseRef{Phase: pipeline.PhaseImplement, Iteration: 1, Attempt: 1}, ws, nil)); err != nil {
		t.Fatal(err)
	}
}

// A result goes in by the tool of its own stage, or by submit; a question goes in by ask.
// Covers B2.
func TestToolsThatHandIn(t *testing.T) {
	t.Parallel()
	run := newRun()
	run.Plan = &pipeline.Plan{Summary: "s", Criteria: []pipeline.Criterion{{ID: "AC1", Text: "it subtracts"}}}
	run.Iterations = []pipeline.Iteration{{Number: 1}}
	a := newAgent(t, "tape:x", tapeModel(t, `-- compliance 1/1 --
>>> submit_review
summary: good
risk: 1
findings: []
-- compliance 1/2 --
@expect your result goes into submit_criteria, not into submit_review
>>> submit_criteria
criteria: [{id: AC1, met: true, evidence: calc.go:1}]
-- quality 1/1 --
>>> submit_review
summary: good
risk: 1
-- quality 1/2 --
@expect findings is missing
@expect call submit_review again
>>> submit
summary: good
risk: 1
findings: []
-- planner 0/1 --
>>> ask
question: Which sign?
options: [plus, minus]
`))
	ws := newWorkspace(t, map[string]string{"calc.go": "package calc\n"})
	review, _, err := a.Review(t.Context(), job(run, pipeline.PhaseRef{Phase: pipeline.PhaseReview, Iteration: 1, Attempt: 1}, ws, nil))
	if err != nil || review.Summary != "good" {
		t.Errorf("review %+v, %v", review, err)
	}
	plan, _, err := a.Plan(t.Context(), job(newRun(), pipeline.PhaseRef{Phase: pipeline.PhasePlan, Attempt: 1}, ws, nil))
	if err != nil || plan.Question != "Which sign?" || len(plan.Options) != 2 {
		t.Errorf("plan %+v, %v", plan, err)
	}
}
