package render

import (
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/module"
	"forge/pipeline/pipelinetest"
)

// Covers V9: what is merged before it is finished says on the pull request what is missing, and
// that nobody has reviewed or tested the whole.
func TestMergedEarly(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Modules = config.Modules{Mode: config.ModulesAuto, Max: 6, Parallel: 2, Iterations: 3, Rounds: 1, OnFailure: "ask"}
	p := pipelinetest.New(cfg, pipeline.Task{Issue: 1, Title: "Sum is wrong"})
	err := p.Play(`plan split a, b, c needs b
		part a: plan given
		part a: implement it
		part a: review ok
		part a: test ok
		merge ok
		part b: plan given
		part b: implement it
		pull
		notice pull_closed merged`)
	if err != nil {
		t.Fatal(err)
	}
	body := testView(&p.Run).PullBody()
	for _, want := range []string{"see below", "## Known issues", "Missing** the module `b`", "with it goes AC-b", "Missing** the module `c`: not begun", "Not reviewed** as a whole", "Not tested** as a whole"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not said:\n%s", want, body)
		}
	}
	if strings.Contains(body, "Missing** the module `a`") {
		t.Errorf("a is merged:\n%s", body)
	}
}

// What a merge did to a person's commit stands on the pull request, and that a push took a
// merged module off the branch.
func TestMergesOverPeople(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Modules = config.Modules{Mode: config.ModulesAuto, Max: 6, Parallel: 2, Iterations: 3, Rounds: 1, OnFailure: "ask"}
	p := pipelinetest.New(cfg, pipeline.Task{Issue: 1, Title: "Sum is wrong"})
	err := p.Play(`plan split a, b; unwired
		part a: plan given
		part a: implement it
		part a: review ok
		part a: test ok
		merge ok
		notice push h9
		merge gone a
		merge conflict a/a.js
		part a: update markers a/a.js
		part a: update resolved took ours over a/a.js by ann keeps 0 of 2`)
	if err != nil {
		t.Fatal(err)
	}
	body := testView(&p.Run).PullBody()
	for _, want := range []string{"was merged, and not on the branch any more when ann pushed h9: it is to be merged again", "## Conflicts with what people committed",
		"⚠️ a/a.js was in conflict with c0ffee1 by ann (\"mine\"): nothing of it is left there, as the implementer of the module `a` resolved it"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not said:\n%s", want, body)
		}
	}
}

// The issue of a module that is left for later has all that it takes to build it, and what was
// left out because it needs it, whether anything was begun or not.
func TestLaterSaysAll(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Modules = config.Modules{Mode: config.ModulesAuto, Max: 6, Parallel: 2, Iterations: 3, Rounds: 1, OnFailure: "ask"}
	p := pipelinetest.New(cfg, pipeline.Task{Issue: 1, Title: "Sum is wrong", Body: "It must carry."})
	err := p.Play(`plan split a, b, c needs b; promise a b TestCarries
		part a: plan given
		part b: plan given
		part b: implement unable which one?
		part b: human later`)
	if err != nil {
		t.Fatal(err)
	}
	title, body := testView(&p.Run).Later(module.Find(p.Run.Parts, "b"), nil)
	if title != "Later: b" {
		t.Errorf("its title is %q", title)
	}
	for _, want := range []string{"was left for later by ann. So was what needs it: c.", "## b (`b`)\n\nbuild b", "- [ ] **AC-b** b works", "**Steps**\n\n- one", "- `b/**`", "`a` → b: it works (test `TestCarries`)",
		"## c (`c`)", "- [ ] **AC-c** c works", "It needs b.", "**Sum is wrong**", "It must carry."} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not said:\n%s", want, body)
		}
	}
}

// Whoever opens again what was closed is told what begins the work anew.
func TestCancelledSaysHowToBeginAnew(t *testing.T) {
	t.Parallel()
	p := pipelinetest.New(config.Default(), pipeline.Task{Issue: 1, Title: "Sum is wrong"})
	if err := p.Play("plan ok\npull\nnotice pull_closed"); err != nil {
		t.Fatal(err)
	}
	v := testView(&p.Run)
	for what, body := range map[string]string{"pull request": v.PullBody(), "status": v.Status()} {
		if !strings.Contains(body, "To begin anew, put the label `forge` on #1 again, or write `/forge run` there") {
			t.Errorf("the %s does not say it:\n%s", what, body)
		}
	}
}

// A run that ended with a commit that GitHub did not take says so, with why, and links
// nothing that is not there.
func TestEndedUnpublished(t *testing.T) {
	t.Parallel()
	r := &pipeline.Run{State: pipeline.StateAccepted, Ended: "accepted by acme", Base: "aaaaaaaaaa", Head: "bbbbbbbbbb", Config: config.Default()}
	r.Counters.PublishFaults, r.Fault = 1, &pipeline.Fault{Class: pipeline.FaultGitHub, Message: "commits must be signed", Final: true}
	says := func() bool {
		return strings.Contains(testView(r).Status(), "GitHub does not have `bbbbbbb`, because it was not taken: commits must be signed")
	}
	if !says() {
		t.Errorf("it is not said:\n%s", testView(r).Status())
	}
	if strings.Contains(testView(r).Status(), "/commit/bbbb") {
		t.Error("a commit that GitHub does not have is linked")
	}
	if r.Published.Head = r.Head; says() {
		t.Error("it is said of a commit that was taken")
	}
}
