package main

import (
	"strings"
	"testing"
	"time"

	"forge/pipeline"
)

// The lines of a run name what keeps it from being green, and who let it pass all the same.
func TestNarrateTheVerdict(t *testing.T) {
	at := time.Date(2026, 3, 1, 14, 5, 0, 0, time.Local)
	ref := &pipeline.PhaseRef{Phase: pipeline.PhaseTest, Iteration: 1}
	run := &pipeline.Run{State: pipeline.StateVerified, Ended: "review and tests passed on 1234567", Waivers: []pipeline.Waiver{
		{By: pipeline.Actor{Login: "ann"}, What: "1 test failed before this work and still fails: TestOld"}}}
	for _, tt := range []struct {
		event pipeline.EventType
		data  pipeline.Data
		want  []string
		never string
	}{
		{pipeline.EventPhaseCompleted, pipeline.Data{Phase: ref, Tests: &pipeline.TestReport{Passed: 3, Total: 5, Before: []pipeline.Failure{{Test: "TestOld"}, {Test: "TestOlder"}},
			Unclean: "go test ended with 2", Suites: []pipeline.Suite{{Name: "pytest", NotRun: "python3 is not there"}}, Changed: []pipeline.TestChange{{Test: "TestSum"}}}},
			[]string{"3 of 5 passed, 0 failed", "2 failed before this work and still fail: TestOld, TestOlder", "not green: go test ended with 2", "pytest did not run: python3 is not there", "1 pass only as this work changed them"}, ""},
		{pipeline.EventPhaseCompleted, pipeline.Data{Phase: ref, Tests: &pipeline.TestReport{Passed: 5, Total: 5}}, []string{"5 of 5 passed, 0 failed ("}, ";"},
		{pipeline.EventRunVerified, pipeline.Data{}, []string{"review and tests passed on 1234567; ann let pass: 1 test failed before this work"}, ""},
		{pipeline.EventPhaseWaiting, pipeline.Data{Await: &pipeline.Await{Model: true, What: "x", Next: at, Until: at.Add(time.Hour)}}, []string{"for the model's provider, until 14:05"}, "at most"},
		{pipeline.EventPhaseWaiting, pipeline.Data{Await: &pipeline.Await{What: "the check lint", Next: at, Until: at.Add(time.Hour)}}, []string{"for the check lint, until 15:05 at most"}, ""},
	} {
		got := narrate(run, pipeline.Event{Type: tt.event, Data: tt.data}).text
		for _, w := range tt.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q does not say %q", tt.event, got, w)
			}
		}
		if tt.never != "" && strings.Contains(got, tt.never) {
			t.Errorf("%s: %q says %q", tt.event, got, tt.never)
		}
	}
}

// A run whose model has no price never says that it cost nothing.
func TestCostThatIsNotKnown(t *testing.T) {
	d := newDisplay(new(strings.Builder), time.Now())
	d.live = true
	d.refresh(&pipeline.Run{State: pipeline.StateRunning, Active: &pipeline.PhaseRef{Phase: pipeline.PhasePlan}, Usage: pipeline.Usage{Calls: 2, Unpriced: 9}})
	if !strings.Contains(d.status, "2 model calls, cost unknown") {
		t.Errorf("the line says %q", d.status)
	}
	if cost(12, true) != "unknown" || cost(12, false) != "$0.0000" {
		t.Errorf("%q, %q", cost(12, true), cost(12, false))
	}
}
