package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/module"
	"forge/pipeline/pipelinetest"
	"forge/pipeline/store"
)

// The lines of a run name what keeps it from being green, and who let it pass all the same.
func TestNarrateTheVerdict(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 14, 5, 0, 0, time.Local)
	ref := &pipeline.PhaseRef{Phase: pipeline.PhaseTest, Iteration: 1}
	run := &pipeline.Run{State: pipeline.StateVerified,
		Ended: "review and tests passed on 1234567; let pass by @ann: 1 test failed before this work",
		Consent: pipeline.Consent{Waivers: []pipeline.Waiver{
			{By: pipeline.Actor{Login: "ann"}, What: "1 test failed before this work and still fails: TestOld"}}}}
	for _, tt := range []struct {
		event pipeline.EventType
		data  pipeline.Data
		want  []string
		never string
	}{
		{pipeline.EventPhaseCompleted, pipeline.Data{Phase: ref,
			Tests: &pipeline.TestReport{Passed: 3, Total: 5, Before: []pipeline.Failure{{Test: "TestOld"}, {Test: "TestOlder"}},
				Unclean: "go test ended with 2", Suites: []pipeline.Suite{{Name: "pytest", NotRun: "python3 is not there"}},
				Changed: []pipeline.TestChange{{Test: "TestSum"}}}},
			[]string{"3 of 5 passed, 0 failed", "2 failed before this work and still fail: TestOld, TestOlder", "not green: go test ended with 2",
				"pytest did not run: python3 is not there", "1 pass only as this work changed them"}, ""},
		{pipeline.EventPhaseCompleted, pipeline.Data{Phase: ref,
			Tests: &pipeline.TestReport{Passed: 5, Total: 5,
				Tampered: []pipeline.Finding{{File: "calc.py", Line: 22, Message: "Code under test looks at CI"}, {File: "a.py", Message: "x"},
					{Message: "y"}, {Message: "z"}}}},
			[]string{"; calc.py:22: Code under test looks at CI; a.py: x; y; and 1 more"}, "; z"},
		{pipeline.EventPhaseCompleted, pipeline.Data{Phase: ref, Tests: &pipeline.TestReport{Passed: 5, Total: 5}}, []string{"5 of 5 passed, 0 failed ("}, ";"},
		{pipeline.EventRunVerified, pipeline.Data{},
			[]string{"review and tests passed on 1234567; let pass by @ann: 1 test failed before this work"}, "ann let pass"},
		{pipeline.EventPhaseWaiting, pipeline.Data{
			Await: &pipeline.Await{Model: true, What: "the model's provider until 13:05 UTC (OpenAI refused the API key (401))", Next: at,
				Until: at.Add(time.Hour)}},
			[]string{"for the model's provider, until 14:05 (OpenAI refused the API key (401))"}, "at most"},
		{pipeline.EventPhaseWaiting, pipeline.Data{Await: &pipeline.Await{What: "the check lint", Next: at, Until: at.Add(time.Hour)}},
			[]string{"for the check lint, until 15:05 at most"}, ""},
		{pipeline.EventModuleLeft, pipeline.Data{Part: &module.Part{ID: "auth", Left: "cancelled by ann"}}, []string{"auth stays as it was merged: cancelled by ann"}, ""},
		{pipeline.EventModuleLeft, pipeline.Data{Part: &module.Part{ID: "api", Left: "cancelled by ann"}}, []string{"api: cancelled by ann"}, "merged"},
	} {
		run.Parts = []module.Part{{ID: "auth", Merged: "abc"}, {ID: "api"}}
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

// The choices of a run that waits are given as commands of the terminal.
func TestChoicesInTheTerminal(t *testing.T) {
	t.Parallel()
	gate := pipeline.Gate{Question: "why", Choices: []pipeline.Choice{{Name: "approve"}, {Name: "continue", Arg: "N"}}}
	run := &pipeline.Run{ID: 7, State: pipeline.StateWaiting}
	run.Gates = append(run.Gates, gate)
	if got := summary(run); !strings.Contains(got, "Choices: `forge answer 7 approve`, `forge answer 7 continue N`.") {
		t.Errorf("summary %q", got)
	}
}

// A run whose model has no price never says that it cost nothing.
func TestCostThatIsNotKnown(t *testing.T) {
	t.Parallel()
	d := newDisplay(new(strings.Builder), time.Now())
	d.live = true
	d.refresh(&pipeline.Run{State: pipeline.StateRunning,
		Execution: pipeline.Execution{Active: &pipeline.PhaseRef{Phase: pipeline.PhasePlan}, Usage: pipeline.Usage{Calls: 2, Unpriced: 9}}})
	if !strings.Contains(d.status, "2 model calls, cost unknown") {
		t.Errorf("the line says %q", d.status)
	}
	if cost(12, true) != "unknown" || cost(12, false) != "$0.0000" {
		t.Errorf("%q, %q", cost(12, true), cost(12, false))
	}
}

// A run that has ended is in no phase.
func TestListRuns(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	rows := []store.RunRow{{ID: 2, State: pipeline.StateWaiting, Phase: pipeline.PhaseReview, Iteration: 1},
		{ID: 1, State: pipeline.StateVerified, Phase: pipeline.PhaseTest, Iteration: 3},
		{ID: 3, State: pipeline.StateRunning, Phase: pipeline.PhasePlan, Waits: "the model's provider until 12:04 UTC (HTTP 529)"}}
	if err := listRuns(&out, rows); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{"2 waiting review 1", "1 verified - 3", "3 running plan, waits for the model's provider until 12:04 UTC 0"} {
		if got := strings.Join(strings.Fields(lines[i+1]), " "); !strings.HasPrefix(got, want+" ") {
			t.Errorf("row %d is %q, want %q", i, got, want)
		}
	}
}

// Who let what pass is a part of what a run is, at whichever head it was.
func TestShowWaivers(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	run := &pipeline.Run{ID: 1, State: pipeline.StateVerified, Consent: pipeline.Consent{Waivers: []pipeline.Waiver{
		{By: pipeline.Actor{Login: "ann"}, What: "1 file of the change could not be shown to the reviewer: logo.png", Head: "1234567890"},
		{By: pipeline.Actor{Login: "bob"}, What: "1 test failed before this work", Head: "abcdef0123"}}}}
	if err := showRun(&out, run); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ann let pass, at 1234567: 1 file of the change could not be shown to the reviewer: logo.png\n",
		"bob let pass, at abcdef0: 1 test failed before this work\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the run is shown without %q:\n%s", want, out.String())
		}
	}
}

