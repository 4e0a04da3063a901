package dashboard

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/module"
	"forge/pipeline/pipelinetest"
	"forge/pipeline/store"
)

var shopRepo = pipeline.Repo{ID: 1, Owner: "acme", Name: "shop", DefaultBranch: "main", CloneURL: "https://github.example/acme/shop.git"}

// play plays a script of a run from the line language of pipeline/testdata/loop.
func play(t testing.TB, task pipeline.Task, script string) *pipelinetest.Player {
	t.Helper()
	p := pipelinetest.New(config.Default(), task)
	if err := p.Play(script); err != nil {
		t.Fatal(err)
	}
	return p
}

// busy puts an agent's steps into each phase, each a model call and a tool: n events
// in all, about.
func busy(events []pipeline.Event, n int) (out []pipeline.Event) {
	phases := 0
	for _, e := range events {
		if e.Type == pipeline.EventPhaseEntered {
			phases++
		}
	}
	each := max(1, (n-len(events))/2/max(1, phases))
	for _, e := range events {
		e.ID = fmt.Sprintf("%s/%d", e.ID, e.Seq)
		out = append(out, e)
		p := e.Data.Phase
		if e.Type != pipeline.EventPhaseEntered || p == nil {
			continue
		}
		for i := range each {
			at, id := e.Time.Add(time.Duration(i)*time.Millisecond), fmt.Sprintf("run/1/iter/%d/%s/%d/step/%d", p.Iteration, p.Phase, p.Attempt, i+1)
			out = append(out, pipeline.Event{ID: id, Type: pipeline.EventAgentIteration, Source: "agent:implementer", Time: at, Data: pipeline.Data{Step: &pipeline.Step{
				Phase: p.Phase, Iteration: p.Iteration, Number: i + 1, Model: "anthropic/sonnet", Millis: 1200, Progress: true,
				Usage: pipeline.Usage{Calls: 1, Input: 9000, CachedInput: 7000, Output: 400, MicroUSD: 12_000}}}},
				pipeline.Event{ID: id + "/tool/1", Type: pipeline.EventToolExecuted, Source: "agent:implementer", Time: at, Data: pipeline.Data{Tool: &pipeline.ToolUse{
					Phase: p.Phase, Iteration: p.Iteration, Step: i + 1, Tool: "read", Subject: "cart/total.go", OK: true, Millis: 3, Bytes: 900, Digest: "abc"}}})
		}
	}
	return out
}

const stuck = `plan ok
implement a
review error the total is wrong when the cart is empty, warning a name says nothing
implement b
review error the total is wrong when the cart is empty
implement c
review ok
test TestTotal 0.9, TestEmpty 0.9
implement d
review ok
test TestTotal 0.9
implement e
review ok
test TestTotal 0.9`

// Covers V10 and M4: a run's page says where it stands, what it waits for and what
// failed where.
func TestRunPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := play(t, pipeline.Task{Issue: 7, Title: "The total is wrong\nsecond line", URL: "https://github.example/acme/shop/issues/7"}, stuck)
	s.keep(t, busy(p.Events, 100), shopRepo, 7, today.Add(-time.Hour))
	page := s.get(t, "/runs/1", 200)
	has(t, page,
		"<h1>The total is wrong</h1>", `href="https://github.example/acme/shop/issues/7"`, `data-live="run/1"`,
		`<meter min="0"`, "of $10.00", "Working time", // limits
		`id="gate"`, "It waits for ann", "What was tried", "is reminded", "the run is cancelled", "in 13 days", // the question
		`value="continue"`, `name="n"`, `value="accept"`, `value="cancel"`, `value="take-over"`, `value="simplify"`, `name="text"`, `-value="history"`,
		`value="stop"`, `-value="resume"`, `value="reset"`,
		// what happened
		"Iteration 5", "to implement: 1 error, 1 warning", "to implement: 2 failing tests", `class="block at-3 back"`,
		`class="arrow at-2 span-3"`, `class="mark gate"`,
		"the total is wrong when the cart is empty", "fixed in", "open, still there", "got 1 want 2", "Because: off by one", // fate
		"Validation report, iteration 5", "Scratchpad: everything", "every guard with its numbers", "$0.17") // documents

	// A refresh takes over differences alone: what somebody opened stays open, by its id.
	has(t, page, `"morphIgnore":["data-htmx-powered","open"]`)
	for _, d := range regexp.MustCompile(`<details[^>]*>`).FindAllString(page, -1) {
		if !strings.Contains(d, ` id="`) {
			t.Errorf("%s has no id", d)
		}
	}

	s.viewer = person{login: "eve", repos: []string{"acme/other"}}
	hidden, none := s.get(t, "/runs/1", 404), s.get(t, "/runs/2", 404)
	if strings.ReplaceAll(hidden, "run 1,", "run 2,") != none {
		t.Errorf("a run that one may not see does not look like one that is not there:\n%s\n%s", hidden, none)
	}
	for _, path := range []string{"/runs/0", "/runs/x", "/runs/99999999999999999999", "/runs/1/events", "/runs/1/tape", "/runs/2/events", "/runs/2/tape"} {
		s.get(t, path, 404)
	}
}

