package metrics

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
)

// A log written by hand, and what every metric of it is, worked out by hand.
//
// Run 1 (7 March 2026): planned in 60 s. Iteration 1 is implemented in 600 s with
// two turns, the second of which stagnated; the review finds two errors (style,
// security) in 120 s and sends the work back. Iteration 2 is implemented in 300 s;
// the review finds one of them again in 100 s and sends the work back. Iteration 3
// is implemented in 200 s and approved in 80 s; the tests fail in 50 s. A person is
// asked, accepts it after 10 minutes, and a month later dismisses the style finding.
//
// Run 2 (8 March): planned in 90 s, implemented in 240 s, approved in 60 s, tested
// in 30 s: verified.
func TestByHand(t *testing.T) {
	t.Parallel()
	rep := compute(append(Of(firstRun()), Of(secondRun())...), Options{Days: 7, Now: time.Date(2026, 3, 8, 23, 0, 0, 0, time.UTC)})
	got := map[string]string{}
	say := func(e *Estimate) string {
		if e == nil {
			return "no data"
		}
		return fmt.Sprintf("%d × %.4g", e.N, e.Value)
	}
	for _, m := range rep.Metrics {
		parts := []string{say(m.Now)}
		for _, f := range m.Labels {
			parts = append(parts, f.Label+" "+say(f.Now))
		}
		got[m.Key] = strings.Join(parts, ", ")
	}
	want := map[string]string{
		// Two plans of one turn each; the implementer's turns are 2, 1 and 1 in run 1 and 1 in run 2.
		PhaseTurns: "6 × 1.167, plan 2 × 1, implement 4 × 1.25",
		// plan (60+90)/2; implement (600+300+200+240)/4; review (120+100+80+60)/4; test (50+30)/2 → all 1,930 s in 12
		PhaseDuration: "12 × 1.608e+05, plan 2 × 7.5e+04, implement 4 × 3.35e+05, review 4 × 9e+04, test 2 × 4e+04",
		ToolSuccess:   "4 × 0.75, edit 2 × 0.5, read 2 × 1",
		ToolDuration:  "4 × 25, edit 2 × 35, read 2 × 15",      // edit (30+40)/2, read (10+20)/2
		ToolCost:      "4 × 312.5, edit 2 × 400, read 2 × 225", // run 1: 601 for an edit and a read is 301 and 300, then 499 for an edit; run 2: 150 for a read
		// Of the turns' cost, which is 1,600 in 7: input 2 ×, cached 1 ×, output and reasoning a half each.
		ModelTokens: "7 × 914.3, cached 7 × 228.6, input 7 × 457.1, output 7 × 114.4, reasoning 7 × 114.1",
		ModelAdapted: "7 × 0.1429, a tool's name 7 × 0, another form of request 7 × 0, calls in the text 7 × 0.1429, prompt cut by its server 7 × 0, " +
			"reasoning in the text 7 × 0, tokens are estimated 7 × 0",
		Stagnation:      "6 × 0.1667, plan 2 × 0, implement 4 × 0.25",
		PhaseIterations: "2 × 2, plan 2 × 1, implement 2 × 2, review 2 × 2, test 2 × 1",
		Bounces:         "2 × 1, review 2 × 1, test 2 × 0",
		// The first is not: one of its findings is there again. The second is: nothing of it is left.
		BounceResolution: "2 × 0.5, review 2 × 0.5",
		FirstPass:        "2 × 0.5",
		Diminishing:      "2 × 0.5",
		IterationFixes:   "2 × 1",
		IterationTime:    "4 × 4.45e+05", // (600+120) + (300+100) + (200+80+50) + (240+60+30) s
		Learnings:        "2 × 1.5",
		Application:      "2 × 0.5",
		Precision:        "5 × 0.2", // 3 given and 1 used, 2 given and none used
		Dismissal:        "2 × 0.5, security 1 × 0, style 1 × 1",
		Override:         "1 × 1",
		Response:         "1 × 6e+05",
		Success:          "2 × 0.5",
		QuickPass:        "2 × 0.5",
		Escalation:       "2 × 0.5",
		Cost:             "2 × 800", // 50+601+499+150+100 and 50+150
		PublishFailure:   "4 × 0.25",
		ModuleSpeedup:    "no data", ModuleCritical: "no data", ModuleRounds: "no data", ModuleConflicts: "no data", ModulesLeftOut: "no data", Proved: "no data", SkillSuccess: "no data", Rework: "no data", LensMended: "no data",
		QualityFailure: "no data", QualityRecovered: "no data",
		Upstream: "no data", UpstreamResponse: "no data", UpstreamEscalation: "no data", UpstreamHeld: "no data", TrackResult: "no data",
	}
	for _, d := range Catalogue() {
		if got[d.Key] != want[d.Key] {
			t.Errorf("%s:\n got %s\nwant %s", d.Key, got[d.Key], want[d.Key])
		}
	}
}

