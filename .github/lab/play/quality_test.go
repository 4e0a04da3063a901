package play

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/cmd/forge/server/servertest"
	"forge/github/githubtest"
	"forge/pipeline"
)

// axeScript looks at page.html in Chromium with axe-core, and prints what that finds. Debian's
// chromium is a script that reads files of /etc, of which the sandbox has few.
const axeScript = `dir=$(mktemp -d)
browser=/usr/lib/chromium/chromium
[ -x $browser ] || browser=chromium
{
  echo '<!DOCTYPE html><html lang=en><title>Greet</title><main><h1>Greet</h1>'
  cat page.html
  echo '</main><script>'
  cat axe.min.js
  echo '</script><script>axe.run().then(r => {
    const text = JSON.stringify({url: "file://PWD/page.html", violations: r.violations})
    document.body.innerHTML = "<pre id=out>" + btoa(unescape(encodeURIComponent(text))) + "</pre>"
  })</script>'
} >"$dir/page.html"
$browser --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$dir" --virtual-time-budget=10000 --dump-dom "file://$dir/page.html" >"$dir/dom" 2>"$dir/log" ||
  { cat "$dir/log" >&2; exit 1; }
sed -n 's/.*<pre id="out">\([^<]*\)<.*/\1/p' "$dir/dom" | base64 -d | sed "s#PWD#$PWD#"
`

const axeTape = `
-- planner 0/1 --
>>> submit
summary: Show the pictures
steps: [Edit page.html]
criteria: [{id: AC1, text: All twelve pictures are shown}]
-- implementer 1/1 --
>>> write
path: page.html
content: IMAGES
-- implementer 1/2 --
>>> submit
summary: Show the pictures
` + servertest.Approved + `-- tester 1/1 --
@expect quality/axe
@expect 12 elements, at most 0 elements; 0 elements at the base
@expect page.html: image-alt
>>> submit
failures:
  - {id: T1, cause: logic, analysis: "The pictures say nothing to who cannot see them", confidence: 0.9, fix: {description: "Give each an alt"}}
-- implementer 2/1 --
@expect page.html: image-alt
@expect Give each an alt
>>> write
path: page.html
content: DESCRIBED
-- implementer 2/2 --
>>> submit
summary: Give each picture an alt
addressed: [{id: T1, what: each has an alt}]
`

// Covers U6: twelve images without alt are found by axe-core in a browser, in the sandbox;
// they go back with the page's name, and are measured again.
func TestPicturesWithoutAlt(t *testing.T) {
	long(t)
	axe, err := os.ReadFile(os.Getenv("FORGE_AXE"))
	if err != nil {
		t.Fatalf("axe-core is needed: FORGE_AXE=…/axe.min.js: %v", err)
	}
	files := gatesOf("  - {use: axe, command: sh axe.sh}\n")
	files["axe.sh"], files["axe.min.js"], files["page.html"] = axeScript, string(axe), "<p>hello</p>\n"
	files["test.sh"] = "echo TAP version 13\necho 1..1\necho ok 1 - shows\n"
	tape := strings.NewReplacer("IMAGES", `"`+strings.Repeat(`<img src=a.png>\n`, 12)+`"`, "DESCRIBED", `"`+strings.Repeat(`<img src=a.png alt=Ann>\n`, 12)+`"`).Replace(axeTape)
	ts := newServer(t, servertest.Options{Tape: tape, Files: files})
	ts.Label("acme")
	run, _ := ts.Within(4*time.Minute, func(r *pipeline.Run) bool {
		return r.State == pipeline.StateVerified || r.State == pipeline.StateWaiting
	})
	if run.State != pipeline.StateVerified || len(run.Iterations) != 2 || len(run.Bounces) != 1 {
		t.Fatalf("%+v\n%s", run, ts.Comments())
	}
	first, last := run.Iterations[0].Tests, run.Iterations[1].Tests
	if m := first.Measures[0]; m.OK || m.Value != 12 || len(first.Failures) != 1 || !strings.HasPrefix(first.Failures[0].Analysis, "page.html: image-alt") {
		t.Errorf("the first time: %+v, %+v", first.Measures, first.Failures)
	}
	if m := last.Measures[0]; !m.OK || m.Value != 0 || last.Head != run.Head {
		t.Errorf("measured again: %+v", last.Measures)
	}
}