// Covers V10: what a run waits for besides an answer is said at its top.
func TestStanding(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, c := range []struct {
		script string
		want   []string
	}{
		{isStopped + " by bob", []string{"bob stopped it.", "without it the run is cancelled on 14 April", `value="resume"`, `-value="stop"`}},
		{"plan ok\nimplement a\nreview ok\nwait the checks build and lint", []string{"waits for the checks build and lint, until 03:", "waits</span>"}},
		{"plan ok\nimplement a\nfault provider overloaded", []string{"Its last step broke down (provider): overloaded"}},
		{"plan ok\nhuman cancel", []string{"cancelled by ann", `-value="stop"`, `-value="cancel"`}},
	} {
		_, at := s.add(t, c.script)
		has(t, s.get(t, at, 200), c.want...)
	}
}

// Many runs are paged through; every script of the loop has a page, its events and its
// tape; what one does not see is not there.
func TestRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	has(t, s.get(t, "/runs", 200), "No runs here")
	s.fill(t)
	page := s.get(t, "/runs", 200)
	has(t, page, "acme/secret", `rel="next"`, "-Newest")
	has(t, s.get(t, "/runs?before=46", 200), "Newest", `href="/runs/45"`, `-href="/runs/46"`, "-Older")
	has(t, s.get(t, "/runs?state=verified&repo=acme/shop", 200), "verified", "acme/shop", "-acme/secret #")
	has(t, s.get(t, "/runs?repo=acme/shopp", 404), "Did you mean acme/shop?")
	has(t, s.get(t, "/runs?state=dead", 400), "There is no state")
	has(t, s.get(t, "/runs?before=x", 400), "takes a run")
	rows, err := s.db.Runs(t.Context(), store.Filter{Limit: 1000})
	if err != nil || len(rows) < 50 {
		t.Fatalf("%d runs, %v", len(rows), err)
	}
	for _, r := range rows {
		at := fmt.Sprintf("/runs/%d", r.ID)
		main := s.get(t, at, 200)
		for _, page := range []string{main, s.get(t, at+"/events", 200), s.get(t, at+"/tape", 200)} {
			has(t, page, "-ZgotmplZ", "-<no value>", "-%!", "</html>")
		}
		if gate := strings.Contains(main, `id="gate"`); gate != (r.State == pipeline.StateWaiting) && r.State != pipeline.StateStopped {
			t.Errorf("run %d is %s, and its page has a question: %v", r.ID, r.State, gate)
		}
	}
	s.viewer = person{repos: []string{"acme/shop"}}
	has(t, s.get(t, "/runs", 200), "acme/shop", "-acme/secret")
	has(t, s.get(t, "/runs?repo=acme/secret", 404), "-Did you mean acme/secret")
}