// What models and strangers write makes no line of its own, and does not drive the terminal.
func TestDisplayOneLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	d := newDisplay(&out, time.Now())
	d.print(time.Now(), line{"start", "a title\n  9.0s  verified  \x1b[31mall\x1b[0m \u202egood"})
	if got := out.String(); strings.Count(got, "\n") != 1 || strings.ContainsAny(got, "\x1b\u202e") || !strings.Contains(got, "a title 9.0s verified [31mall[0m good") {
		t.Errorf("printed %q", got)
	}
}

// What people are told to type is for the terminal; modules are named in any case.
func TestTyped(t *testing.T) {
	t.Parallel()
	run := &pipeline.Run{ID: 7, Parts: []module.Part{{ID: "auth"}}}
	got := typed(run, "`/forge auth continue 2` or `/forge continue` with words on further lines")
	if want := "`forge answer 7/auth continue 2` or `forge answer 7 continue` with words behind `--words`"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if id, part, err := runOrModule("7/Auth"); id != 7 || part != "auth" || err != nil {
		t.Errorf("7/Auth is %d, %q, %v", id, part, err)
	}
}

// A review that leaves open what was found before approves nothing.
func TestNarrateWhatStaysOpen(t *testing.T) {
	t.Parallel()
	p := pipelinetest.New(config.Default(), pipeline.Task{Issue: 1})
	if err := p.Play("plan ok\nimplement a\nreview ruled error a\nimplement b\nreview ruled ok; unchanged a\n"); err != nil {
		t.Fatal(err)
	}
	var run pipeline.Run
	last := ""
	for _, e := range p.Events {
		run.Apply(e)
		if e.Type == pipeline.EventPhaseCompleted && e.Data.Review != nil {
			last = narrate(&run, e).text
		}
	}
	if !strings.HasPrefix(last, "changes requested, 1 finding of before not gone") {
		t.Errorf("of the second review it says %q", last)
	}
}
