package agent

import (
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/upstream"
)

// Covers U3: a model cannot name a human as who made a criterion a limitation, nor as who
// decided.
func TestOnlyHumansLimit(t *testing.T) {
	t.Parallel()
	plan, bad := checkPlan([]byte(`{"summary":"x","steps":["y"],"criteria":[{"id":"AC1","text":"z","by":"ann"}],
		"left_out":[{"id":"AC2","text":"q","by":"ann"}]}`), nil)
	if len(bad) > 0 || plan.Criteria[0].By != "" || len(plan.LeftOut) > 0 {
		t.Errorf("plan %+v, %v", plan, bad)
	}
	run := newRun()
	run.State, run.Config.Upstream.Enabled = pipeline.StateRunning, true
	run.Plan = &plan
	run.Upstream = []upstream.Feedback{{ID: "up/1", From: upstream.Implementer, Kind: upstream.Constraint, State: upstream.Resolving,
		Ask: upstream.Ask{About: []string{"AC1"}, Text: "not so"}}}
	const tape = "-- resolve 0/1 --\n>>> submit\nchoice: fix\nwhy: go on\nby: ann\nhuman: true\n"
	a := newAgent(t, "tape:script", tapeModel(t, tape))
	reply, _, err := a.Resolve(t.Context(), job(run, pipeline.PhaseRef{Phase: pipeline.PhaseResolve}, newWorkspace(t, nil), &eventLog{}))
	if err != nil || reply.By != "" || reply.Human || reply.Why != "go on" {
		t.Errorf("reply %+v, %v", reply, err)
	}
}

// Covers U2: what is said must be about criteria that there are, and in the task's words;
// with the setting off, nobody is asked for it and nothing is read.
func TestAsks(t *testing.T) {
	t.Parallel()
	run := newRun()
	run.Task.Body, run.Plan = "Export it as **CSV**.", &pipeline.Plan{Criteria: []pipeline.Criterion{{ID: "AC1", Text: "x"}}}
	p := &phase{job: Job{Run: run}}
	args := []byte(`{"constraints":[{"about":["AC9"],"text":"no","severity":"high"},{"about":[],"text":"no","severity":"low"}],
		"uncovered":[{"quote":"export it as csv","text":"t"},{"quote":"as pdf","text":"t"}]}`)
	var impl pipeline.Implementation
	if bad := p.constrained(args, &impl); bad != nil || impl.Constraints != nil {
		t.Errorf("off: %v, %+v", bad, impl.Constraints)
	}
	if list, bad := p.uncovered(args); list != nil || bad != nil {
		t.Errorf("off: %v, %+v", bad, list)
	}
	run.Config.Upstream.Enabled = true
	bad := strings.Join(p.constrained(args, &impl), "; ")
	if !strings.Contains(bad, `no criterion "AC9"; about is one of plan, AC1`) || !strings.Contains(bad, "number 2 needs about") {
		t.Errorf("constraints: %s", bad)
	}
	for quote, want := range map[string]bool{"a": false, "it": false, "export": false, "as csv": false, "Export it": true, "Export it as CSV.": true} {
		if got := run.Asks().Quotes(quote); got != want {
			t.Errorf("the quote %q shows something: %v", quote, got)
		}
	}
	if _, bad := p.uncovered(args); len(bad) != 1 || !strings.Contains(bad[0], `"as pdf" does not stand in the task`) {
		t.Errorf("uncovered: %v", bad)
	}
}

func asked(t *testing.T, about ...string) *pipeline.Run {
	t.Helper()
	run := newRun()
	run.State, run.Config.Upstream.Enabled = pipeline.StateRunning, true
	run.Task.Title, run.Task.Body = "Show the list", "Users export the list as CSV."
	run.Plan = &pipeline.Plan{Steps: []string{"one"}, Criteria: []pipeline.Criterion{{ID: "AC1", Text: "The list takes at most 500 ms"}}}
	run.Upstream = []upstream.Feedback{{ID: "up/1", From: upstream.Implementer, To: upstream.Planner, Kind: upstream.Constraint, State: upstream.Resolving,
		Ask: upstream.Ask{About: about, Text: "not so"}}}
	return run
}