// Covers V10: what happened is seen in a row for each iteration.
func TestTimeline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, script, want string }{
		{"clean", "plan ok\nimplement a\nreview ok\ntest ok", "1: ann | plan done | implement done | review passed | test passed | verified"},
		{"sent back", "plan ok\nimplement a\nreview error x\nimplement b\nreview ok\ntest ok",
			"1: ann | plan done | implement done | review back | implement<-review\n2: implement done | review passed | test passed | verified"},
		{"to the plan", "plan ok\nimplement a\nreview error x @design\nplan other\nimplement b\nreview ok\ntest ok",
			"1: ann | plan done | implement done | review back | plan<-review\n2: plan done | implement done | review passed | test passed | verified"},
		{"fault", "plan ok\nimplement a\nfault provider down\nreview ok\ntest ok",
			"1: ann | plan done | implement done | review fault | review passed | test passed | verified"},
		{"question", "plan which? | a | b\nhuman choose a\nplan ok\nimplement a",
			"1: ann | plan done | plan asks | ann | plan done | implement done | review working"},
		{"stopped", "plan ok\nhuman stop\nhuman resume", "1: ann | plan done | implement working | ann | ann"},
		{"moved", "plan ok\nimplement a\nnotice push abc", "1: ann | plan done | implement done | review dropped | ann | review working"},
		{"base", "plan ok\nimplement a\nreview ok\nnotice base_moved def\ntest ok\nupdate ok",
			"1: ann | plan done | implement done | review passed | test passed | main | update done | review working"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, pipeline.Task{Issue: 1, Title: "x"}, c.script)
			line := newTimeline(&p.Run, p.Events)
			var rows []string
			for _, row := range line.Rows {
				var items []string
				for _, i := range row.Items {
					switch i.Kind {
					case "block":
						items = append(items, string(i.Phase)+" "+i.Result)
					case "back":
						items = append(items, fmt.Sprintf("%s<-%s", line.Phases[i.At-1], line.Phases[i.At+i.Span-2]))
					default:
						items = append(items, i.Who)
					}
				}
				rows = append(rows, fmt.Sprintf("%d: %s", row.Number, strings.Join(items, " | ")))
			}
			if got := strings.Join(rows, "\n"); got != c.want {
				t.Errorf("timeline of %q:\n%s\nwant\n%s", c.script, got, c.want)
			}
		})
	}
}

// What agents told each other stands in the row, with who decided it.
func TestTimelineOfFeedback(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Upstream.Enabled = true
	p := pipelinetest.New(cfg, pipeline.Task{Issue: 1, Title: "x"})
	if err := p.Play("plan ok\nimplement half constraint high AC1: no sockets\nresolve design poll\nimplement it\nreview ok\ntest ok"); err != nil {
		t.Fatal(err)
	}
	line := newTimeline(&p.Run, p.Events)
	if !slices.Contains(line.Phases, pipeline.PhaseResolve) || len(line.Rows) != 1 {
		t.Fatalf("columns %v, %d rows", line.Phases, len(line.Rows))
	}
	var said []string
	for _, i := range line.Rows[0].Items {
		said = append(said, i.Who+i.Text)
	}
	if got := strings.Join(said, "\n"); !strings.Contains(got, "implementerno sockets") || !strings.Contains(got, "plannerthe plan has other steps: poll") {
		t.Errorf("it says\n%s", got)
	}
}

