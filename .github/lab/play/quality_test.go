package play

import (
	"os"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/server/servertest"
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
	axe, err := os.ReadFile(os.Getenv("FORGE_AXE"))
	if err != nil {
		t.Fatalf("axe-core is needed: FORGE_AXE=…/axe.min.js: %v", err)
	}
	files := gatesOf("  - {use: axe, command: sh axe.sh}\n")
	files["axe.sh"], files["axe.min.js"], files["page.html"] = axeScript, string(axe), "<p>hello</p>\n"
	files["test.sh"] = "echo TAP version 13\necho 1..1\necho ok 1 - shows\n"
	tape := strings.NewReplacer("IMAGES", `"`+strings.Repeat(`<img src=a.png>\n`, 12)+`"`, "DESCRIBED", `"`+strings.Repeat(`<img src=a.png alt=Ann>\n`, 12)+`"`).Replace(axeTape)
	ts := newTestServer(t, testOptions{tape: tape, files: files})
	ts.label("acme")
	run, _ := ts.within(4*time.Minute, func(r *pipeline.Run) bool {
		return r.State == pipeline.StateVerified || r.State == pipeline.StateWaiting
	})
	if run.State != pipeline.StateVerified || len(run.Iterations) != 2 || len(run.Bounces) != 1 {
		t.Fatalf("%+v\n%s", run, ts.comments())
	}
	first, last := run.Iterations[0].Tests, run.Iterations[1].Tests
	if m := first.Measures[0]; m.OK || m.Value != 12 || len(first.Failures) != 1 || !strings.HasPrefix(first.Failures[0].Analysis, "page.html: image-alt") {
		t.Errorf("the first time: %+v, %+v", first.Measures, first.Failures)
	}
	if m := last.Measures[0]; !m.OK || m.Value != 0 || last.Head != run.Head {
		t.Errorf("measured again: %+v", last.Measures)
	}
}
