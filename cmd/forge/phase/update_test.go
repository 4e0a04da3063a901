package phase

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/agent"
)

// Covers V9: whoever takes a run over merges by hand on its branch: the commit that it goes
// on from is one that the mirror has not seen, and the base may be in it.
func TestUpdateFromPushedHead(t *testing.T) {
	dir := t.TempDir()
	x, run, shas := commitsIn(t, dir, map[string]string{"a.txt": "1"}, map[string]string{"a.txt": "theirs"})
	x.o.Identity = func(context.Context) (Identity, error) { return Identity{Name: "bot", Email: "bot@example.com"}, nil }
	pushed := func(script string) string {
		t.Helper()
		cmd := exec.Command("sh", "-ec", script+"\ngit rev-parse HEAD")
		cmd.Dir = filepath.Join(dir, "remote")
		cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=p", "GIT_AUTHOR_EMAIL=p@example.com",
			"GIT_COMMITTER_NAME=p", "GIT_COMMITTER_EMAIL=p@example.com")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		lines := strings.Fields(string(out))
		return lines[len(lines)-1]
	}
	run.Branch, run.BaseHead, run.Iterations = "forge/issue-7", shas[1], []pipeline.Iteration{{Number: 1, Started: time.Unix(1, 0)}}
	job := agent.Job{Run: run, Ref: pipeline.PhaseRef{Phase: pipeline.PhaseUpdate, Iteration: 1, Attempt: 1}}
	for _, tt := range []struct {
		script    string
		conflicts []string
	}{
		{"git checkout -q -b forge/issue-7 " + shas[0] + "\necho mine > a.txt\ngit commit -qam mine", []string{"a.txt"}},
		{"git merge -q -s ours -m merged " + shas[1], nil},
	} {
		run.Head = pushed(tt.script)
		data, err := x.update(t.Context(), run, job)
		if err != nil {
			t.Fatalf("from %s, which was pushed: %v", run.Head, err)
		}
		if u := data.Update; !slices.Equal(u.Conflicts, tt.conflicts) || len(tt.conflicts) == 0 && u.Head != run.Head {
			t.Errorf("taken in as %+v, want conflicts %v", u, tt.conflicts)
		}
	}
}