// What other versions wrote is shown as far as it is understood: no event, with or
// without what it carries, breaks a page.
func TestOtherVersions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../pipeline/testdata/loop/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		ar, err := txtar.ParseFile(f)
		if err != nil {
			t.Fatal(err)
		}
		p, script, err := pipelinetest.Load(ar)
		if err == nil {
			err = p.Play(script)
		}
		if err != nil {
			t.Fatal(err)
		}
		for without := 1; without < len(p.Events); without++ {
			events := append([]pipeline.Event{}, p.Events...)
			events[without].Data = pipeline.Data{}
			var run pipeline.Run
			for _, e := range events {
				run.Apply(e)
			}
			line := newTimeline(&run, events)
			costs(&run, &line)
			issues(&run, events)
		}
	}

	s := newSite(t)
	s.fill(t, "clean")
	run, err := s.db.Load(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	var more []pipeline.Event
	for i, of := range []pipeline.EventType{"module.started", pipeline.EventPhaseEntered, pipeline.EventBounce, pipeline.EventGateRequested,
		pipeline.EventDismissed, pipeline.EventAgentIteration, "x<script>"} {
		more = append(more, pipeline.Event{ID: fmt.Sprint("odd", i), Type: of, Time: today})
	}
	if err := s.db.Append(t.Context(), run, more, nil); err != nil {
		t.Fatal(err)
	}
	has(t, s.get(t, "/runs/1", 200), "verified")
	has(t, s.get(t, "/runs/1/events", 200), "module.started", "x&lt;script&gt;", "-x<script>")
	has(t, s.get(t, "/runs/1/events?type=module.started", 200), `<td class="nowrap">module.started</td>`, `-<td class="nowrap">run.started</td>`)
	has(t, s.get(t, "/runs/1/events?type=nothing", 400), "no event of the type")
	has(t, s.get(t, "/runs/1/events?after=x", 400), "takes a number")
	s.get(t, "/runs/1/tape", 200)
	if row := showEvent(store.LogEntry{Data: []byte("{not json")}); row.Data != "{not json" {
		t.Errorf("data that is no JSON is shown as %q", row.Data)
	}
	if row := showEvent(store.LogEntry{Data: []byte(`"` + strings.Repeat("é", dataShown) + `"`)}); len(row.Data) > dataShown+3 || row.Cut != dataShown+2 {
		t.Errorf("long data: %d bytes shown, %d more", len(row.Data), row.Cut)
	}
}

// What is hostile stays text; what is much is cut, and the page says how much more
// there is.
func TestHostileRun(t *testing.T) {
	t.Parallel()
	const nasty = `</script><script>alert(1)</script><img src=x onerror=alert(2)>`
	s := newSite(t)
	p := play(t, pipeline.Task{Issue: 7, Title: nasty + strings.Repeat("w", 5000), URL: "javascript:alert(1)"},
		"plan "+nasty+"\nimplement "+nasty+"\nreview ok\nhuman stop // "+nasty+"\nhuman resume")
	events := p.Events
	ref := *p.Run.Active
	report := &pipeline.TestReport{Head: p.Run.Head, Total: 1000, Failed: 1000}
	for i := range 1000 {
		f := pipeline.Failure{Test: fmt.Sprintf("Test%d%s", i, nasty), File: "a b/" + nasty + ".go", Line: 1, Error: nasty}
		f.Fingerprint = f.Digest()
		report.Failures = append(report.Failures, f)
	}
	events = append(events, pipeline.Event{ID: "many", Type: pipeline.EventPhaseCompleted, Source: "agent:" + nasty, Time: p.Now,
		Data: pipeline.Data{Phase: &ref, Tests: report}})
	s.keep(t, events, shopRepo, 7, today)
	page := s.get(t, "/runs/1", 200)
	for _, text := range []string{page, s.get(t, "/runs/1/events", 200), s.get(t, "/runs/1/tape", 200)} {
		has(t, text, "-<script>alert", "-<img src=x", "-href=\"javascript:", "&lt;script&gt;")
	}
	has(t, page, "And 900 more", "1000</b> open", "and 994 more")
	if len(page) > 1<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
}

