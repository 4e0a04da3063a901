package pipeline_test

import (
	"strings"
	"testing"

	. "forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/pipelinetest"

	"github.com/google/go-cmp/cmp"
)

// Covers U4: with loop.proofs, a criterion without a test that passed on this head, and
// not without the change, sends the work back; naming the test needs no commit, and is
// reviewed like one.
func TestProofsRequired(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		proofs config.Proofs
		script string
		state  State
		want   string // the failure that is open, or ""
	}{
		{"off", "", "implement a\nreview ok\ntest ok", StateVerified, ""},
		{"warn", config.ProofsWarn, "implement a\nreview ok\ntest ok", StateVerified, ""},
		{"nothing named", config.ProofsRequire, "implement a\nreview ok\ntest ok", StateRunning, "no test is named that shows it"},
		{"an old test", config.ProofsRequire, "implement a proves AC1 TestA\nreview ok\ntest ok", StateRunning, "passes without the change, too, and the reviewer does not name it: TestA"},
		{"not there", config.ProofsRequire, "implement a proves AC1 TestNew\nreview ok\ntest ok", StateRunning, "did not run on this head: TestNew"},
		{"a new test", config.ProofsRequire, "implement a proves AC1 TestNew\nreview ok\ntest ok and TestNew", StateVerified, ""},
		{"named later, without a commit", config.ProofsRequire,
			"implement a\nreview ok\ntest ok and TestNew\nimplement nothing proves AC1 TestNew\nreview ok\ntest ok and TestNew", StateVerified, ""},
		{"another failure comes first", config.ProofsRequire, "implement a\nreview ok\ntest TestB 0.9", StateRunning, "got 1 want 2"},
		{"what failed before is known", config.ProofsRequire, "implement a\nreview ok\ntest ok before TestOld", StateRunning, "no test is named that shows it"},
		{"naming does not do for another failure", config.ProofsRequire,
			"implement a\nreview ok\ntest TestB 0.9\nimplement nothing proves AC1 TestNew\nimplement nothing proves AC1 TestNew", StateWaiting, "got 1 want 2"},
		{"a claim for a plan that is gone", config.ProofsRequire,
			"implement a proves AC1 TestNew\nreview error x @design > plan\nplan ok\nimplement b\nreview ruled ok; fixed x\ntest ok and TestNew", StateRunning, "no test is named that shows it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Loop.Proofs = c.proofs
			p := pipelinetest.New(cfg, Task{Issue: 1})
			if err := p.Play("plan ok\n" + c.script + "\n"); err != nil {
				t.Fatal(err)
			}
			p.Step()
			open := ""
			for _, is := range p.Run.Failures {
				if is.State == IssueOpen {
					open += is.Failure.Error
				}
			}
			if p.Run.State != c.state || !strings.HasSuffix(open, c.want) || (c.want == "") != (open == "") {
				t.Errorf("%s, open %q; want %s, %q\n%s", p.Run.State, open, c.state, c.want, p.Trace.String())
			}
		})
	}
}

// Covers U4: naming other tests again and again, without a commit, comes to an end.
func TestProofsNeverEnd(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Loop.Proofs = config.ProofsRequire
	p := pipelinetest.New(cfg, Task{Issue: 1})
	script := "plan ok\nimplement a\nreview ok\ntest ok\n" + strings.Repeat("implement nothing proves AC1 TestA\nreview ok\ntest ok\n", 2)
	if err := p.Play(script); err != nil {
		t.Fatal(err)
	}
	p.Step()
	if p.Run.State != StateWaiting {
		t.Errorf("%s, want a human to be asked\n%s", p.Run.State, p.Trace.String())
	}
}

// Covers U4, V6: what a module names as shown is held against the tests of the whole.
func TestProofsOfModules(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Loop.Proofs, cfg.Modules.Mode = config.ProofsRequire, config.ModulesAuto
	p := pipelinetest.New(cfg, Task{Issue: 1})
	script := "plan split a, b; contract api.go; unwired\ncontract interfaces\n"
	for _, id := range []string{"a", "b"} {
		script += strings.ReplaceAll("part X: plan given\npart X: implement it proves AC-X TestOfX\npart X: review ok\npart X: test ok and TestOfX\nmerge ok\n", "X", id)
	}
	if err := p.Play(script + "review ok\ntest ok and TestOfa\n"); err != nil {
		t.Fatal(err)
	}
	p.Step()
	want := map[string]string{"AC1": "no test is named that shows it", "AC-a": "", "AC-b": "did not run on this head: TestOfb"}
	got := map[string]string{}
	for _, row := range p.Run.Proofs(&p.Run.Iterations[0]) {
		got[row.Criterion] = row.Lacks()
	}
	if diff := cmp.Diff(want, got); diff != "" || len(p.Run.Bounces) != 1 {
		t.Errorf("(-want +got):\n%s\n%s", diff, p.Trace.String())
	}
}

// Covers U4: the report of an iteration keeps the tests that were named when it was made,
// and one of an earlier plan says nothing of what the new one asks for.
func TestProofsOfEarlierReports(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, script, want string }{
		{"named again", "implement a proves AC1 TestA\nreview ok\ntest ok\nimplement nothing proves AC1 TestNew\nreview ok\ntest ok and TestNew", "AC1: **not proved**: passes without the change, too, and the reviewer does not name it: TestA"},
		{"another plan", "implement a proves AC1 TestA\nreview ok\ntest TestB 0.1\nhuman simplify leave rounding out\nplan ok\nimplement b proves AC1 TestNew\nreview ok\ntest ok and TestNew", ""},
	} {
		cfg := config.Default()
		cfg.Loop.Proofs = config.ProofsRequire
		p := pipelinetest.New(cfg, Task{Issue: 1})
		if err := p.Play("plan ok\n" + c.script + "\n"); err != nil {
			t.Fatal(c.name, err)
		}
		first, last := p.Run.Report(1), p.Run.Report(2)
		if strings.Contains(first, "TestNew") || !strings.Contains(first, c.want) || strings.Contains(first, "#### Acceptance criteria") != (c.want != "") {
			t.Errorf("%s: the first report does not say %q:\n%s", c.name, c.want, first)
		}
		if !strings.Contains(last, "AC1: tests: `TestNew` passed") {
			t.Errorf("%s: the last report does not say what shows AC1:\n%s", c.name, last)
		}
	}
}
