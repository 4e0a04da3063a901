package phase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/deps"
	"forge/pipeline/needs"
	"forge/pipeline/registry"
	"forge/pipeline/sandbox"
	"forge/pipeline/sandbox/sandboxtest"
	"forge/pipeline/workspace"
)

func TestMain(m *testing.M) { sandboxtest.Main(m) }

// Covers D1: what cannot be installed is the change's fault only where that broke it.
func TestWhoseFaultAnInstallationIs(t *testing.T) {
	failed := deps.Tree{Failed: []deps.Failure{{Project: "npm", Why: "`npm ci` ended with 1"}}}
	away := deps.Tree{Failed: []deps.Failure{{Project: "npm", Why: "`npm ci` ended with 1", Away: true}}}
	lacks := deps.Tree{Failed: []deps.Failure{{Project: "npm", Why: "needs npm on the server", Lacks: true}}}
	before := func(lines ...string) *pipeline.Run {
		run := &pipeline.Run{}
		run.Baseline = &pipeline.TestReport{Setup: lines}
		return run
	}
	const cannot, broke = deps.CannotInstall + " (npm): `npm ci` ended with 1", breaksInstalling + " (npm): `npm ci` ended with 1"
	for _, c := range []struct {
		name    string
		run     *pipeline.Run
		changed bool
		tree    deps.Tree
		want    string
	}{
		{"the change edits what is installed", before("installed dependencies (npm)"), true, failed, broke},
		{"it does not", before("installed dependencies (npm)"), false, failed, cannot},
		{"a registry is away", before("installed dependencies (npm)"), true, away, cannot},
		{"it failed before", before(deps.CannotInstall + " (npm): x"), true, failed, cannot},
		{"nothing is known of before", &pipeline.Run{}, true, failed, cannot},
		{"the server has no such program", before(), true, lacks, ""},
	} {
		if got := strings.Join(came(c.run, c.changed, &c.tree), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Covers D1: where the dependencies of a commit cannot be installed, its tests do not see
// those of the commit before: they would pass with what the change no longer asks for.
func TestFailedInstallationLeavesNoOtherDependencies(t *testing.T) {
	needs.Sandbox(t)
	mod := "module example.com/app\n\ngo 1.22\n\nrequire example.com/left v1.%d.0\n"
	x, run, shas := commits(t, map[string]string{"go.mod": fmt.Sprintf(mod, 0)}, map[string]string{"go.mod": fmt.Sprintf(mod, 1)})
	dir, err := os.MkdirTemp("/tmp", "forge-phase-") // the worker's user must reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	x.o.Log, x.o.Now = slog.New(slog.DiscardHandler), time.Now
	if x.o.Spaces, err = sandbox.New(sandbox.Options{Dir: filepath.Join(dir, "work"), Exe: sandboxtest.Worker(t), Log: x.o.Log}); err != nil {
		t.Fatal(err)
	}
	gateway, err := registry.New(registry.Options{Dir: filepath.Join(dir, "registries"), Registries: []registry.Registry{{Kind: "go", URL: "http://127.0.0.1:1", Private: true}}})
	if err != nil {
		t.Fatal(err)
	}
	ws, err := x.o.Spaces.Open(t.Context(), workspace.OpenOptions{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()

	asked, works := 0, 3 // to find the key, for the first commit, and to read the second
	x.o.Dependencies.Registries = func(context.Context) (*registry.Gateway, string, error) {
		if asked++; asked > works {
			return nil, "", errors.New("no gateway")
		}
		return gateway, "", nil
	}
	recipe, err := x.recipe(t.Context(), run, ws, shas[0])
	if err != nil || recipe.Empty() {
		t.Fatalf("the recipe of the first commit: %+v, %v", recipe, err)
	}
	run.Base, run.Head = shas[0], shas[1]
	err = ws.Install(t.Context(), workspace.Installation{Key: recipe.Key, Make: func(ctx context.Context, in workspace.Installer) ([]byte, error) {
		if err := in.Stage(ctx, "left.txt", []byte("left 1.0.0")); err != nil {
			return nil, err
		}
		return json.Marshal(deps.Tree{At: time.Now(), Projects: []string{"go"}})
	}})
	if err != nil {
		t.Fatal(err)
	}
	sees := func() string {
		t.Helper()
		r, err := ws.Run(t.Context(), workspace.Command{Args: []string{"/bin/sh", "-c", "cat " + workspace.DepsPath + "/left.txt 2>/dev/null || echo nothing"}, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(r.Stdout))
	}
	for i, want := range []string{"left 1.0.0", "nothing"} {
		if err := x.provide(t.Context(), run, ws, shas[i]); err != nil {
			t.Fatal(err)
		}
		if got := sees(); got != want {
			t.Errorf("commands on commit %d see %q, want %q", i+1, got, want)
		}
	}
	if told := strings.Join(x.told(run.ID, shas[1]), "\n"); asked != 4 || !strings.Contains(told, "could not install dependencies: no gateway") {
		t.Errorf("asked %d times; told: %s", asked, told)
	}
}