// Covers V1 to V3: regressions, flaky tests and coverage are named by iteration.
func TestTestRows(t *testing.T) {
	t.Parallel()
	run := &pipeline.Run{
		Baseline: &pipeline.TestReport{Total: 4, Passed: 4, Coverage: &pipeline.Coverage{Lines: 61.25, Changed: -1}, Suites: []pipeline.Suite{{Name: "go test"}}},
		Loop: pipeline.Loop{Iterations: []pipeline.Iteration{{Number: 1}, {Number: 2, Tests: &pipeline.TestReport{None: "no tests here"}},
			{Number: 3, Tests: &pipeline.TestReport{
				Total: 6, Passed: 2, Failed: 3, Skipped: 1, Flaky: []string{"TestClock"}, Coverage: &pipeline.Coverage{Lines: 60, Changed: 80.04},
				Failures: []pipeline.Failure{{Test: "TestA", WorkedIn: 2}, {Test: "TestB", WorkedIn: -1}, {Test: "TestC"}},
				Tampered: []pipeline.Finding{{Message: "TestD is gone"}}}}}},
	}
	want := []testRow{
		{Label: "before", Suites: "go test", Total: 4, Passed: 4, Lines: "61.2 %", Changed: "–", Result: "passed"},
		{Label: "2", None: "no tests here", Lines: "–", Changed: "–", Result: "failed"},
		{Label: "3", Total: 6, Passed: 2, Failed: 3, Skipped: 1, Lines: "60.0 %", Changed: "80.0 %", Result: "failed", Notes: []string{
			"Regression: TestA (worked in iteration 2), TestB (worked before the change)", "Failed: TestC",
			"Flaky, passed when run again: TestClock", "1 test was removed or weakened"}},
	}
	if diff := cmp.Diff(want, tests(run)); diff != "" {
		t.Errorf("tests (-want +got):\n%s", diff)
	}
}

// A row in which very much happened is cut in the middle, and still sums all of it up.
func TestLongRow(t *testing.T) {
	t.Parallel()
	p := play(t, pipeline.Task{Issue: 1, Title: "x"}, "plan ok\nimplement a\nreview ok")
	events, ref := p.Events, *p.Run.Active
	for range 200 {
		entered := ref
		entered.Attempt++
		ref = entered
		events = append(events, pipeline.Event{Type: pipeline.EventPhaseEntered, Data: pipeline.Data{Phase: &entered}},
			pipeline.Event{Type: pipeline.EventAgentIteration, Data: pipeline.Data{Step: &pipeline.Step{Phase: ref.Phase, Usage: pipeline.Usage{MicroUSD: 10}}}},
			pipeline.Event{Type: pipeline.EventPhaseFailed,
				Data: pipeline.Data{Phase: &pipeline.PhaseRef{Phase: ref.Phase, Millis: 5}, Fault: &pipeline.Fault{Message: "down"}}})
	}
	p.Run.Spent = map[pipeline.Phase]pipeline.Usage{pipeline.PhaseReflect: {MicroUSD: 7}}
	line := newTimeline(&p.Run, events)
	row := line.Rows[0]
	if len(line.Rows) != 1 || len(row.Items) != itemsShown || row.More == 0 || row.Items[0].Kind != "human" || row.Items[itemsShown-1].Result != "fault" {
		t.Errorf("%d rows, %d items and %d more, want 1, %d and the rest", len(line.Rows), len(row.Items), row.More, itemsShown)
	}
	table := costs(&p.Run, &line)
	if last := table.Rows[len(table.Rows)-1]; last.Label != "looking back" || table.Total.Sum.MicroUSD != 2007 || table.Total.Cells[3].MicroUSD != 2000 {
		t.Errorf("costs %+v, want $0.002000 for tests and $0.000007 for looking back", table)
	}
}

// However much was found, the worst of what is open is shown, and the rest counted.
func TestManyFindings(t *testing.T) {
	t.Parallel()
	run := &pipeline.Run{}
	for i := range 10_000 {
		is := pipeline.Issue{Finding: &pipeline.Finding{Severity: pipeline.SeverityInfo}, State: "fixed", FixedIn: "abc"}
		switch {
		case i >= 9990:
			is.Finding.Severity, is.State = pipeline.SeverityCritical, "open"
		case i >= 9950:
			is.State = pipeline.IssueOpen
		case i >= 9945:
			is.State, is.Back = "open", 1
		}
		run.Findings = append(run.Findings, is)
	}
	list := issues(run, nil)
	if len(list.Rows) != issuesShown || list.More != 9900 || list.Rows[0].Class != "again" || list.Rows[5].Severity != "critical" ||
		list.Rows[15].Severity != "info" || list.Rows[99].Class != "fixed" {
		t.Errorf("%d rows, %d more, %+v", len(list.Rows), list.More, list.Rows)
	}
	if want := []issueCount{{"again", 5}, {"open", 50}, {"fixed", 9945}}; !slices.Equal(list.Count, want) {
		t.Errorf("counts %v, want %v", list.Count, want)
	}
}