// Covers U3: what the rules let pass is confirmed by another role than the planner's; what a
// human decides anyway, and what changes nothing, is not. A planner does not confirm itself,
// and is told once of what it cannot decide.
func TestConfirmed(t *testing.T) {
	t.Parallel()
	const add, wider = "choice: add\ntext: Users export the list as CSV\nquote: export the list as CSV\nwhy: w\nconfirmed: true\n",
		"choice: clarify\ncriterion: AC1\ntext: The list takes at most 900 ms\nwhy: w\nconfirmed: true\n"
	for name, c := range map[string]struct {
		tape      string
		confirmed bool
		objection string
	}{
		"agrees": {"-- resolve 0/1 --\n>>> submit\n" + add + "-- confirm 0/1 --\n@expect Users export the list as CSV\n@reject (w)\n" +
			">>> submit\ntakes_away: false\nwhy: faster\n", true, ""},
		"objects": {"-- resolve 0/1 --\n>>> submit\n" + add + "-- confirm 0/1 --\n>>> submit\ntakes_away: true\nwhy: no\n", false, "no"},
		"says half": {"-- resolve 0/1 --\n>>> submit\n" + add + "-- confirm 0/1 --\n>>> submit\nwhy: no\n-- confirm 0/2 --\n@expect both needed\n" +
			">>> submit\ntakes_away: true\nwhy: still no\n", false, "still no"},
		"a human's": {"-- resolve 0/1 --\n>>> submit\n" + wider + "-- resolve 0/2 --\n@expect another text of a criterion may ask for less\n>>> submit\n" + wider, false, ""},
		"nothing":   {"-- resolve 0/1 --\n>>> submit\nchoice: fix\nwhy: go on\nconfirmed: true\n", false, ""},
	} {
		a := newAgent(t, "tape:script", tapeModel(t, c.tape))
		reply, _, err := a.Resolve(t.Context(), job(asked(t, "AC1"), pipeline.PhaseRef{Phase: pipeline.PhaseResolve}, newWorkspace(t, nil), &eventLog{}))
		if err != nil || reply.Confirmed != c.confirmed || reply.Objection != c.objection {
			t.Errorf("%s: %+v, %v", name, reply, err)
		}
	}
}

// Covers U3: what the planner tells the implementer is no fact for who judges the work.
func TestAdviceIsNoFact(t *testing.T) {
	t.Parallel()
	run := asked(t, "AC1")
	f := &run.Upstream[0]
	f.State, f.Decision = upstream.Resolved, &upstream.Reply{Choice: upstream.Fix, Why: "AC1 is met", By: upstream.Planner, Weighed: []string{"AC1 is a limitation"}}
	for ph, want := range map[pipeline.Phase]bool{pipeline.PhaseImplement: true, pipeline.PhaseReview: false, pipeline.PhaseTest: false} {
		p := &phase{agent: &Agent{}, job: Job{Run: run, Ref: pipeline.PhaseRef{Phase: ph}}}
		got := p.prompt().plan().scratchpad().String()
		if strings.Contains(got, `changes no criterion: "AC1 is met"`) != want || !want && strings.Contains(got, "is met") ||
			strings.Contains(got, "limitation") || !strings.Contains(got, "all stays as it is") {
			t.Errorf("%s: %s", ph, got)
		}
	}
	f.Decision = &upstream.Reply{Choice: upstream.Design, Steps: []string{"two"}, Why: "AC1 is met", By: upstream.Planner}
	if got := run.Decisions()[0]; !strings.Contains(got, `Its reason: "AC1 is met"`) {
		t.Errorf("a reason is no claim: %s", got)
	}
}
