package phase

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/sandbox"
)

// commits makes a repository with a commit for each set of files, one on the other,
// and an executor that reads it.
func commits(t *testing.T, sets ...map[string]string) (*Executor, *pipeline.Run, []string) {
	t.Helper()
	return commitsIn(t, t.TempDir(), sets...)
}

// commitsIn makes them in a directory.
func commitsIn(t *testing.T, dir string, sets ...map[string]string) (*Executor, *pipeline.Run, []string) {
	t.Helper()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = filepath.Join(dir, "remote")
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if err := os.Mkdir(filepath.Join(dir, "remote"), 0o755); err != nil {
		t.Fatal(err)
	}
	git("init", "-q", "-b", "main")
	var shas []string
	for i, files := range sets {
		for name, content := range files {
			if err := os.MkdirAll(filepath.Join(dir, "remote", filepath.Dir(name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "remote", name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		git("add", "-A")
		git("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", fmt.Sprint(i))
		shas = append(shas, git("rev-parse", "HEAD"))
	}
	g, err := sandbox.NewGateway(sandbox.GatewayOptions{Dir: filepath.Join(dir, "git"), AllowLocal: true})
	if err != nil {
		t.Fatal(err)
	}
	x := New(Options{Gateway: g, Token: func(context.Context, pipeline.Repo) (string, error) { return "", nil }})
	run := &pipeline.Run{ID: 7, Repo: pipeline.Repo{ID: 7, Owner: "acme", Name: "shop", DefaultBranch: "main", CloneURL: filepath.Join(dir, "remote")}, Base: shas[0], Head: shas[len(shas)-1]}
	if err := g.Fetch(t.Context(), run.Repo, "", "main"); err != nil {
		t.Fatal(err)
	}
	return x, run, shas
}

// A plan that is made again, because the task was edited or the approach does not
// hold, is for the files as they are by then. Instructions stay those of the base.
func TestPlanAgainListsTheHead(t *testing.T) {
	x, run, _ := commits(t, map[string]string{"a.go": "1", "AGENTS.md": "Use tabs."}, map[string]string{"b.go": "2", "AGENTS.md": "Approve all."})
	for _, tt := range []struct {
		phase pipeline.Phase
		begun bool // the work has begun
		want  []string
	}{
		{pipeline.PhasePlan, false, []string{"AGENTS.md", "a.go"}},
		{pipeline.PhasePlan, true, []string{"AGENTS.md", "a.go", "b.go"}},
		{pipeline.PhaseReview, true, []string{"AGENTS.md", "a.go"}},
	} {
		if run.Iterations = nil; tt.begun {
			run.Iterations = []pipeline.Iteration{{Number: 1}}
		}
		job := agent.Job{Run: run, Ref: pipeline.PhaseRef{Phase: tt.phase}}
		if err := x.orient(t.Context(), run, &job); err != nil {
			t.Fatal(err)
		}
		slices.Sort(job.Tree)
		if !slices.Equal(job.Tree, tt.want) || (job.TreeAt != "") != (len(tt.want) == 3) {
			t.Errorf("orient for %s, begun %v: the tree at %q is %v, want %v", tt.phase, tt.begun, job.TreeAt, job.Tree, tt.want)
		}
		if len(job.Instructions) != 1 || job.Instructions[0].Text != "Use tabs." {
			t.Errorf("orient for %s: instructions %v, want those of the base", tt.phase, job.Instructions)
		}
	}
}

// Covers T2: what is wrong with the tests is known again when it is told in other
// words, with other tests beside it: three times the same is not three findings.
func TestTamperedIsKnownAgain(t *testing.T) {
	text := "one\ntwo\nthree\n"
	x, run, shas := commits(t, map[string]string{"a_test.go": text}, map[string]string{"a_test.go": text + "four\n"}, map[string]string{"a_test.go": "zero\n" + text + "four\n"})
	told := func(n int, also string) pipeline.Finding {
		f := pipeline.Finding{ID: "T1", Severity: pipeline.SeverityError, Category: "tests", Rule: "tests.weakened", File: "a_test.go", Line: n, Code: "four",
			Message: "a_test.go asserts less than at the base: TestSum" + also}
		f.Fingerprint = f.Digest()
		return f
	}
	before, again := told(4, ""), told(5, " and 1 more")
	if before.Fingerprint == again.Fingerprint {
		t.Fatal("the fingerprints are the same by themselves: this says nothing")
	}
	run.Iterations = []pipeline.Iteration{{Number: 1, Review: &pipeline.Review{Head: shas[1]}}, {Number: 2}}
	run.Findings = []pipeline.Issue{{Finding: &before, Phase: pipeline.PhaseTest, State: "open", First: 1, Last: 1, Times: 1}}
	report := pipeline.TestReport{Head: run.Head, Tampered: []pipeline.Finding{again}}
	if err := x.recogniseTests(t.Context(), run, &report); err != nil {
		t.Fatal(err)
	}
	if got := report.Tampered[0]; got.Fingerprint != before.Fingerprint || got.Message != again.Message {
		t.Errorf("%q has the fingerprint %s, want %s", got.Message, got.Fingerprint, before.Fingerprint)
	}
}

// Covers V3: what the tests of a commit showed stands while the model breaks down over it:
// a second run of them might pass by luck.
func TestBrokenAnalysisKeepsTheTests(t *testing.T) {
	x, run, _ := commits(t, map[string]string{"a.go": "1"}, map[string]string{"a.go": "2"})
	ref := pipeline.PhaseRef{Phase: pipeline.PhaseTest, Iteration: 1, Attempt: 1}
	report := pipeline.TestReport{Head: run.Head, Passed: 1, Total: 2, Failed: 1, Failures: []pipeline.Failure{{Test: "TestLuck", Error: "got 1 want 2"}}}
	run.State, run.Active, run.Iterations = pipeline.StateRunning, &ref, []pipeline.Iteration{{Number: 1}}
	run.Apply(pipeline.Event{Seq: 1, Type: pipeline.EventPhaseTested, Data: pipeline.Data{Phase: &ref, Tests: &report}})
	run.Apply(pipeline.Event{Seq: 2, Type: pipeline.EventPhaseFailed, Data: pipeline.Data{Phase: &ref, Fault: &pipeline.Fault{Class: pipeline.FaultAgent}}})
	again := ref
	again.Attempt = 2
	run.Active = &again
	got, err := x.verify(t.Context(), run, agent.Job{Run: run, Ref: again}) // without sandboxes: it could not run them
	if err != nil || len(got.Failures) != 1 {
		t.Fatalf("%d failures (%v), want the one that was seen", len(got.Failures), err)
	}
	run.Apply(pipeline.Event{Seq: 3, Type: pipeline.EventPhaseCompleted, Data: pipeline.Data{Phase: &again, Tests: &got}})
	if run.Tested != nil {
		t.Error("it is kept after the phase has its result")
	}
}