// What people decided about a finding is shown with who and why.
func TestFates(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := play(t, pipeline.Task{Issue: 7, Title: "x"},
		"plan ok\nimplement a\nreview error one, error two, warning three\nimplement b\nreview error two\nimplement c\nreview error one, error two")
	for _, is := range p.Run.Findings {
		if is.Finding.Message == "two" {
			p.Append(pipeline.SignalEvents([]pipeline.Signal{
				{Key: "k", Kind: pipeline.SignalDismissed, At: p.Now, Actor: pipeline.Actor{ID: 6, Login: "bob"}, Weight: 1, Finding: is.Fingerprint(),
					Text: "wanted so"}})...)
		}
	}
	events := p.Events
	for i := range events {
		if v := events[i].Data.Review; v != nil {
			v.Summary = "fine\n\nHeld back: style in a.go:3, \"long\", because ann dismissed it (learning 4)"
		}
	}
	s.keep(t, events, shopRepo, 7, today)
	has(t, s.get(t, "/runs/1", 200), "back again, after it was fixed", "dismissed by bob", "“wanted so”", "fixed in", "held back or lowered",
		"Held back: style in a.go:3", "dismissed a finding: “wanted so”")
}

// What was remembered is shown with what became of it.
func TestRunMemory(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(t, "clean")
	ctx := t.Context()
	err := s.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		ids, err := s.db.SaveLearnings(ctx, tx, []pipeline.Learning{
			{Key: "a", Scope: "repo:acme/shop", Type: pipeline.LearningSemantic, Content: "Totals are in cents <b>", State: "active",
				Source: "human", Created: today, Touched: today},
			{Key: "b", Scope: "repo:acme/shop", Type: pipeline.LearningSemantic, Content: "Carts may be empty", State: "active", Source: "human",
				Created: today, Touched: today}})
		if err != nil {
			return err
		}
		if err := s.db.RecordRecall(ctx, tx, 1, pipeline.Recall{Phase: pipeline.PhaseReview, Iteration: 1, Role: "reviewer", Given: ids[:1],
			Used: ids[:1], Withheld: ids[1:]}, today); err != nil {
			return err
		}
		return s.db.RecordReflection(ctx, tx, 1, "r", pipeline.Reflection{Trigger: "run_ended", Learnings: ids[:1], Usage: pipeline.Usage{MicroUSD: 20_000}}, today)
	})
	if err != nil {
		t.Fatal(err)
	}
	has(t, s.get(t, "/runs/1", 200), "Totals are in cents &lt;b&gt;", "given and used", "Carts may be empty",
		"left out by chance, to measure what it is worth", "run ended: 1 learning kept", "$0.02")
}

// A run that works without memory says so.
func TestRunWithoutMemory(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(t, "clean")
	has(t, s.get(t, "/runs/1", 200), "-works without what Forge has learnt")
	cfg := config.Default()
	cfg.Learn.Holdout = 1
	run, err := s.db.CreateRun(t.Context(), "held", pipeline.Start{Repo: pipeline.Repo{ID: 1, Owner: "acme", Name: "shop"},
		Task: pipeline.Task{Issue: 99, Title: "x"}, Config: cfg, Base: strings.Repeat("a", 40), Branch: "forge/x"}, today, strings.Repeat("a", 32), nil)
	if err != nil {
		t.Fatal(err)
	}
	has(t, s.get(t, fmt.Sprintf("/runs/%d", run.ID), 200), "This run works without what Forge has learnt")
}

