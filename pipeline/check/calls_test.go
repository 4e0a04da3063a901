package check

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/worktree"
)

// Covers T8: calls are recorded whatever path a suite needs by itself, and one that ends the
// program it is made in does not hide the others.
func TestCallsOfPython(t *testing.T) {
	need(t, "python3")
	w := newWorkspace(t, `
-- src/price.py --
import sys


def main(args):
    sys.exit(2)


def total(n):
    return n * 2
-- tests/test_price.py --
import price

try:
    price.main(['--help'])
except SystemExit:
    pass
assert price.total(4) == 8
`)
	tree := commitTree{w, t}
	if err := into(t.Context(), tree, map[string]string{"sitecustomize.py": recordPython}); err != nil {
		t.Fatal(err)
	}
	c := &checker{root: w.dir, recording: true}
	own := []string{"PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=" + filepath.Join(w.dir, "src")}
	res, err := w.Run(t.Context(), worktree.Command{Timeout: time.Minute, Args: []string{"python3", "tests/test_price.py"}, Env: slices.Concat(own, c.recordEnv(own))})
	if err != nil || res.Exit != 0 {
		t.Fatalf("%v, %s", err, res.Stderr)
	}
	var rec recording
	if err := recorded(t.Context(), tree, &rec); err != nil || len(rec.Calls) != 2 {
		t.Fatalf("recorded %+v, %v; want two calls", rec, err)
	}
	out := make([]*string, len(rec.Calls))
	if err := replayIn(t.Context(), tree, rec, "py", ".", []string{"python3", "app.py", replayPython}, out); err != nil {
		t.Fatal(err)
	}
	if out[0] == nil || *out[0] != "None" || out[1] == nil || *out[1] != "8" {
		t.Errorf("replayed %v", out)
	}
}

// Tests may run in any number of processes: what is replayed of all of them is bounded.
func TestRecordedIsBounded(t *testing.T) {
	tree := commitTree{newWorkspace(t, ""), t}
	files := map[string]string{}
	for i := range 3 {
		files[fmt.Sprintf("calls-%d.json", i)] = `{"calls": [` + strings.Repeat(`{"args": "()"}, `, maxCalls/2) + `{"args": ""}, {"args": "()"}]}`
	}
	if err := into(t.Context(), tree, files); err != nil {
		t.Fatal(err)
	}
	var rec recording
	if err := recorded(t.Context(), tree, &rec); err != nil || len(rec.Calls) != maxCalls {
		t.Errorf("%d calls, %v; want %d", len(rec.Calls), err, maxCalls)
	}
}

// timedTree keeps the commands that were run.
type timedTree struct {
	*fakeTree
	ran *[]worktree.Command
}

func (t timedTree) Run(ctx context.Context, c worktree.Command) (worktree.Result, error) {
	*t.ran = append(*t.ran, c)
	return t.fakeTree.Run(ctx, c)
}

// A suite that is recorded has less time than one that judges, and never more.
func TestRecordedInTime(t *testing.T) {
	const patch = "diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-x = 0\n+x = os.environ.get('X')\n"
	for minutes, want := range map[int]time.Duration{30: 5 * time.Minute, 2: 2 * time.Minute} {
		var log []string
		var ran []worktree.Command
		open := func(_ context.Context, sha string) (Tree, error) {
			return timedTree{&fakeTree{sha: sha, log: &log, files: map[string]string{"calc.py": "x = os.environ.get('X')\n"}, answer: func(*fakeTree, string) (worktree.Result, error) {
				return worktree.Result{Stdout: []byte("TAP version 13\n1..1\nok 1 - a\n")}, nil
			}}, &ran}, nil
		}
		_, err := Verify(t.Context(), open, Options{Base: "B", Head: "H", Patch: patch, Baseline: &pipeline.TestReport{Names: []string{"a"}, Passed: 1},
			Config: config.Tests{TimeoutMinutes: minutes, Commands: []string{"sh run"}}})
		if err != nil {
			t.Fatal(err)
		}
		recorded, judged := 0, 0
		for _, c := range ran {
			switch {
			case !slices.Equal(c.Args, []string{"sh", "-c", "sh run"}):
			case slices.Contains(c.Env, "PYTHONPATH=/work/"+callsDir):
				if recorded++; c.Timeout != want {
					t.Errorf("of %d minutes, a recorded suite has %s, want %s", minutes, c.Timeout, want)
				}
			default:
				if judged++; c.Timeout != time.Duration(minutes)*time.Minute {
					t.Errorf("of %d minutes, a suite that judges has %s", minutes, c.Timeout)
				}
			}
		}
		if recorded == 0 || judged == 0 {
			t.Errorf("%d recorded and %d judging runs of the suite: %q", recorded, judged, log)
		}
	}
}