const bigTape = `
-- planner 0/1 --
>>> submit
summary: Put a comma after hello
steps: [Edit words/words.go]
criteria: [{id: AC1, text: A comma follows hello}]
-- implementer 1/1 --
>>> edit
path: words/words.go
old: |
  func Greet(name string) string { return "hello " + name }
new: |
  var table = [4000]int64{1, 2, 3, 3999: 4}

  func Greet(name string) string { return "hello, " + name[min(len(name), int(table[len(name)])):] }
-- implementer 1/2 --
>>> submit
summary: Put a comma after hello
` + servertest.Approved + `-- tester 1/1 --
@expect quality/size
@expect more than at the base
@expect out/words.a: 3
@expect answered for by: architect, developer
>>> submit
failures:
  - {id: T1, cause: logic, analysis: "The table is not needed", confidence: 0.9, fix: {description: "Take the table out"}}
-- implementer 2/1 --
@expect out/words.a: 3
@expect Take the table out
>>> edit
path: words/words.go
old: |
  var table = [4000]int64{1, 2, 3, 3999: 4}

  func Greet(name string) string { return "hello, " + name[min(len(name), int(table[len(name)])):] }
new: |
  func Greet(name string) string { return "hello, " + name }
-- implementer 2/2 --
>>> submit
summary: Take the table out
addressed: [{id: T1, what: the table is gone}]
`

// A change that doubles what is built goes back with the package that grew, and is verified once it is measured again and small enough.
func TestProgramGrows(t *testing.T) {
	t.Parallel()
	ts := newServer(t, servertest.Options{Tape: bigTape, Files: goFiles(`  - name: size
    command: for p in words names; do go build -o out/$p.a ./$p || exit 1; done
    value: size:out/*.a
    worse_by: 10%
    owner: [architect, developer]
`)})
	ts.Label("acme")
	run, ok := ts.Within(2*time.Minute, func(r *pipeline.Run) bool {
		return r.State == pipeline.StateVerified || r.State == pipeline.StateWaiting
	})
	if !ok || run.State != pipeline.StateVerified {
		t.Fatalf("%+v\n%s", run, ts.Comments())
	}
	if len(run.Iterations) != 2 || len(run.Bounces) != 1 || run.Counters.TestBounces != 1 {
		t.Fatalf("%d iterations, %+v", len(run.Iterations), run.Bounces)
	}
	first, last := run.Iterations[0].Tests, run.Iterations[1].Tests
	if len(first.Failures) != 1 || !strings.HasPrefix(first.Failures[0].Analysis, "out/words.a: 3") ||
		!strings.HasSuffix(first.Failures[0].Analysis, "The table is not needed") || first.Failures[0].Cause != pipeline.CauseQuality {
		t.Errorf("the first time: %+v", first.Failures)
	}
	if len(last.Measures) != 1 || !last.Measures[0].OK || last.Head != run.Head || last.Measures[0].Base == nil {
		t.Errorf("measured again: %+v", last)
	}
	if is := run.Failures[0]; is.State != pipeline.IssueFixed || is.Times != 1 {
		t.Errorf("%+v", is)
	}
}

// What cannot be measured is never verified: a person is asked, and is told why.
func TestGateWithoutValue(t *testing.T) {
	long(t)
	t.Parallel()
	ts := newServer(t, servertest.Options{Files: gatesOf("  - {name: size, command: \"echo NaN\", value: number, max: 5}\n")})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateWaiting)
	if g := run.Gate(); g.Guard.Name != pipeline.GuardUnclean || !strings.Contains(g.Guard.Detail, "the quality gate size could not be measured: the command printed NaN") {
		t.Fatalf("%+v", g.Guard)
	}
	ts.Comment("acme", "/forge retry")
	ts.Until("asked again", func(r *pipeline.Run) bool { return len(r.Gates) == 2 && r.State == pipeline.StateWaiting })
	ts.Comment("acme", "/forge accept")
	ts.UntilState(pipeline.StateAccepted)
}

// A warning says so, and sends nothing back.
func TestGateThatWarns(t *testing.T) {
	long(t)
	t.Parallel()
	ts := newServer(t, servertest.Options{Files: gatesOf("  - {name: size, command: wc -c <greet.sh, value: number, unit: bytes, max: 5, block: false}\n")})
	ts.Label("acme")
	if run := ts.UntilState(pipeline.StateVerified); len(run.Iterations) != 1 || run.Iterations[0].Tests.Measures[0].OK {
		t.Errorf("%+v", run.Iterations[0].Tests)
	}
}