// hand writes a log.
type hand struct {
	at     time.Time
	events []pipeline.Event
}

func (h *hand) add(typ pipeline.EventType, d pipeline.Data) {
	h.events = append(h.events, pipeline.Event{ID: fmt.Sprint(len(h.events)), Run: 1, Seq: int64(len(h.events) + 1), Type: typ, Time: h.at, Data: d})
}

// phase is an execution that took some seconds; what happens within is told in between.
func (h *hand) phase(p pipeline.Phase, iteration int, seconds int64, d pipeline.Data, within ...func()) {
	ref := pipeline.PhaseRef{Phase: p, Iteration: iteration, Attempt: 1}
	h.add(pipeline.EventPhaseEntered, pipeline.Data{Phase: &ref})
	for _, f := range within {
		f()
	}
	h.at = h.at.Add(time.Duration(seconds) * time.Second)
	ref.Millis = seconds * 1000
	d.Phase = &ref
	h.add(pipeline.EventPhaseCompleted, d)
}

func (h *hand) step(p pipeline.Phase, iteration, number int, cost int64, advice string) func() {
	return func() {
		s := pipeline.Step{Phase: p, Iteration: iteration, Number: number, Advice: advice,
			Usage: pipeline.Usage{Calls: 1, Input: 3 * cost, CachedInput: cost, Output: cost, Reasoning: cost / 2, MicroUSD: cost}}
		if advice != "" {
			s.Adapted = []string{pipeline.AdaptedCalls, "not known here"}
		}
		h.add(pipeline.EventAgentIteration, pipeline.Data{Step: &s})
	}
}

func (h *hand) tool(iteration, step int, name string, ok bool, ms int64) func() {
	return func() {
		h.add(pipeline.EventToolExecuted, pipeline.Data{
			Tool: &pipeline.ToolUse{Phase: pipeline.PhaseImplement, Iteration: iteration, Step: step, Tool: name, OK: ok, Millis: ms}})
	}
}

func (h *hand) start() {
	h.add(pipeline.EventRunStarted, pipeline.Data{Start: &pipeline.Start{Config: config.Default(), Base: "a"}})
}

func firstRun() []pipeline.Event {
	h := &hand{at: time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)}
	plan, impl, rev, test := pipeline.PhasePlan, pipeline.PhaseImplement, pipeline.PhaseReview, pipeline.PhaseTest
	find := func(category string) pipeline.Finding {
		f := pipeline.Finding{Severity: pipeline.SeverityError, Category: pipeline.Category(category),
			Message: "the " + category + " of it is bad", File: category + ".go"}
		f.Fingerprint = f.Digest()
		return f
	}
	style, security := find("style"), find("security")
	head := func(from, to string) pipeline.Data {
		return pipeline.Data{Implementation: &pipeline.Implementation{Parent: from, Head: to}}
	}
	bounce := func(p pipeline.Phase, iteration int, issues ...string) {
		h.add(pipeline.EventBounce, pipeline.Data{Bounce: &pipeline.Bounce{Phase: p, Iteration: iteration, Issues: issues}})
	}
	h.start()
	h.phase(plan, 0, 60, pipeline.Data{Plan: &pipeline.Plan{}}, h.step(plan, 0, 1, 50, ""))
	h.phase(impl, 1, 600, head("a", "b"),
		func() {
			h.add(pipeline.EventRecalled, pipeline.Data{
				Recall: &pipeline.Recall{Phase: impl, Iteration: 1, Role: "implementer", Given: []int64{1, 2, 3}, Withheld: []int64{4}}})
		},
		h.step(impl, 1, 1, 601, ""), h.tool(1, 1, "edit", true, 30), h.tool(1, 1, "read", true, 10),
		h.step(impl, 1, 2, 499, "look at the caller"), h.tool(1, 2, "edit", false, 40))
	h.add(pipeline.EventUsed, pipeline.Data{Recall: &pipeline.Recall{Phase: impl, Iteration: 1, Role: "implementer", Used: []int64{2}}})
	h.add(pipeline.EventPublishCompleted, pipeline.Data{})
	h.phase(rev, 1, 120, pipeline.Data{Review: &pipeline.Review{Head: "b", Findings: []pipeline.Finding{style, security}}})
	bounce(rev, 1, style.Fingerprint, security.Fingerprint)
	h.phase(impl, 2, 300, head("b", "c"), h.step(impl, 2, 1, 150, ""))
	h.phase(rev, 2, 100, pipeline.Data{Review: &pipeline.Review{Head: "c", Findings: []pipeline.Finding{style}}})
	bounce(rev, 2, style.Fingerprint)
	h.phase(impl, 3, 200, head("c", "d"), h.step(impl, 3, 1, 100, ""))
	h.phase(rev, 3, 80, pipeline.Data{Review: &pipeline.Review{Head: "d", Reviewed: []string{"style.go", "security.go"}}})
	h.add(pipeline.EventPhaseApproved, pipeline.Data{Phase: &pipeline.PhaseRef{Phase: rev, Iteration: 3}})
	h.phase(test, 3, 50, pipeline.Data{Tests: &pipeline.TestReport{Head: "d", Total: 1, Failed: 1,
		Failures: []pipeline.Failure{{Fingerprint: "f", Test: "TestF"}}}})
	guard := &pipeline.Guard{Name: pipeline.GuardDiminishing, Phase: test}
	h.add(pipeline.EventDiminishing, pipeline.Data{Guard: guard})
	h.add(pipeline.EventGateRequested, pipeline.Data{Gate: &pipeline.Gate{ID: "gate/1", Kind: pipeline.GateStuck, Guard: guard}})
	h.add(pipeline.EventPublishFailed, pipeline.Data{Fault: &pipeline.Fault{Class: pipeline.FaultGitHub}})
	h.at = h.at.Add(10 * time.Minute)
	answer := &pipeline.Answer{Gate: "gate/1", Choice: "accept"}
	for _, typ := range []pipeline.EventType{pipeline.EventGateAnswered, pipeline.EventGateOverride, pipeline.EventRunAccepted} {
		h.add(typ, pipeline.Data{Answer: answer})
	}
	h.add(pipeline.EventReflection, pipeline.Data{Reflection: &pipeline.Reflection{Learnings: []int64{5, 6, 7}}})
	h.at = h.at.Add(30 * 24 * time.Hour) // it counts on the finding's day all the same
	h.add(pipeline.EventDismissed, pipeline.Data{
		Signal: &pipeline.Signal{Key: "dismissed/1", Kind: pipeline.SignalDismissed, Finding: style.Fingerprint, At: h.at}})
	return h.events
}

