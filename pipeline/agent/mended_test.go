package agent

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"forge/pipeline"
)

// patchOf is git's patch from one tree to another.
func patchOf(t *testing.T, before, after map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for side, tree := range map[string]map[string]string{"old": before, "new": after} {
		for name, content := range tree {
			file := filepath.Join(dir, side, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Join(dir, side), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("git", "diff", "--no-index", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", "old", "new")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 {
		t.Fatal(err)
	}
	return strings.NewReplacer("a/old/", "a/", "b/new/", "b/", "b/old/", "b/", "a/new/", "a/").Replace(string(out))
}

// Covers T8: what was ruled fixed is shown again once the code that this was said of is another,
// whatever took its place, and not as long as it is; a wish, once any file that was there has changed.
func TestMendIsUndone(t *testing.T) {
	t.Parallel()
	file := func(body string) map[string]string {
		return map[string]string{"sum.py": "import os\n\n\ndef add(a, b):\n    return " + body + "\n\n\ndef other(x):\n    y = x\n    return y\n"}
	}
	with := func(tree map[string]string, name, content string) map[string]string {
		tree[name] = content
		return tree
	}
	spaced := map[string]string{"sum.py": strings.ReplaceAll(file("int(a) + int(b)")["sum.py"], "b):\n    return int(a) + int(b)", "b):  # integers\n    return int(a)+int(b)")}
	elsewhere := map[string]string{"sum.py": strings.Replace(file("int(a) + int(b)")["sum.py"], "y = x", "y = x + 1", 1)}
	placed := pipeline.Finding{Severity: "error", Category: pipeline.CategoryCorrectness, Message: "must take strings, too", File: "sum.py", Line: 5, Code: "    return b + a"}
	wish, free := placed, pipeline.Finding{Severity: "error", Category: pipeline.CategoryHuman, Message: "no"}
	wish.Category = pipeline.CategoryHuman
	far := placed
	far.Fix = &pipeline.Fix{Diff: "+++ b/conv.py\n"}
	seen, fixed := file("b + a"), file("int(a) + int(b)")
	for _, c := range []struct {
		name     string
		now      map[string]string
		gone     bool // the commit that mended it is not known any more
		finding  pipeline.Finding
		mend     map[string]string
		back     bool
		mayFixed bool // a ruling "fixed" counts on it
	}{
		{"set back to before the code that it was found in", file("a + b"), false, placed, fixed, true, true},
		{"set back to the code that it was found in", file("b + a"), false, placed, fixed, true, false},
		{"in other words", file("sum((b, a))"), false, placed, fixed, true, true},
		{"a line before it", file("b + a\n    return int(a) + int(b)"), false, placed, fixed, true, true},
		{"written in another way", spaced, false, placed, fixed, false, true},
		{"work elsewhere", elsewhere, false, placed, fixed, false, true},
		{"nothing else", fixed, false, placed, fixed, false, true},
		{"the file is gone", map[string]string{"b.py": "x = 1\n"}, false, placed, fixed, true, true},
		{"nobody knows what mended it", file("a + b"), true, placed, fixed, true, true},
		{"a wish: set back further", file("a + b"), false, wish, fixed, true, true},
		{"a wish: in other words", file("sum((b, a))"), false, wish, fixed, true, true},
		{"a wish: work elsewhere", elsewhere, false, wish, fixed, true, true},
		{"a wish without a place: set back further", file("a + b"), false, free, fixed, true, true},
		{"a wish without a place: work elsewhere", elsewhere, false, free, fixed, true, true},
		{"a wish: nothing else", fixed, false, wish, fixed, false, true},
		{"a wish without a place: half of it", with(file("int(a) + int(b)"), "NOTES", "why\n"), false, free, with(with(file("int(a) + int(b)"), "NOTES", "why\n"), "b.py", "x = 1\n"), true, true},
		{"mended in the file of its fix", with(file("b + a"), "conv.py", "x = int\n"), false, far, with(file("b + a"), "conv.py", "x = int\n"), false, true},
		{"mended in the file of its fix, other words", with(file("b + a"), "conv.py", "x = str\n"), false, far, with(file("b + a"), "conv.py", "x = int\n"), true, true},
	} {
		run := newRun()
		f := c.finding
		run.Findings = []pipeline.Issue{{State: pipeline.IssueFixed, FixedIn: "fixed", Phase: pipeline.PhaseReview, Seen: "seen", Finding: &f}}
		j := job(run, pipeline.PhaseRef{Phase: pipeline.PhaseReview, Iteration: 3}, newWorkspace(t, c.now), nil)
		j.Since = func(_ context.Context, commit string) (string, error) {
			if commit == "seen" {
				return patchOf(t, seen, c.now), nil
			}
			if c.gone {
				return "", fmt.Errorf("there is no commit %s", commit)
			}
			return patchOf(t, c.mend, c.now), nil
		}
		p := newAgent(t, "tape:x", nil).phase(j, pipeline.PhaseReview)
		list, _, err := p.claims(t.Context())
		if back := len(list) == 1 && list[0].back; err != nil || back != c.back {
			t.Errorf("%s: shown again %v, want %v; %v", c.name, back, c.back, err)
			continue
		}
		if c.back && (list[0].changed() != c.mayFixed || !strings.Contains(p.claimList(list), "IT WAS RULED FIXED, AND")) {
			t.Errorf("%s: a ruling counts %v, want %v; shown:\n%s", c.name, list[0].changed(), c.mayFixed, p.claimList(list))
		}
	}
}
