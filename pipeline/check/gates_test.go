package check

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/measure"
	"forge/pipeline/quality"
)

// gateTree is a work tree in a directory, whose base lies in another one.
type gateTree struct {
	*dirWorkspace
	base string
}

func (g gateTree) Restore(_ context.Context, _ string, paths []string) error {
	for _, name := range paths {
		data, err := os.ReadFile(filepath.Join(g.base, name))
		if errors.Is(err, os.ErrNotExist) {
			err = os.Remove(filepath.Join(g.dir, name))
			if err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(g.dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
func (g gateTree) Write(_ context.Context, name string, data []byte) error {
	return os.WriteFile(filepath.Join(g.dir, name), data, 0o644)
}
func (gateTree) Close() error { return nil }

// gated is a base and a change to it, whose gates are measured.
type gated struct {
	t            *testing.T
	base, change string // archives
	patch        string
	report       pipeline.TestReport
	o            GateOptions
	opened       int // trees of the base
}

func newGated(t *testing.T, base, change string, gates ...config.Quality) *gated {
	t.Helper()
	patch := patchOf(t, filesOf(base), filesOf(base, change))
	return &gated{t: t, base: base, change: change, patch: patch, report: pipeline.TestReport{Passed: 1, Total: 1},
		o: GateOptions{Gates: gates, Base: "base", Head: "head", Patch: patch, Tests: defaults, Log: slog.New(slog.DiscardHandler), Clock: time.Now}}
}

func (g *gated) open(_ context.Context, sha string) (Tree, error) {
	base := newWorkspace(g.t, g.base)
	if sha == "base" {
		g.opened++
		return gateTree{base, base.dir}, nil
	}
	head := newWorkspace(g.t, g.base)
	head.write(g.t, g.change)
	return gateTree{head, base.dir}, nil
}

// measure measures the gates and returns the first one.
func (g *gated) measure() measure.Result {
	g.t.Helper()
	if err := Measure(g.t.Context(), g.open, g.open, &g.report, g.o); err != nil {
		g.t.Fatal(err)
	}
	return g.report.Measures[0]
}

func bound(f float64) *float64 { return &f }

const goProgram = `
-- go.mod --
module example.com/app

go 1.22
-- main.go --
package main

import "example.com/app/words"

func main() { println(words.Count()) }
-- words/words.go --
package words

func Count() int { return 3 }
`

// A change that doubles a program is blocked, and the cause names the package that
// grew and the file that the change touches in it.
func TestBinarySize(t *testing.T) {
	t.Parallel()
	grown := "-- words/words.go --\npackage words\n\nvar table = [...]string{" + strings.Repeat("\"some entry of a table\", ", 3) + "}\n\nvar numbers = [400000]int64{1, 2, 3}\n\n" +
		"func Count() int { return len(table) + int(numbers[len(table)]) }\n"
	g := newGated(t, goProgram, grown, config.Quality{Name: "size", Use: quality.BinarySize, WorseBy: "10%", Owner: []string{"architect", "developer"}})
	m := g.measure()
	if m.OK || m.Error != "" || m.Base == nil || m.Value < 2**m.Base {
		t.Fatalf("%+v", m)
	}
	if len(g.report.Failures) != 1 {
		t.Fatalf("%+v", g.report)
	}
	f := g.report.Failures[0]
	first := strings.Split(f.Error, "\n")[1]
	if f.Test != "quality/size" || f.Cause != "quality" || f.WorkedIn != WorkedAtBase || !strings.HasPrefix(first, "example.com/app/words (the change touches words/words.go): 3.2 MB") ||
		!strings.HasSuffix(f.Error, "answered for by: architect, developer") {
		t.Errorf("%+v", f)
	}
	g = newGated(t, goProgram, "-- words/words.go --\npackage words\n\nfunc Count() int { return 4 }\n", config.Quality{Name: "size", Use: quality.BinarySize, WorseBy: "1%"})
	if m := g.measure(); !m.OK || len(g.report.Failures) != 0 {
		t.Errorf("a change that adds nothing: %+v", m)
	}
}

const goBenchmark = `
-- go.mod --
module example.com/app

go 1.22
-- sum.go --
package app

func Sum(n int) (s int) {
	for i := range n {
		s += i * i % 7
	}
	return s
}
-- sum_test.go --
package app

import "testing"

func BenchmarkSum(b *testing.B) {
	for range b.N {
		Sum(20000)
	}
}
`

// bench is short enough for a test, and long enough to say something.
var bench = config.Quality{Name: "bench", Use: quality.GoBench, Command: "go test -run '^$' -bench . -benchtime 10ms -count 5 ./...", WorseBy: "25%"}

func TestBenchmark(t *testing.T) {
	t.Parallel()
	slower := "-- sum.go --\npackage app\n\nfunc Sum(n int) (s int) {\n\tfor range 6 {\n\t\tfor i := range n {\n\t\t\ts += i * i % 7\n\t\t}\n\t}\n\treturn s\n}\n"
	g := newGated(t, goBenchmark, slower, bench)
	m := g.measure()
	// 0.0022 where no measure of the change is as fast as one of the base: on a busy
	// machine one may be.
	if m.OK || m.Error != "" || !strings.Contains(m.Note, "example.com/app.BenchmarkSum; p = 0.0") || len(g.report.Failures) != 1 {
		t.Errorf("a slower benchmark: %+v", m)
	}
	// The same, with a benchmark that does less: it is measured as the base has it, too.
	less := slower + strings.Replace(goBenchmark[strings.Index(goBenchmark, "-- sum_test.go --"):], "20000", "2", 1)
	four := bench
	four.Repeats = 4
	g = newGated(t, goBenchmark, less, four)
	if m := g.measure(); m.OK || m.Error != "" || !strings.Contains(m.Note, "with sum_test.go as the base has it") {
		t.Errorf("a benchmark that was edited: %+v", m)
	}
	gone := "-- sum_test.go --\npackage app\n"
	g = newGated(t, goBenchmark, slower+gone, four)
	if m := g.measure(); m.OK || m.Error != "" {
		t.Errorf("a benchmark that was removed: %+v", m)
	}
}

const page = `
-- page.html --
<p>hello</p>
-- alt.sh --
n=$(grep -o '<img[^>]*>' page.html | grep -vc alt=)
echo "{\"violations\": $n}"
-- measure.sh --
sh ./alt.sh
`

// A page with images without alt is found by a command of the repository's own, and not
// by one that the change edits, nor by what is judged as the base has it.
func TestOwnCommand(t *testing.T) {
	t.Parallel()
	images := "-- page.html --\n" + strings.Repeat("<img src=a.png>\n", 12)
	gate := config.Quality{Name: "a11y", Command: "sh measure.sh", FromBase: []string{"alt.sh"}, Value: "json:$.violations", Max: bound(0), Breakdown: "grep -c '<img' page.html | sed 's/$/ page.html/'"}
	for name, change := range map[string]string{
		"":           images,
		"measure.sh": images + "-- measure.sh --\necho '{\"violations\": 0}'\n",
		"alt.sh":     images + "-- alt.sh --\necho '{\"violations\": 0}'\n",
		"both":       images + "-- alt.sh --\necho nothing\n-- measure.sh --\necho '{\"violations\": 0}'\n",
	} {
		g := newGated(t, page, change, gate)
		m := g.measure()
		if m.OK || m.Error != "" || m.Value != 12 || *m.Base != 0 || m.Parts[0].Name != "page.html" {
			t.Errorf("edited %q: %+v", name, m)
		}
	}
	// A gate that is fine stays so when its script is edited and finds the same.
	if m := newGated(t, page, "-- alt.sh --\n# counts images\nn=$(grep -o '<img[^>]*>' page.html | grep -vc alt=)\necho \"{\\\"violations\\\": $n}\"\n", gate).measure(); !m.OK {
		t.Errorf("%+v", m)
	}
	// The product may be a script itself: what the change does to it counts.
	product := newGated(t, "-- app.sh --\necho 5\n", "-- app.sh --\necho 50\n", config.Quality{Name: "out", Command: "sh app.sh", Value: "number", Max: bound(10)})
	if m := product.measure(); m.OK || m.Value != 50 {
		t.Errorf("%+v", m)
	}
}

// Covers U6: a page with 12 images without alt misses the preset for accessibility, and the
// page is named.
func TestAxe(t *testing.T) {
	t.Parallel()
	base := "-- page.html --\n<p>hello</p>\n-- axe.sh --\n" + `n=$(grep -c '<img' page.html); nodes=
for i in $(seq 1 $n); do nodes="$nodes{\"html\":\"<img src=a.png>\"},"; done
printf '[{"url":"file://%s/page.html","violations":[' "$PWD"
[ "$n" = 0 ] || printf '{"id":"image-alt","help":"Images must have alternate text","nodes":[%s]}' "${nodes%,}"
echo ']}]'
`
	gate := config.Quality{Use: quality.Axe, Command: "sh axe.sh"}
	g := newGated(t, base, "-- page.html --\n"+strings.Repeat("<img src=a.png>\n", 12), gate)
	if m := g.measure(); m.OK || m.Error != "" || m.Value != 12 || *m.Base != 0 || !strings.HasPrefix(m.Cause(), "page.html: image-alt: Images must have alternate text") {
		t.Errorf("%+v", m)
	}
	if m := newGated(t, base, "-- page.html --\n<p>hello, you</p>\n", gate).measure(); !m.OK {
		t.Errorf("%+v", m)
	}
}

func TestSizeAndLinesAndSARIF(t *testing.T) {
	t.Parallel()
	base := "-- dist/a.js --\n12345\n-- dist/b.css --\nxx\n-- lint.sh --\nprintf '%s' '{\"runs\": [{\"results\": []}]}' >out.sarif\n"
	change := "-- dist/a.js --\n" + strings.Repeat("x", 99) + "\n-- dist/sub/c.js --\n123\n"
	g := newGated(t, base, change,
		config.Quality{Name: "size", Value: "size:dist/**/*.js", Max: bound(50)},
		config.Quality{Name: "lines", Command: "grep -rn x dist || true", Value: "lines", Max: bound(9)},
		config.Quality{Name: "exit", Command: "exit 3", Value: "exit", Max: bound(3)},
		config.Quality{Name: "regex", Command: "echo total: 7", Value: `regex:total: (\d+)`, Max: bound(7)},
		config.Quality{Name: "nothing", Value: "size:build/*.js", Max: bound(50)},
	)
	m := g.measure()
	if m.OK || m.Value != 104 || *m.Base != 6 || m.Parts[0].Name != "dist/a.js" || m.Parts[1].Name != "dist/sub/c.js" {
		t.Errorf("%+v", m)
	}
	for _, m := range g.report.Measures[1:4] {
		if !m.OK {
			t.Errorf("%+v", m)
		}
	}
	if m := g.report.Measures[4]; m.OK || !strings.Contains(m.Error, "no file is there that it matches") {
		t.Errorf("%+v", m)
	}
	finding := `{"ruleId": "R1", "message": {"text": "bad"}, "locations": [{"physicalLocation": {"artifactLocation": {"uri": "dist/a.js"}, "region": {"startLine": 1}}}]}`
	lint := config.Quality{Name: "lint", Use: quality.UseSARIF, Command: "sh lint.sh", Value: "sarif:out.sarif"}
	g = newGated(t, strings.ReplaceAll(base, "[]", "'\"$(grep -q xxx dist/a.js && printf '%s' '["+finding+"]' || echo '[]')\"'"), change, lint)
	m = g.measure()
	if m.OK || m.Value != 1 || m.Places[0] != (measure.Place{File: "dist/a.js", Line: 1, Rule: "R1", Message: "bad"}) || g.report.Failures[0].File != "dist/a.js" {
		t.Errorf("%+v", m)
	}
	// A file that the change brings along says nothing.
	g = newGated(t, strings.Replace(base, "printf", "exit 1; printf", 1), "-- out.sarif --\n{\"runs\": [{\"results\": []}]}\n", lint)
	if m := g.measure(); m.OK || !strings.Contains(m.Error, "the file out.sarif cannot be read") || !strings.Contains(g.report.Unclean, "the quality gate lint could not be measured") {
		t.Errorf("%+v", m)
	}
}

// A gate that gives no value never passes, and says why.
func TestUnmeasured(t *testing.T) {
	t.Parallel()
	for command, why := range map[string]string{
		"sleep 60":        "did not end and was stopped after",
		"true":            "printed nothing",
		"echo NaN":        "no value",
		"echo -Inf":       "no value",
		"echo 1e999":      "finite",
		"echo -5":         "values under 0 are not expected",
		"no-such-tool":    "cannot be run",
		"echo 1; exit 9":  "ended with 9",
		"echo fine":       "no number",
		"sh measuring.sh": "ended with 2",
	} {
		g := newGated(t, "-- a --\n", "-- b --\n", config.Quality{Name: "x", Command: command, Value: "number", Max: bound(1000)})
		g.o.Timeout = 2 * time.Second
		if m := g.measure(); m.OK || !strings.Contains(m.Error, why) || g.report.OK() || !strings.Contains(g.report.Unclean, "the quality gate x could not be measured: ") {
			t.Errorf("%s: %+v, %q", command, m, g.report.Unclean)
		}
	}
	no := false
	g := newGated(t, "-- a --\n", "-- b --\n", config.Quality{Name: "x", Command: "false", Value: "number", Max: bound(1000), Block: &no})
	if m := g.measure(); m.OK || m.Error == "" || !g.report.OK() {
		t.Errorf("a warning blocks: %+v", g.report)
	}
	g = newGated(t, "-- a --\n", "-- n --\n5\n", config.Quality{Name: "x", Command: "cat n", Value: "number", WorseBy: "5%"})
	if m := g.measure(); m.OK || !strings.Contains(m.Error, "there is no value at the base: the command ended with 1") {
		t.Errorf("%+v", m)
	}
	g = newGated(t, "-- a --\n", "-- n --\n5\n", config.Quality{Name: "x", Command: "cat n", Value: "number", Max: bound(5)})
	if m := g.measure(); !m.OK || m.Base != nil {
		t.Errorf("%+v", m)
	}
}

// What the base misses no less is one from before the work; its error is the same
// whatever the change makes of it, so that a person's word holds.
func TestMissedBefore(t *testing.T) {
	t.Parallel()
	gate := config.Quality{Name: "n", Command: "cat n", Value: "number", Max: bound(5)}
	g := newGated(t, "-- n --\n9\n", "-- n --\n8\n", gate)
	m := g.measure()
	if m.OK || !m.Before || len(g.report.Failures) != 0 || len(g.report.Before) != 1 || g.report.OK() {
		t.Fatalf("%+v", g.report)
	}
	f := g.report.Before[0]
	known := newGated(t, "-- n --\n9\n", "-- n --\n7\n", gate)
	known.o.Known = map[string]pipeline.KnownFailure{"quality/n": {Login: "ann", Error: f.ErrorKey()}}
	if known.measure(); known.report.Before[0].KnownBy != "ann" || !known.report.OK() {
		t.Errorf("%+v", known.report)
	}
	allowed := newGated(t, "-- n --\n9\n", "-- n --\n9\n", gate)
	allowed.o.Tests.KnownFailures = "allow"
	if allowed.measure(); allowed.report.Before[0].KnownBy != knownBySettings || !allowed.report.OK() {
		t.Errorf("%+v", allowed.report)
	}
	if worse := newGated(t, "-- n --\n9\n", "-- n --\n10\n", gate); worse.measure().Before || len(worse.report.Failures) != 1 {
		t.Errorf("%+v", worse.report)
	}
	// Whatever the figure, it is one failure.
	a, b := newGated(t, "-- n --\n1\n", "-- n --\n2500000\n", gate), newGated(t, "-- n --\n1\n", "-- n --\n9\n", gate)
	a.measure()
	if b.measure(); a.report.Failures[0].Fingerprint != b.report.Failures[0].Fingerprint {
		t.Error("a gate that is missed by less is another failure")
	}
}

// The base is measured once: the log keeps it for the same work, the server for others.
func TestBaseIsKept(t *testing.T) {
	t.Parallel()
	gate := config.Quality{Name: "n", Command: "cat n", Value: "number", WorseBy: "1"}
	first := newGated(t, "-- n --\n9\n", "-- n --\n10\n", gate)
	kept := memory{}
	first.o.Kept = kept
	first.measure()
	measured := first.opened
	second := newGated(t, "-- n --\n9\n", "-- n --\n12\n", gate)
	second.o.Earlier = []Past{{Iteration: 1, Report: &first.report}}
	if m := second.measure(); m.OK || *m.Base != 9 || second.opened != measured-1 || second.report.Failures[0].WorkedIn != 1 {
		t.Errorf("%+v, the base was opened %d times, then %d", m, measured, second.opened)
	}
	third := newGated(t, "-- n --\n9\n", "-- n --\n12\n", gate)
	third.o.Kept = kept
	if third.measure(); third.opened != measured-1 {
		t.Errorf("the base was opened %d times", third.opened)
	}
	newer := newGated(t, "-- n --\n9\n", "-- n --\n12\n", gate)
	newer.o.Kept, newer.o.Tools = kept, "go9"
	if newer.measure(); newer.opened != measured {
		t.Errorf("with other tools the base was opened %d times, want %d", newer.opened, measured)
	}
	other := newGated(t, "-- n --\n9\n", "-- n --\n12\n", config.Quality{Name: "n", Command: "echo 3", Value: "number", WorseBy: "1"})
	other.o.Kept = kept
	if m := other.measure(); *m.Base != 3 {
		t.Errorf("another command has the value of the first: %+v", m)
	}
}

type memory map[string]*measure.Reading

func (m memory) Get(_ context.Context, key string) *measure.Reading    { return m[key] }
func (m memory) Put(_ context.Context, key string, r *measure.Reading) { m[key] = r }

// What touches no line that could be covered is not held up by coverage; what is built
// for another system is said to be outside of it.
func TestCoverageOfWhatCannotBe(t *testing.T) {
	t.Parallel()
	gate := config.Quality{Use: quality.CoverageChanged, Min: bound(80)}
	base := "-- a.go --\npackage a\n-- README.md --\nx\n"
	for _, change := range []string{"-- README.md --\ny\n", "-- NEWS.md --\ny\n", "-- app.json --\n{}\n"} {
		g := newGated(t, base, change, gate)
		g.report.Coverage = &pipeline.Coverage{Lines: 70, Changed: -1}
		if m := g.measure(); !m.OK || !strings.Contains(m.Note, "no line that the change touches") {
			t.Errorf("%q: %+v", change, m)
		}
	}
	g := newGated(t, base, "-- a_windows.go --\npackage a\n", gate)
	g.report.Coverage = &pipeline.Coverage{Lines: 70, Changed: 100}
	if m := g.measure(); !m.OK || !strings.Contains(m.Note, "not in it: a_windows.go") {
		t.Errorf("%+v", m)
	}
}

func TestCoverageGates(t *testing.T) {
	t.Parallel()
	g := newGated(t, "-- a.go --\npackage a\n", "-- a.go --\npackage a\n\nfunc A() {}\n",
		config.Quality{Use: quality.Coverage, WorseBy: "1"}, config.Quality{Use: quality.CoverageChanged, Min: bound(80)})
	g.report.Coverage = &pipeline.Coverage{Lines: 70, Changed: 40}
	g.o.Baseline = &pipeline.TestReport{Coverage: &pipeline.Coverage{Lines: 75}}
	g.measure()
	if len(g.report.Failures) != 2 || g.report.Measures[0].Says() != "70 %, at most 1 % less than at the base; 75 % at the base" || g.report.Measures[1].Says() != "40 %, at least 80 %" {
		t.Errorf("%+v", g.report)
	}
	g.report = pipeline.TestReport{Passed: 1}
	if m := g.measure(); m.OK || !strings.Contains(m.Error, "for Python, install coverage.py") || g.report.OK() {
		t.Errorf("%+v", m)
	}
}

func TestLicences(t *testing.T) {
	t.Parallel()
	base := "-- go.mod --\nmodule example.com/app\n\nrequire example.com/a v1.0.0\n-- package.json --\n{\"dependencies\": {\"a\": \"1\"}}\n"
	change := "-- go.mod --\nmodule example.com/app\n\nrequire (\n\texample.com/a v1.1.0\n\texample.com/b/v2 v2.0.0 // indirect\n)\n" +
		"-- package.json --\n{\"dependencies\": {\"a\": \"1\", \"c\": \"2\"}}\n-- node_modules/c/package.json --\n{\"license\": \"GPL-3.0\"}\n"
	g := newGated(t, base, change, config.Quality{Use: quality.Licences})
	m := g.measure()
	if m.OK || m.Value != 2 || m.Cause() != "go.mod: example.com/b/v2 is new; its licence: not known here\npackage.json: c is new; its licence: GPL-3.0" {
		t.Errorf("%+v: %s", m, m.Cause())
	}
	if m := newGated(t, base, "-- x --\n", config.Quality{Use: quality.Licences}).measure(); !m.OK {
		t.Errorf("%+v", m)
	}
}

func TestVet(t *testing.T) {
	t.Parallel()
	bad := "-- words/words.go --\npackage words\n\nimport \"fmt\"\n\nfunc Count() int { fmt.Printf(\"%d\", \"x\"); return 3 }\n"
	g := newGated(t, goProgram, bad, config.Quality{Use: quality.GoVet})
	if m := g.measure(); m.OK || m.Value != 1 || m.Places[0].File != "words/words.go" || m.Places[0].Line != 5 || m.Places[0].Rule != "printf" || g.report.Failures[0].Line != 5 {
		t.Errorf("%+v", m)
	}
	if m := newGated(t, goProgram, "-- x.txt --\n", config.Quality{Use: quality.GoVet}).measure(); !m.OK || m.Value != 0 {
		t.Errorf("%+v", m)
	}
	if m := newGated(t, goProgram, "-- words/words.go --\npackage words\n\nfunc Count() int { return x }\n", config.Quality{Use: quality.GoVet}).measure(); m.OK || m.Error == "" {
		t.Errorf("what does not build passes: %+v", m)
	}
}

// The packages of a module below the root are measured in it, as its tests are run; a build
// that fails says why.
func TestGatesOfAModuleBelow(t *testing.T) {
	t.Parallel()
	base := strings.NewReplacer("-- ", "-- svc/api/").Replace(goProgram)
	bad := "-- svc/api/words/words.go --\npackage words\n\nimport \"fmt\"\n\nfunc Count() int { fmt.Printf(\"%d\", \"x\"); return 3 }\n"
	g := newGated(t, base, bad, config.Quality{Use: quality.GoVet, Package: "./svc/api/..."})
	if m := g.measure(); m.OK || m.Value != 1 || m.Places[0].File != "svc/api/words/words.go" {
		t.Errorf("%+v", m)
	}
	for _, name := range []string{"./svc/api", "svc/api", "./svc/api/"} {
		g = newGated(t, base, "-- x.txt --\n", config.Quality{Use: quality.BinarySize, Package: name, WorseBy: "1%"})
		if m := g.measure(); !m.OK || m.Value < 1e6 {
			t.Errorf("%s: %+v", name, m)
		}
	}
	gate := quality.Of(config.Quality{Use: quality.GoVet, Package: "./svc/api/..."})
	if got, err := inModule(t.Context(), newWorkspace(t, base+"-- go.work --\ngo 1.22\n"), gate); err != nil || got != gate.Command {
		t.Errorf("in a workspace: %q, %v", got, err)
	}
	g = newGated(t, goProgram, "-- words/words.go --\npackage words\n\nfunc Count() int { return x }\n", config.Quality{Use: quality.BinarySize, WorseBy: "1%"})
	if m := g.measure(); m.OK || !strings.Contains(m.Error, "ended with 1") {
		t.Errorf("what does not build: %+v", m)
	}
}