func secondRun() []pipeline.Event {
	h := &hand{at: time.Date(2026, 3, 8, 9, 0, 0, 0, time.UTC)}
	plan, impl, rev, test := pipeline.PhasePlan, pipeline.PhaseImplement, pipeline.PhaseReview, pipeline.PhaseTest
	h.start()
	h.phase(plan, 0, 90, pipeline.Data{Plan: &pipeline.Plan{}}, h.step(plan, 0, 1, 50, ""))
	h.phase(impl, 1, 240, pipeline.Data{Implementation: &pipeline.Implementation{Parent: "a", Head: "b"}},
		h.tool(1, 1, "read", true, 20), h.step(impl, 1, 1, 150, ""))
	h.add(pipeline.EventRecalled, pipeline.Data{Recall: &pipeline.Recall{Phase: rev, Iteration: 1, Role: "reviewer", Given: []int64{1, 2}}})
	h.phase(rev, 1, 60, pipeline.Data{Review: &pipeline.Review{Head: "b"}})
	h.add(pipeline.EventPhaseApproved, pipeline.Data{Phase: &pipeline.PhaseRef{Phase: rev, Iteration: 1}})
	h.phase(test, 1, 30, pipeline.Data{Tests: &pipeline.TestReport{Head: "b", Total: 2, Passed: 2}})
	h.add(pipeline.EventRunVerified, pipeline.Data{})
	for range 2 {
		h.add(pipeline.EventPublishCompleted, pipeline.Data{})
	}
	return h.events
}

// The intervals, against published and hand-computed ones: Wilson's of 8 in 10 is
// 0.4902 to 0.9433; the mean of 2, 4 and 6 has a standard error of 2/√3 and 2
// degrees of freedom, whose quantile is 4.303.
func TestIntervals(t *testing.T) {
	t.Parallel()
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-4*math.Max(1, want) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	share := (&total{n: 10, sum: 8}).estimate(definitions[Success])
	near("Wilson's low", share.Interval[0], 0.4902)
	near("Wilson's high", share.Interval[1], 0.9433)
	mean := (&total{n: 3, sum: 12, squares: 4 + 16 + 36}).estimate(definitions[Learnings])
	near("Student's low", mean.Interval[0], 0) // 4 - 4.969: a count is not negative
	near("Student's high", mean.Interval[1], 4+4.303*2/math.Sqrt(3))
	if one := (&total{n: 1, sum: 5, squares: 25}).estimate(definitions[Learnings]); one.Value != 5 || one.Interval != nil || one.Method != "" {
		t.Errorf("of one observation: %+v", one)
	}
	none := (&total{n: 5}).estimate(definitions[Success])
	near("Wilson's high of 0 in 5", none.Interval[1], 0.4345)
}