// What a verdict rests on is on the page: who let what pass, what the reviewer withdrew or
// upheld, and what tests did before the work.
func TestRunShowsTheVerdict(t *testing.T) {
	t.Parallel()
	run := &pipeline.Run{Consent: pipeline.Consent{
		Waivers: []pipeline.Waiver{{By: pipeline.Actor{Login: "ann"}, What: "1 test failed before", At: today, Head: "1234567890"}}},
		Loop: pipeline.Loop{Findings: []pipeline.Issue{
			{Finding: &pipeline.Finding{Message: "no bug"}, State: "withdrawn", Ruling: "the caller checks it"},
			{Finding: &pipeline.Finding{Message: "a bug"}, State: "open", Disputed: "it is meant so", Upheld: 2}}},
		Baseline: &pipeline.TestReport{Passed: 1, Before: []pipeline.Failure{{Test: "TestOld"}, {Test: "TestKnown", KnownBy: "bob"}}, Unclean: "go test ended with 2",
			Changed: []pipeline.TestChange{{Test: "TestSum", Reason: "the sum is rounded now"}},
			Suites:  []pipeline.Suite{{Name: "pytest", NotRun: "python3 is missing"}}}}
	var b strings.Builder
	d := runData{Run: run, Waived: waivers(run), Issues: issues(run, nil), Tests: tests(run)}
	if err := templates()["run.html"].ExecuteTemplate(&b, "main", page{Data: d, Now: today}); err != nil {
		t.Fatal(err)
	}
	has(t, b.String(), "Let pass by people", "<b>ann</b>", "1 test failed before", "<code>1234567</code>", "withdrawn by the reviewer",
		"The reviewer: the caller checks it",
		"The implementer holds it for mistaken: it is meant so", "Upheld 2 times", "Failed before this work, and still: TestOld",
		"as is known: TestKnown (known, says bob)",
		"Not green: go test ended with 2", "Pass only as this work changed them: TestSum (the reviewer: the sum is rounded now)",
		"pytest did not run: python3 is missing")
	for _, tt := range []struct {
		tests pipeline.TestReport
		want  string
	}{{pipeline.TestReport{Passed: 3, Total: 3, Unclean: "a suite did not end"}, "a suite did not end"},
		{pipeline.TestReport{Passed: 3, Total: 4, Before: run.Baseline.Before}, "1 failed before, and still"}} {
		var line timelineDraft
		if got, text := line.result(pipeline.Data{Tests: &tt.tests}); got != "failed" || text != tt.want {
			t.Errorf("%+v is drawn as %s, %q", tt.tests, got, text)
		}
	}
}

// Covers V6, V10: the page of a run has its modules, with when they were worked on.
func TestModulesOnPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := play(t, pipeline.Task{Issue: 7, Title: "Three things"}, `plan split a, b needs a, c
part a: plan given
part a: implement it
part a: review ok
part a: test ok
merge ok
part c: plan given
part b: plan given
part b: implement unable which <b>colour</b>?`)
	s.keep(t, p.Events, shopRepo, 7, today.Add(-time.Hour))
	page := s.get(t, "/runs/1", 200)
	has(t, page, `id="modules"`, "<b>a</b>", "merged", "asks: The implementer needs a clarification: which &lt;b&gt;colour", "critical path",
		`<rect x="`, "-<b>colour")
}

// A module that is at work again is drawn until now, and is what the whole waits for.
func TestModuleAtWorkAgain(t *testing.T) {
	t.Parallel()
	row := func(id, state, merged string, minutes int) moduleRow {
		return moduleRow{Row: module.Row{Module: module.Module{ID: id}, Part: module.Part{ID: id, State: state, Merged: merged, Started: today, Ended: today.Add(time.Duration(minutes) * time.Minute)}}}
	}
	rows := []moduleRow{row("tax", "running", "beef", 5), row("layout", "verified", "c0ffee", 9)}
	now := today.Add(time.Hour)
	if got := endOf(&rows[0].Row, now); !got.Equal(now) {
		t.Errorf("tax is drawn until %v, want now, %v", got, now)
	}
	if got := endOf(&rows[1].Row, now); !got.Equal(today.Add(9 * time.Minute)) {
		t.Errorf("layout is drawn until %v", got)
	}
	if got := criticalPath(rows, now); !got["tax"] || got["layout"] {
		t.Errorf("the critical path is %v, want tax", got)
	}
}
