package agent

import (
	"testing"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/role"
	"forge/pipeline/track"
)

// Covers U1: what a role submits is read by what it answers for, and nothing else of it.
func TestReadDraft(t *testing.T) {
	t.Parallel()
	for r, want := range map[role.Role]string{
		role.Analyst:   "b\nOpen: which\n(functional): a (“q”)",
		role.Product:   "b\n: a (for REQ1)\n(non-goal): n",
		role.Architect: "b\n(decision): a, because w; weighed: o\n(constraint): c",
		role.UX:        "b\n(screen): a\n(state): a",
	} {
		item := `{"text":" a ","quote":"q","for":"REQ1","kind":"odd","why":"w","weighed":["o"," "],"id":"AC7"}`
		a, bad := readDraft([]byte(`{"summary":" b ","requirements":[`+item+`],"criteria":[`+item+`],"decisions":[`+item+`],
			"items":[`+item+`,{"kind":"state","text":"a"}],"open":["which"],"constraints":["c"],"non_goals":["n",""]}`), r)
		if got := a.Text(); len(bad) > 0 || got != want || a.Role != r {
			t.Errorf("%s: %q, %q, want %q", r, got, bad, want)
		}
	}
	if _, bad := readDraft([]byte(`{`), role.UX); len(bad) == 0 {
		t.Error("what is no JSON is read")
	}
}

// A role has the planner's model unless it has its own, and all together a share of the cost.
func TestRolesOfThePlanner(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "anthropic/claude-opus-5-5", modelFunc(nil), func(o *Options) {
		o.Models = map[config.Role]string{"": "server/default", "planner": "server/planner"}
	})
	run := newRun()
	run.Config.Models = map[config.Role]string{"product": "repo/product"}
	for r, want := range map[config.Role]string{config.RoleAnalyst: "server/planner", config.RoleProduct: "repo/product",
		config.RoleImplementer: "server/default"} {
		if _, name, err := a.model(run, r); err != nil || name != want {
			t.Errorf("the %s has %q, %v, want %q", r, name, err, want)
		}
	}
	run = newRun()
	run.Spent = map[pipeline.Phase]pipeline.Usage{pipeline.PhaseAnalyse: {MicroUSD: 1_500_000}, pipeline.PhaseDesign: {MicroUSD: 450_000}}
	run.Usage.MicroUSD = 1_950_000
	a = newAgent(t, "anthropic/claude-opus-5-5", modelFunc(nil))
	_, _, err := a.Draft(t.Context(), job(run, pipeline.PhaseRef{Phase: pipeline.PhaseDesign}, nil, nil), role.Architect)
	wantFault(t, err, pipeline.FaultBudget, "the architect has cost $1.9500 of its share of $2.0000")
}

// The plan takes requirements and criteria over as they were written; a plan for work that was sent back may change them.
func TestPlanTakesOver(t *testing.T) {
	t.Parallel()
	run := newRun()
	run.Task = pipeline.Task{Title: "Faster search", Body: "Search answers within 200 ms at p95."}
	p := &phase{job: Job{Run: run}}
	run.Track = &track.Choice{Track: track.Full}
	run.Artefacts = []role.Artefact{
		{Role: role.Analyst, Items: []role.Item{{ID: "REQ1", Text: "fast", Quote: "Search answers within 200 ms"}}},
		{Role: role.Product, Items: []role.Item{{ID: "AC1", Text: "It is fast", For: "REQ1"}, {ID: "NG1", Kind: role.NonGoal, Text: "Sorting"}}},
		{Role: role.Architect, Items: []role.Item{{ID: "DEC1", Kind: role.Decision, Text: "The layout begins at a base breakpoint of 320 px"}}},
	}
	if keys := p.planForm(); len(keys) != len(planParts)-2 {
		t.Errorf("the form asks for %d keys", len(keys)/2)
	}
	plan, bad := checkPlan([]byte(`{"summary":"s","steps":["Begin at a base breakpoint of 1024 px"],"criteria":[{"id":"AC9","text":"nothing"}]}`), p.given())
	if bad = append(bad, p.required(&plan)...); len(bad) > 0 || len(plan.Criteria) != 1 ||
		plan.Criteria[0] != (pipeline.Criterion{ID: "AC1", Text: "It is fast", For: "REQ1"}) ||
		len(plan.Requirements) != 1 || plan.Requirements[0].Quote != "Search answers within 200 ms" {
		t.Errorf("the plan is %+v, %q", plan, bad)
	}
	run.Iterations = []pipeline.Iteration{{Number: 1}}
	if plan, _ = checkPlan([]byte(`{"summary":"s","steps":["x"],"criteria":[{"text":"other"}]}`), p.given()); plan.Criteria[0].Text != "other" {
		t.Errorf("work that was sent back keeps %+v", plan.Criteria)
	}
}
