package play

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"forge/cmd/forge/server/servertest"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"forge/cmd/forge/server"
	"forge/pipeline"
)

// moduleFiles are a Go module's, from the module proxy.
func moduleFiles(t *testing.T, module string) map[string]string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	var info struct{ Dir string }
	if jsonErr := json.Unmarshal(out, &info); err != nil || jsonErr != nil {
		t.Skipf("needs %s from a module proxy: %v", module, err)
	}
	files := map[string]string{}
	err = filepath.WalkDir(info.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(info.Dir, path)
		files[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// packageFiles are an npm package's, from its registry.
func packageFiles(t *testing.T, pkg string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("npm", "pack", "--silent", pkg)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("needs %s from npm's registry: %v", pkg, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, strings.TrimSpace(string(out))))
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		text, readErr := io.ReadAll(r)
		if err != nil || readErr != nil {
			t.Fatal(err, readErr)
		}
		_, name, _ := strings.Cut(h.Name, "/")
		files[name] = string(text)
	}
}

// under moves files into a directory.
func under(dir string, files map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range files {
		out[dir+"/"+name] = text
	}
	return out
}

// tapeOf is a model that brings some files to how they are in a later version.
func tapeOf(summary string, files map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- planner 0/1 --\n>>> submit\nsummary: %[1]q\nsteps: [Do it]\ncriteria: [{id: AC1, text: %[1]q}]\n", summary)
	n := 1
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content, _ := json.Marshal(files[name])
		fmt.Fprintf(&b, "-- implementer */%d --\n>>> write\npath: %s\ncontent: %s\n", n, name, content)
		n++
	}
	fmt.Fprintf(&b, "-- implementer */%d --\n>>> submit\nsummary: %q\n", n, summary)
	b.WriteString("-- compliance */1 --\n>>> submit\ncriteria: [{id: AC1, met: true, evidence: the tests}]\n-- quality */1 --\n>>> submit\nsummary: Right.\nrisk: 1\nfindings: []\n")
	return b.String()
}

// Covers D1 with real projects that are not vendored: each has a bug that a later
// version mended, with the test that shows it. The second run asks no registry.
func TestRealProjects(t *testing.T) {
	long(t)
	needTools(t)
	for _, c := range []struct {
		name          string
		broken, fixed func(*testing.T) map[string]string
		change        []string // files that the later version changed
		atLeast       int      // tests that pass
	}{
		{"go-multierror: a method on nil",
			func(t *testing.T) map[string]string {
				return moduleFiles(t, "github.com/hashicorp/go-multierror@v1.1.0")
			},
			func(t *testing.T) map[string]string {
				return moduleFiles(t, "github.com/hashicorp/go-multierror@v1.1.1")
			},
			[]string{"multierror.go", "multierror_test.go"}, 20},
		{"copystructure: copiers of a configuration are not used within values",
			func(t *testing.T) map[string]string {
				return moduleFiles(t, "github.com/mitchellh/copystructure@v1.1.1")
			},
			func(t *testing.T) map[string]string {
				return moduleFiles(t, "github.com/mitchellh/copystructure@v1.1.2")
			},
			[]string{"copystructure.go", "copystructure_test.go"}, 20},
		{"minimist: prototypes through constructors",
			func(t *testing.T) map[string]string { return packageFiles(t, "minimist@1.2.5") },
			func(t *testing.T) map[string]string { return packageFiles(t, "minimist@1.2.6") },
			[]string{"index.js", "test/proto.js"}, 1},
		{"a workspace of minimist and shell-quote",
			func(t *testing.T) map[string]string {
				files := under("packages/minimist", packageFiles(t, "minimist@1.2.5"))
				maps.Copy(files, under("packages/shell-quote", packageFiles(t, "shell-quote@1.7.3")))
				files["package.json"] = `{"name":"both","private":true,"workspaces":["packages/*"]}`
				return files
			},
			func(t *testing.T) map[string]string {
				return under("packages/minimist", packageFiles(t, "minimist@1.2.6"))
			},
			[]string{"packages/minimist/index.js", "packages/minimist/test/proto.js"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			files, later := c.broken(t), c.fixed(t)
			files["greet.sh"], files["test.sh"], files[".github/forge.yml"] = "", "", ""
			change := map[string]string{}
			for _, name := range c.change {
				change[name] = later[name]
			}
			var installed []string
			said := &counted{to: t.Output(), what: []byte(`msg="setting up"`)}
			ts := newServer(t, servertest.Options{Files: files, Tape: tapeOf(c.name, change), Title: c.name, Body: "It is wrong, as the tests of the next version show.",
				Wire: func(o *server.Options) { o.Log = slog.New(slog.NewTextHandler(said, nil)) },
				On: func(_ *servertest.Server, r *pipeline.Run, e pipeline.Event) {
					if e.Data.Tests != nil {
						installed = append(installed, e.Data.Tests.Setup...)
					}
				}})
			for round := range 2 {
				before, begun := said.times.Load(), time.Now()
				labelInRound(ts, round, c.name)
				run, ok := ts.Within(10*time.Minute, func(r *pipeline.Run) bool { return r.Task.Issue == ts.Issue && r.State != pipeline.StateRunning })
				if !ok || run.State != pipeline.StateVerified {
					t.Fatalf("%s, setup %q: %+v\n%s", run.State, installed, run.Gates, ts.Comments())
				}
				tests, times := run.Current().Tests, said.times.Load()-before
				t.Logf("verified after %.1fs: %d tests passed, %d failed before; %s", time.Since(begun).Seconds(), tests.Passed, len(tests.Before), tests.Setup)
				if tests.Passed < c.atLeast || len(tests.Setup) == 0 || strings.Contains(strings.Join(tests.Setup, " "), "could not") {
					t.Errorf("%d passed, setup: %q", tests.Passed, tests.Setup)
				}
				// Without an installation there is no way to a registry at all.
				if (times > 0) != (round == 0) {
					t.Errorf("round %d: dependencies were installed %d times", round, times)
				}
			}
		})
	}
}

// counted counts how often something is written.
type counted struct {
	to    io.Writer
	what  []byte
	times atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.times.Add(int64(bytes.Count(p, c.what)))
	return c.to.Write(p)
}