// What the base misses already is asked about once, like a test that failed before.
func TestGateMissedBefore(t *testing.T) {
	long(t)
	t.Parallel()
	ts := newServer(t, servertest.Options{Files: gatesOf("  - {name: lines, command: cat test.sh, value: lines, max: 1}\n")})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateWaiting)
	if g := run.Gate(); g.Guard.Name != pipeline.GuardKnown || g.Guard.About[0] != "quality/lines" || len(run.Bounces) != 0 {
		t.Fatalf("%+v", g.Guard)
	}
	ts.Comment("acme", "/forge approve")
	if run := ts.UntilState(pipeline.StateVerified); run.Iterations[0].Tests.Before[0].KnownBy != "acme" {
		t.Errorf("%+v", run.Iterations[0].Tests)
	}
}

// A change does not loosen the gate that it is measured by: neither in the settings nor in
// the script that the gate runs.
func TestChangeLoosensItsGate(t *testing.T) {
	t.Parallel()
	files := gatesOf("  - {name: size, command: sh size.sh, value: number, max: 20}\n")
	loose := strings.Replace(files[".github/forge.yml"], "max: 20", "max: 2000", 1)
	files["size.sh"] = "wc -c <greet.sh\n"
	tape := strings.Replace(servertest.GreeterTape, `new: "echo hello, $1"`, `new: "echo hello, $1 # and much more"`, 1) + `
-- tester */1 --
@expect quality/size
>>> submit
failures: [{id: T1, cause: logic, analysis: It is too long., confidence: 0.2}]
`
	var once sync.Once
	ts := newServer(t, servertest.Options{Files: files, Tape: tape, On: func(ts *servertest.Server, run *pipeline.Run, e pipeline.Event) {
		if e.Type == pipeline.EventPhaseApproved {
			once.Do(func() {
				if _, err := ts.GitHub.As("acme").PushFiles(servertest.Repo, githubtest.Push{Branch: run.Branch, Message: "Measure less",
					Files: map[string]*string{"size.sh": new("echo 1\n"), ".github/forge.yml": new(loose)}}); err != nil {
					ts.T.Error(err)
				}
			})
		}
	}})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateWaiting)
	tests := run.Current().Tests
	if g := run.Gate().Guard; g.Name != pipeline.GuardNoFix || run.Counters.Moved != 1 || len(tests.Measures) != 1 {
		t.Fatalf("%+v, moved %d times, %+v", g, run.Counters.Moved, tests)
	}
	if m := tests.Measures[0]; m.OK || m.Bound != "at most 20" || m.Value < 30 || !strings.Contains(m.Note, "with size.sh as the base has it") {
		t.Errorf("%+v", m)
	}
}

const sarifTape = servertest.GreeterTape + `
-- implementer 1/1 --
>>> write
path: greet.sh
content: "echo hello, $1 # bad\n"
-- tester 1/1 --
@expect quality/lint
>>> submit
failures:
  - {id: T1, cause: logic, analysis: "a bad word", confidence: 0.9, fix: {description: "Take it out"}}
-- implementer 2/1 --
>>> write
path: greet.sh
content: "echo hello, $1\n"
-- implementer 2/2 --
>>> submit
summary: Take it out
addressed: [{id: T1, what: it is gone}]
`

// Covers U6: what an analyser finds stands at its line in the change, once, on the commit that
// it was found in; the commit that mends it has none.
func TestFindingsOfAnAnalyserAtTheirLines(t *testing.T) {
	long(t)
	t.Parallel()
	files := gatesOf("  - {name: lint, command: sh lint.sh, value: \"sarif:lint.sarif\", max: 0}\n")
	files["lint.sh"] = `if grep -q bad greet.sh; then r='[{"ruleId":"words","level":"error","message":{"text":"a bad word"},"locations":[{"physicalLocation":` +
		`{"artifactLocation":{"uri":"greet.sh"},"region":{"startLine":1}}}]}]'; else r='[]'; fi
echo '{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}},"results":'"$r"'}]}' > lint.sarif
`
	ts := newServer(t, servertest.Options{Tape: sarifTape, Files: files})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	if len(run.Iterations) != 2 {
		t.Fatalf("%d iterations\n%s", len(run.Iterations), ts.Comments())
	}
	for i, want := range []int{1, 0} {
		checks, err := ts.GitHub.ChecksOf(servertest.Repo, run.Iterations[i].Impl.Head)
		ts.Must(err)
		got := 0
		for _, c := range checks {
			got += c.Annotations
		}
		if got != want {
			t.Errorf("commit %d has %d annotations, want %d: %+v", i+1, got, want, checks)
		}
	}
}
