package pipeline_test

import (
	"strings"
	"testing"

	. "forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/pipelinetest"
)

// Covers V9, V10: a module whose later round somebody cancels stays as it was merged,
// whatever the run does then, and its branch is nobody's any more.
func TestCancelledLaterRound(t *testing.T) {
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
	if got := p.Run.Plan.Split.Rows(p.Run.Parts)[1].Status(p.Run.Parts); p.Run.State != StateAccepted || got != "merged" {
		t.Errorf("the run is %s, b is %q:\n%s", p.Run.State, got, p.Trace.String())
	}
	if told := "tell b: module.over"; strings.Count(p.Trace.String(), told) < 2 {
		t.Errorf("the branch of b stays:\n%s", p.Trace.String())
	}
}
