package play

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
)

// debianSource unpacks a source package of Debian's, and returns where the project is and
// the patches that Debian put on top of it, in order.
func debianSource(t *testing.T, name string) (dir string, patches []string) {
	t.Helper()
	top := t.TempDir()
	sources := filepath.Join(top, "src.sources")
	text := "Types: deb-src\nURIs: http://deb.debian.org/debian\nSuites: bookworm\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
	if err := os.WriteFile(sources, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(top, "lists", "partial"), 0o755); err != nil {
		t.Fatal(err)
	}
	options := []string{"-qq", "-o", "Dir::Etc::sourcelist=" + sources, "-o", "Dir::Etc::sourceparts=/nonexistent",
		"-o", "Dir::State::lists=" + filepath.Join(top, "lists"), "-o", "Dir::Cache::srcpkgcache=", "-o", "Dir::Cache::pkgcache="}
	for _, args := range [][]string{{"update"}, {"source", "--download-only", name}} {
		cmd := exec.Command("apt-get", append(slices.Clone(options), args...)...)
		cmd.Dir = top
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("needs Debian's sources of %s: %v: %s", name, err, out)
		}
	}
	for _, glob := range []string{"*.orig.tar.*", "*.debian.tar.*"} {
		found, _ := filepath.Glob(filepath.Join(top, glob))
		if len(found) != 1 {
			t.Fatalf("%s: %q", glob, found)
		}
		if out, err := exec.Command("tar", "-C", top, "-xf", found[0]).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	series, err := os.ReadFile(filepath.Join(top, "debian", "patches", "series"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range strings.Fields(string(series)) {
		patches = append(patches, filepath.Join(top, "debian", "patches", p))
	}
	marks, _ := filepath.Glob(filepath.Join(top, "*", "setup.cfg"))
	if len(marks) != 1 {
		t.Fatalf("the project is in %q", marks)
	}
	return filepath.Dir(marks[0]), patches
}

// patched applies a patch, and returns the files that it changed.
func patched(t *testing.T, dir, patch string) (changed []string) {
	t.Helper()
	for _, args := range [][]string{{"--numstat"}, {}} {
		cmd := exec.Command("git", slices.Concat([]string{"apply", "-p1"}, args, []string{patch})...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", filepath.Base(patch), err, out)
		}
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(line); len(f) == 3 {
				changed = append(changed, f[2])
			}
		}
	}
	return changed
}

func treeFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		if len(text) == 0 { // which stands for no file
			text = []byte("\n")
		}
		files[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Covers D1 with a source package of Debian's: Jinja 3.1.2 with the patches up to one that
// closed how its sandbox was escaped (CVE-2024-56326), and that patch with its test as the
// later version. What it needs comes from a local index of Debian's packages.
func TestRealDebianProject(t *testing.T) {
	long(t)
	needTools(t)
	const patchOfFix = "0007-Fix-CVE-2024-56326.patch"
	p := newPackages(t)
	p.wheel(t, "pytest", "pytest", "_pytest")
	p.wheel(t, "pluggy", "pluggy")
	p.wheel(t, "iniconfig", "iniconfig")
	p.wheel(t, "attrs", "attr", "attrs")
	p.wheel(t, "packaging", "packaging")
	p.wheel(t, "MarkupSafe", "markupsafe")
	p.files["/simple/markupsafe/"] = p.files["/simple/MarkupSafe/"]
	dir, patches := debianSource(t, "jinja2")
	var base map[string]string
	later := map[string]string{}
	for _, patch := range patches {
		if filepath.Base(patch) == patchOfFix {
			base = treeFiles(t, dir)
		}
		changed := patched(t, dir, patch)
		if filepath.Base(patch) == patchOfFix {
			now := treeFiles(t, dir)
			for _, name := range changed {
				later[name] = now[name]
			}
			break
		}
	}
	if len(later) != 2 {
		t.Fatalf("the patch changes %d files", len(later))
	}
	for name := range base { // pins of other tools' versions, which this index does not have
		if strings.HasPrefix(name, "requirements/") {
			delete(base, name)
		}
	}
	base["requirements/tests.txt"] = "pytest\n"
	base["greet.sh"], base["test.sh"], base[".github/forge.yml"] = "", "", ""
	o := p.options(base)
	o.Title, o.Body = "A format method that is kept escapes the sandbox", "An indirect reference to str.format is not intercepted."
	o.Tape = tapeOf(o.Title, later)
	ts := newServer(t, o)
	for round := range 2 {
		asked, begun := len(p.requests()), time.Now()
		labelInRound(ts, round, o.Title)
		run, ok := ts.Within(5*time.Minute, func(r *pipeline.Run) bool { return r.Task.Issue == ts.Issue && r.State != pipeline.StateRunning })
		if !ok || run.State != pipeline.StateVerified {
			t.Fatalf("%s: %+v\n%s", run.State, run.Gates, ts.Comments())
		}
		tests := run.Current().Tests
		t.Logf("verified after %.1fs: %d tests passed; %s; %d requests", time.Since(begun).Seconds(), tests.Passed, tests.Setup, len(p.requests())-asked)
		if tests.Passed < 500 || fmt.Sprint(tests.Setup) != "[installed dependencies (pip)]" {
			t.Errorf("%d passed, setup: %q", tests.Passed, tests.Setup)
		}
		if more := p.requests()[asked:]; (len(more) > 0) != (round == 0) {
			t.Errorf("round %d asked for %q", round, more)
		}
	}
}
