package agent

import (
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/module"
)

func aligning(enabled bool) *phase {
	run := newRun()
	run.Config.Upstream.Enabled = enabled
	run.Task = pipeline.Task{Title: "Faster search", Body: "Search answers within 200 ms at p95."}
	return &phase{job: Job{Run: run, Instructions: []Doc{{Path: "AGENTS.md", Text: "# Rules\n- The oldest browser is IE11.\n- Use pnpm only."},
		{Path: "tools/AGENTS.md", Text: "No new dependencies."}}}}
}

// Covers U5: a contradiction is said once, with both quotes; what is kept stands in the plan.
func TestPlanIsAligned(t *testing.T) {
	t.Parallel()
	p := aligning(true)
	plan := pipeline.Plan{Summary: "Rewrite the list in React 18", Steps: []string{"A search may take up to 2 s", "Add the library zod"}}
	var told contradictions
	bad := strings.Join(p.align(&plan, &told), "\n")
	for _, want := range []string{`AGENTS.md says "The oldest browser is IE11", but the plan says "Rewrite the list in React 18"`,
		`the task says "Search answers within 200 ms at p95", but the plan says "A search may take up to 2 s"`, "`despite:`"} {
		if !strings.Contains(bad, want) {
			t.Errorf("the planner is told\n%s\nwant %s", bad, want)
		}
	}
	if strings.Contains(bad, "zod") || len(told) != 2 {
		t.Errorf("told of %v, want two: rules of a directory hold for it alone", told)
	}
	plan = pipeline.Plan{Summary: "Write the list anew, with React 18 in place of tables", Risks: []string{"despite: IE11 goes next week"}}
	again := p.align(&plan, &told)
	if len(again) > 0 || len(plan.Risks) != 2 || !strings.HasPrefix(plan.Risks[1], "Contradiction that the planner keeps: AGENTS.md says") {
		t.Errorf("the second time: %q, risks %q, want it kept and noted", again, plan.Risks)
	}
	for n, want := range []string{"no entry in risks says why", ""} {
		plan = pipeline.Plan{Summary: "Write the list anew, with React 18 in place of tables", Risks: []string{"despite: that", "IE11"}}
		if bad := strings.Join(p.align(&plan, &told), "\n"); (bad == "") != (want == "") || !strings.Contains(bad, want) {
			t.Errorf("without a reason, time %d: %q, want %q", n+1, bad, want)
		}
	}
	if len(plan.Risks) != 3 || !strings.HasPrefix(plan.Risks[2], "Contradiction that the planner keeps, without a reason: AGENTS.md says") {
		t.Errorf("kept without a reason: %q", plan.Risks)
	}
	plan = pipeline.Plan{Summary: "Run `npm install` first"}
	if bad := p.align(&plan, &told); len(bad) != 1 || !strings.Contains(bad[0], "package manager") {
		t.Errorf("another contradiction: %q, want one", bad)
	}
}

func TestPlanIsNotAligned(t *testing.T) {
	t.Parallel()
	plan := pipeline.Plan{Summary: "Rewrite the list in React 18"}
	if bad := aligning(false).align(&plan, &contradictions{}); len(bad) > 0 {
		t.Errorf("without the setting: %q", bad)
	}
	p := aligning(true)
	p.job.Run.Notes = []string{"Internet Explorer is not supported any more, drop it."}
	if bad := p.align(&plan, &contradictions{}); len(bad) > 0 {
		t.Errorf("a maintainer settled it: %q", bad)
	}
	p = aligning(true)
	p.job.Run.Task.Body = "Move the list to React 18."
	if bad := p.align(&plan, &contradictions{}); len(bad) > 0 {
		t.Errorf("the task asks for it: %q", bad)
	}
}

func TestModulesAreAligned(t *testing.T) {
	t.Parallel()
	plan := pipeline.Plan{Summary: "Orders and checkout", Split: &module.Split{
		Modules: []module.Module{{ID: "orders", Summary: "Offers the orders API over gRPC"},
			{ID: "checkout", Summary: "Calls the orders API over REST", Steps: []string{"Call createOrder synchronously"}}},
		Promises: []module.Promise{{ID: "P1", From: "orders", To: []string{"checkout"}, Text: "createOrder is asynchronous"}}}}
	bad := strings.Join(aligning(true).align(&plan, &contradictions{}), "\n")
	for _, want := range []string{`module orders says "Offers the orders API over gRPC", but module checkout says "Calls the orders API over REST"`,
		`promise P1 says "createOrder is asynchronous", but module checkout says "Call createOrder synchronously"`} {
		if !strings.Contains(bad, want) {
			t.Errorf("the planner is told\n%s\nwant %s", bad, want)
		}
	}
}
