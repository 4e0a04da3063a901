package phase

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/pipeline/config"
	"forge/pipeline/deps"
	"forge/pipeline/workspace"
	"forge/pipeline/workspace/workspacetest"
)

// memory keeps readings as the database does.
type memory map[string][]byte

func (m memory) Reading(_ context.Context, repo, key string, v any) (bool, error) {
	data, there := m[repo+" "+key]
	if !there {
		return false, nil
	}
	return true, json.Unmarshal(data, v)
}

func (m memory) KeepReading(_ context.Context, repo, key string, v any, _ time.Time) (err error) {
	m[repo+" "+key], err = json.Marshal(v)
	return err
}

// Covers V6: the tests of a base run once for all runs that begin there; again for another
// commit, other settings, and where one failed.
func TestBaselineIsKept(t *testing.T) {
	t.Parallel()
	const script = "echo 1..1; if [ -e broken ]; then echo not ok 1 - a; else echo ok 1 - a; fi\n"
	b := plainBench(t, map[string]string{"t.sh": script}, map[string]string{"t.sh": script, "more.txt": "1"}, map[string]string{"t.sh": script, "broken": ""})
	ran := 0
	b.o.Spaces = workspacetest.New(t, func(_ string, c workspace.Command) (workspace.Result, bool) {
		if strings.Contains(strings.Join(c.Args, " "), "t.sh") {
			ran++
		}
		return workspace.Result{}, false
	})
	b.o.Readings = memory{}
	cfg := config.Default()
	cfg.Tests.Commands = []string{"sh t.sh"}
	other := cfg
	other.Tests.TimeoutMinutes++
	for i, step := range []struct {
		sha  int
		cfg  config.Config
		ran  int // all in all; what fails is tried twice more
		fail int
	}{{0, cfg, 1, 0}, {0, cfg, 1, 0}, {1, cfg, 2, 0}, {0, other, 3, 0}, {2, cfg, 6, 1}, {2, cfg, 9, 1}, {0, cfg, 9, 0}} {
		report, err := b.TryTests(t.Context(), b.run.Repo, b.shas[step.sha], step.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if ran != step.ran || report.Total != 1 || len(report.Failures) != step.fail {
			t.Errorf("step %d: %d runs, want %d; %+v", i, ran, step.ran, report)
		}
	}
}

// Covers S7: what a change says of how packages are installed is not followed.
func TestInputsOfChange(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"package.json": []byte(`{"dependencies":{"left":"1"}}`), ".npmrc": []byte("git=./evil\n"), "a.js": nil}
	plan, err := deps.Find(deps.Commit{Files: slices.Sorted(maps.Keys(files)), Read: func(paths []string) (map[string][]byte, error) {
		out := maps.Clone(files)
		maps.DeleteFunc(out, func(name string, _ []byte) bool { return !slices.Contains(paths, name) })
		return out, nil
	}}, config.Setup{}, deps.Host{Tools: map[string]string{"npm": "10"}, Registry: map[string]string{"npm": "http://registry.example"}})
	if err != nil {
		t.Fatal(err)
	}
	u := update{plan: plan, projects: plan.Projects}
	if got := u.inputs([]string{".npmrc", "a.js", "package.json"}); !slices.Equal(got, []string{"package.json"}) {
		t.Errorf("%q", got)
	}
}
