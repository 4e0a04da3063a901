package cheats

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/check"
	"forge/pipeline/config"
	machine "forge/pipeline/needs"
	"forge/pipeline/sandbox"
	"forge/pipeline/workspace"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what was found into the archives of repositories; look at the difference before committing")

// Covers B4 and lessons 9: small repositories of many kinds are tested for real, in
// the sandbox, or what is missing is told by name. Each is an archive in
// testdata/repos; see the README there. `go test -run TestRepositories -update`
// writes what was found into the archives.
func TestRepositories(t *testing.T) {
	machine.Sandbox(t)
	files, err := filepath.Glob("testdata/repos/*.txtar")
	if err != nil || len(files) < 12 {
		t.Fatalf("repositories: %d, %v", len(files), err)
	}
	m := newManager(t)
	var archives []*txtar.Archive
	for _, file := range files {
		archives = append(archives, parsed(t, file))
	}
	has := sandboxTools(t, m, archives)
	for i, file := range files {
		if testing.Short() && i%10 != 0 { // the others take minutes
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive := archives[i]
			want := expected(archive, has)
			ws := openRepository(t, m, archive)
			report, err := check.Run(t.Context(), ws, check.Options{Head: "abc", Config: settingsOf(archive)})
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

// openRepository writes an archive's files into a workspace.
func openRepository(t *testing.T, m *sandbox.Manager, archive *txtar.Archive) workspace.Workspace {
	t.Helper()
	files := map[string]string{}
	for _, f := range archive.Files {
		files[f.Name] = ""
	}
	cache := cacheFor(files)
	if cache == goCache {
		warmGo(t, m)
	}
	ws, err := opened(t.Context(), m, workspace.OpenOptions{Name: "repository", Cache: cache})
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
func sandboxTools(t *testing.T, m *sandbox.Manager, archives []*txtar.Archive) map[string]bool {
	t.Helper()
	ws, err := m.Open(t.Context(), workspace.OpenOptions{Name: "tools", Cache: noCache})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	has := map[string]bool{}
	for _, archive := range archives {
		for _, f := range archive.Files {
			if tool, ok := strings.CutPrefix(f.Name, "want without "); ok {
				r, err := ws.Run(t.Context(), workspace.Command{Args: []string{"sh", "-c", "command -v " + tool}, Timeout: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				has[tool] = r.Exit == 0
			}
		}
	}
	return has
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
	tests := config.Default().Tests
	tests.Reruns = 0
	for _, f := range archive.Files {
		if f.Name == "tests.commands" {
			tests.Commands = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
		}
	}
	return tests
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
