package check

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
