//go:build e2e

package check

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/sandbox"
	"forge/pipeline/sandbox/sandboxtest"
	"forge/pipeline/workspace"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var everything = flag.Bool("all", false, "try what takes minutes, too")

func init() { live = true }

func TestMain(m *testing.M) { sandboxtest.Main(m) }

// Covers B4 and lessons 9: small repositories of many kinds are tested for real, in
// the sandbox, or what is missing is told by name. Each is an archive in
// testdata/repos; see the README there. `go test -run TestRepositories -update`
// writes what was found into the archives.
func TestRepositories(t *testing.T) {
	files, err := filepath.Glob("testdata/repos/*.txtar")
	if err != nil || len(files) < 12 {
		t.Fatalf("repositories: %d, %v", len(files), err)
	}
	m := newManager(t)
	warmGo(t, m)
	has := sandboxTools(t, m)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := expected(archive, has)
			ws := openRepository(t, m, archive)
			report, err := Run(t.Context(), ws, Options{Head: "abc", Config: settingsOf(archive)})
			got := describeReport(&report, err)
			if want == nil {
				if report.OK() || !strings.Contains(got, "could not run: ") {
					t.Errorf("was never run with its tool, and this says nothing of what is missing:\n%s", got)
				}
				return
			}
			if *update {
				want.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(string(want.Data), got); d != "" {
				t.Errorf("%s (-want +got):\n%s", want.Name, d)
			}
		})
	}
}

// newManager is a manager of sandboxes. Its state directory outlives the test: a cold
// build cache costs half a minute.
func newManager(t testing.TB) *sandbox.Manager {
	t.Helper()
	dir := filepath.Join("/tmp", "forge-check-test-"+strconv.Itoa(os.Geteuid())) // the worker's user must reach it
	m, err := sandbox.New(sandbox.Options{Dir: dir, Exe: sandboxtest.Worker(t), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The build caches: one for all that has Go, and one, which stays empty, for the rest.
const goCache, noCache = "go", "other"

func cacheFor(files map[string]string) string {
	for name := range files {
		if path.Base(name) == "go.mod" || path.Ext(name) == ".go" {
			return goCache
		}
	}
	return noCache
}

var warmedGo sync.Once

// warmGo compiles once what the repositories of the tests import of the standard library.
// Else all that begin at the same time would do so, each for itself.
func warmGo(t testing.TB, m *sandbox.Manager) {
	t.Helper()
	warmedGo.Do(func() {
		ws, err := m.Open(t.Context(), workspace.OpenOptions{Name: "warm", Cache: goCache})
		if err != nil {
			t.Fatal(err)
		}
		defer ws.Close()
		for name, text := range map[string]string{
			"go.mod": "module example.com/warm\n\ngo 1.24\n",
			"warm_test.go": "package warm\n\nimport (\n\t_ \"embed\"\n\t_ \"encoding/json\"\n\t_ \"flag\"\n\t_ \"os/exec\"\n\t_ \"path/filepath\"\n" +
				"\t_ \"runtime/pprof\"\n\t_ \"testing\"\n)\n",
		} {
			if err := ws.Write(t.Context(), name, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := ws.Warm(t.Context(), workspace.Command{Args: []string{"go", "test", "./..."}, Dir: "."}); err != nil {
			t.Log("no build cache: ", err)
		}
	})
}

// openRepository writes an archive's files into a workspace.
func openRepository(t *testing.T, m *sandbox.Manager, archive *txtar.Archive) workspace.Workspace {
	t.Helper()
	files := map[string]string{}
	for _, f := range archive.Files {
		files[f.Name] = ""
	}
	ws, err := m.Open(t.Context(), workspace.OpenOptions{Name: "repository", Cache: cacheFor(files)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	for _, f := range archive.Files {
		if f.Name == "want" || strings.HasPrefix(f.Name, "want without ") || f.Name == "tests.commands" {
			continue
		}
		if err := ws.Write(t.Context(), f.Name, f.Data); err != nil {
			t.Fatal(err)
		}
	}
	return ws
}

// sandboxTools returns which of the tools the sandbox has.
func sandboxTools(t *testing.T, m *sandbox.Manager) map[string]bool {
	t.Helper()
	ws, err := m.Open(t.Context(), workspace.OpenOptions{Name: "tools", Cache: noCache})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	c := &checker{ws: ws, log: discard}
	v, err := c.look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v.tools
}

// expected returns the section that holds for the sandbox's tools: the first one
// for a tool that is not there, else that of all tools.
func expected(archive *txtar.Archive, has map[string]bool) *txtar.File {
	for i, f := range archive.Files {
		if tool, ok := strings.CutPrefix(f.Name, "want without "); ok && !has[tool] {
			return &archive.Files[i]
		}
	}
	for i, f := range archive.Files {
		if f.Name == "want" {
			return &archive.Files[i]
		}
	}
	return nil
}

func settingsOf(archive *txtar.Archive) config.Tests {
	config := defaults
	config.Reruns = 0
	for _, f := range archive.Files {
		if f.Name == "tests.commands" {
			config.Commands = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
		}
	}
	return config
}

// describeReport writes a report as text.
func describeReport(r *pipeline.TestReport, err error) string {
	var b strings.Builder
	var fault *pipeline.Fault
	if errors.As(err, &fault) {
		fmt.Fprintf(&b, "fault %s\n", fault.Message)
		return b.String()
	} else if err != nil {
		return "error " + err.Error() + "\n"
	}
	fmt.Fprintf(&b, "ok %v\n", r.OK())
	for _, s := range r.Suites {
		fmt.Fprintf(&b, "suite %s\n", s.Command)
		if s.NotRun != "" {
			fmt.Fprintf(&b, "  not run: %s\n", s.NotRun)
		}
	}
	for _, n := range r.Names {
		fmt.Fprintf(&b, "passed %s\n", n)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "failed %s [%s:%d] %s\n  %s\n", f.Test, f.File, f.Line, f.Cause, strings.ReplaceAll(f.Error, "\n", "\n  "))
	}
	if r.Skipped > 0 {
		fmt.Fprintf(&b, "skipped %d\n", r.Skipped)
	}
	for _, line := range []string{r.None, r.Unclean} {
		if line != "" {
			fmt.Fprintf(&b, "because %s\n", line)
		}
	}
	return b.String()
}
