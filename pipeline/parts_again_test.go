package pipeline_test

import (
	"strings"
	"testing"

	. "forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/pipelinetest"
)

// Covers V9, V10: a module whose later round somebody cancels stays as it was merged,
// whatever the run does then, and its branch is nobody's any more.
func TestCancelledLaterRound(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Modules = config.Modules{Mode: "auto", Max: 6, Parallel: 3, Iterations: 3, Rounds: 2, OnFailure: "ask"}
	p := pipelinetest.New(cfg, Task{Issue: 1})
	built := func(id string) string {
		return strings.ReplaceAll("part ID: plan given\npart ID: implement it\npart ID: review ok\npart ID: test ok\nmerge ok\n", "ID", id)
	}
	err := p.Play("plan split a, b\n" + built("a") + built("b") + "pull\nimplement nothing\nreview ok\ntest ok\n" +
		"human continue 1 // more\nfault agent x\nfault agent x\nfault agent x\n" +
		"part b: human continue 1 // more\npart b: implement unable which?\npart b: human cancel\nhuman accept\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Run.Plan.Split.Rows(p.Run.Parts)[1].Status(p.Run.Parts, true); p.Run.State != StateAccepted || got != "merged" {
		t.Errorf("the run is %s, b is %q:\n%s", p.Run.State, got, p.Trace.String())
	}
	b := &p.Parts["b"].Run
	if got := b.WhyBack(&b.Bounces[0]); got != "a maintainer asked for changes" {
		t.Errorf("b goes back for %s", got)
	}
	if told := "tell b: module.over"; strings.Count(p.Trace.String(), told) < 2 {
		t.Errorf("the branch of b stays:\n%s", p.Trace.String())
	}
}

// A module that is left out cannot be begun again by a command that is for an issue.
func TestWhatNowOfAModule(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Modules = config.Modules{Mode: "auto", Max: 6, Parallel: 3, Iterations: 3, Rounds: 2, OnFailure: "ask"}
	p := pipelinetest.New(cfg, Task{Issue: 1})
	if err := p.Play("plan split a, b\npart b: plan given\npart b: implement unable which?\npart b: human cancel\n"); err != nil {
		t.Fatal(err)
	}
	_, words := p.Parts["b"].Run.Answer(command.Line{Name: "resume"}, Actor{Login: "ann"}, "comment", 1, p.Now)
	rows := p.Run.Plan.Split.Rows(nil)
	if got := rows[0].Status(nil, true); got != "not begun" {
		t.Errorf("of a run that has ended, a module that nobody began %s", got)
	}
	if want := "Run 7, which planned it, does without it."; !strings.Contains(words, want) || strings.Contains(words, "run`") {
		t.Errorf("it does not say %q: %s", want, words)
	}
}
