package play

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"forge/cmd/forge/server"
	"forge/pipeline"
)

// debianPython is where Debian's packages put Python's modules.
const debianPython = "/usr/lib/python3/dist-packages"

// wheel publishes what Debian's package of a project holds, with its own metadata, as
// PyPI has it.
func (p *packages) wheel(t *testing.T, name string, modules ...string) {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(debianPython, name+"-*-info", "METADATA"))
	more, _ := filepath.Glob(filepath.Join(debianPython, name+"-*-info", "PKG-INFO"))
	if found = append(found, more...); len(found) == 0 {
		t.Skipf("needs %s: apt-get install python3-%s", name, name)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	version, lines := "", []string{}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "Version: "); ok && version == "" {
			version, _, _ = strings.Cut(strings.TrimSpace(v), "+") // "+repack" is Debian's
			line = "Version: " + version + "\n"
		}
		lines = append(lines, line)
	}
	info := name + "-" + version + ".dist-info/"
	files := map[string]string{info + "METADATA": strings.Join(lines, ""), info + "RECORD": "",
		info + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
	for _, module := range modules {
		err := filepath.WalkDir(filepath.Join(debianPython, module), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, ".pyc") {
				return err
			}
			text, err := os.ReadFile(path)
			rel, _ := filepath.Rel(debianPython, path)
			files[rel] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	file := fmt.Sprintf("%s-%s-py3-none-any.whl", name, version)
	p.files["/simple/"+name+"/"] = fmt.Sprintf(`<html><body><a href="../../files/%s">%s</a></body></html>`, file, file)
	p.files["/files/"+file] = zipped(t, files)
}

// Covers D1 with a real Python project and pip itself: pytest comes from an index, with
// all that it needs, and the tests run offline. The index is a local one that serves
// what Debian's packages hold. The second run asks for nothing.
func TestRealPythonProject(t *testing.T) {
	long(t)
	needTools(t)
	p := newPackages(t)
	p.wheel(t, "pytest", "pytest", "_pytest", "py.py")
	p.wheel(t, "pluggy", "pluggy")
	p.wheel(t, "iniconfig", "iniconfig")
	p.wheel(t, "attrs", "attr", "attrs")
	p.wheel(t, "packaging", "packaging")
	archive, err := txtar.ParseFile("testdata/inflection.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files, later := map[string]string{"greet.sh": "", "test.sh": "", ".github/forge.yml": ""}, map[string]string{}
	for _, f := range archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "base/"); ok {
			files[name] = string(f.Data)
		} else {
			later[strings.TrimPrefix(f.Name, "later/")] = string(f.Data)
		}
	}
	o := p.options(files)
	title := "titleize() capitalizes only words starting A-Z"
	o.Title, o.Body, o.Tape = title, "A word that begins with another letter stays as it is.", tapeOf(title, later)
	inner := o.Wire
	o.Wire = func(w *server.Options) {
		inner(w)
		w.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	ts := newServer(t, o)
	for round := range 2 {
		asked, begun := len(p.requests()), time.Now()
		labelInRound(ts, round, title)
		run, ok := ts.Within(5*time.Minute, func(r *pipeline.Run) bool { return r.Task.Issue == ts.Issue && r.State != pipeline.StateRunning })
		if !ok || run.State != pipeline.StateVerified {
			t.Fatalf("%s: %+v\n%s", run.State, run.Gates, ts.Comments())
		}
		tests := run.Current().Tests
		t.Logf("verified after %.1fs: %d tests passed; %s; asked %q", time.Since(begun).Seconds(), tests.Passed, tests.Setup, p.requests()[asked:])
		if tests.Passed < 300 || !slices.Equal(tests.Setup, []string{"installed dependencies (pip)"}) {
			t.Errorf("%d passed, setup: %q", tests.Passed, tests.Setup)
		}
		if more := p.requests()[asked:]; round == 0 && !slices.Contains(more, "/simple/pytest/") || round == 1 && len(more) > 0 {
			t.Errorf("round %d asked for %q", round, more)
		}
	}
}
