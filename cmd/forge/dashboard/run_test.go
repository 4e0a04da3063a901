package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"forge/pipeline"
	"forge/pipeline/pipelinetest"
	"forge/pipeline/store"
)

var shop = pipeline.Repo{ID: 1, Owner: "acme", Name: "shop", DefaultBranch: "main", CloneURL: "https://github.example/acme/shop.git"}

// play plays a script of a run from the line language of pipeline/testdata/loop.
func play(t testing.TB, task pipeline.Task, script string) *pipelinetest.Player {
	t.Helper()
	p := pipelinetest.New(pipeline.DefaultConfig(), task)
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
				Phase: p.Phase, Iteration: p.Iteration, Number: i + 1, Model: "anthropic/sonnet", Millis: 1200, Progress: true, Usage: pipeline.Usage{Calls: 1, Input: 9000, CachedInput: 7000, Output: 400, MicroUSD: 12_000}}}},
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
	s := newSite(t)
	p := play(t, pipeline.Task{Issue: 7, Title: "The total is wrong\nsecond line", URL: "https://github.example/acme/shop/issues/7"}, stuck)
	s.keep(t, busy(p.Events, 100), shop, 7, today.Add(-time.Hour))
	page := s.get(t, "/runs/1", 200)
	has(t, page,
		"<h1>The total is wrong</h1>", `href="https://github.example/acme/shop/issues/7"`, `data-live="run/1"`,
		`<meter min="0"`, "of $10.00", "Working time", // limits
		`id="gate"`, "It waits for ann", "What was tried", "is reminded", "the run is cancelled", "in 13 days", // the question
		`value="continue"`, `name="n"`, `value="accept"`, `value="cancel"`, `value="take-over"`, `value="simplify"`, `name="text"`, `-value="history"`,
		`value="stop"`, `-value="resume"`, `value="reset"`,
		"Iteration 5", "to implement: 1 error, 1 warning", "to implement: 2 failing tests", `class="block at-3 back"`, `class="arrow at-2 span-3"`, `class="mark gate"`, // what happened
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
	s := newSite(t)
	for _, c := range []struct {
		script string
		want   []string
	}{
		{isStopped + " by bob", []string{"bob stopped it.", "without it the run is cancelled on 14 April", `value="resume"`, `-value="stop"`}},
		{"plan ok\nimplement a\nreview ok\nwait the checks build and lint", []string{"It waits for the checks build and lint, until 03:", "waits</span>"}},
		{"plan ok\nimplement a\nfault provider overloaded", []string{"Its last step broke down (provider): overloaded"}},
		{"plan ok\nhuman cancel", []string{"cancelled by ann", `-value="stop"`, `-value="cancel"`}},
	} {
		_, at := s.add(t, c.script)
		has(t, s.get(t, at, 200), c.want...)
	}
}

// Every script of the loop has a page, its events and its tape.
func TestEveryRunHasAPage(t *testing.T) {
	s := newSite(t)
	s.fill(t)
	rows, err := s.db.Runs(t.Context(), store.Filter{Limit: 1000})
	if err != nil || len(rows) < 50 {
		t.Fatalf("%d runs, %v", len(rows), err)
	}
	for _, r := range rows {
		for _, under := range []string{"", "/events", "/tape"} {
			page := s.get(t, fmt.Sprintf("/runs/%d%s", r.ID, under), 200)
			has(t, page, "-ZgotmplZ", "-<no value>", "-%!", "</html>")
		}
		if gate := strings.Contains(s.get(t, fmt.Sprintf("/runs/%d", r.ID), 200), `id="gate"`); gate != (r.State == pipeline.StateWaiting) && r.State != pipeline.StateStopped {
			t.Errorf("run %d is %s, and its page has a question: %v", r.ID, r.State, gate)
		}
	}
}

// Covers V10: what happened is seen in a row for each iteration.
func TestTimeline(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"clean", "plan ok\nimplement a\nreview ok\ntest ok", "1: ann | plan done | implement done | review passed | test passed | verified"},
		{"sent back", "plan ok\nimplement a\nreview error x\nimplement b\nreview ok\ntest ok",
			"1: ann | plan done | implement done | review back | implement<-review\n2: implement done | review passed | test passed | verified"},
		{"to the plan", "plan ok\nimplement a\nreview error x @design\nplan other\nimplement b\nreview ok\ntest ok",
			"1: ann | plan done | implement done | review back | plan<-review\n2: plan done | implement done | review passed | test passed | verified"},
		{"fault", "plan ok\nimplement a\nfault provider down\nreview ok\ntest ok", "1: ann | plan done | implement done | review fault | review passed | test passed | verified"},
		{"question", "plan which? | a | b\nhuman choose a\nplan ok\nimplement a", "1: ann | plan done | plan asks | ann | plan done | implement done | review working"},
		{"stopped", "plan ok\nhuman stop\nhuman resume", "1: ann | plan done | implement working | ann | ann"},
		{"moved", "plan ok\nimplement a\nnotice push abc", "1: ann | plan done | implement done | review dropped | ann | review working"},
		{"base", "plan ok\nimplement a\nreview ok\nnotice base_moved def\ntest ok\nupdate ok", "1: ann | plan done | implement done | review passed | test passed | main | update done | review working"},
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

// What other versions wrote is shown as far as it is understood: no event, with or
// without what it carries, breaks a page.
func TestOtherVersions(t *testing.T) {
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
	for i, of := range []pipeline.EventType{"module.started", pipeline.EventPhaseEntered, pipeline.EventBounce, pipeline.EventGateRequested, pipeline.EventDismissed, pipeline.EventAgentIteration, "x<script>"} {
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

// A long log is read page by page.
func TestEvents(t *testing.T) {
	s := newSite(t)
	p := play(t, pipeline.Task{Issue: 7, Title: "x"}, stuck)
	s.keep(t, busy(p.Events, 400), shop, 7, today)
	first := s.get(t, "/runs/1/events", 200)
	has(t, first, `id="event-1"`, `id="event-100"`, `-id="event-101"`, `href="?after=100"`, "agent.iteration (", `<summary><code>{&#34;start`, "&#34;repo&#34;: {\n")
	has(t, s.get(t, "/runs/1/events?after=100", 200), `-id="event-100"`, `id="event-101"`, `href="?after=200"`, "From the beginning")
	has(t, s.get(t, "/runs/1/events?type=loop.phase_bounce", 200), "loop.phase_bounce", "-Next</a>")
}

// What is hostile stays text; what is much is cut, and the page says how much more
// there is.
func TestHostileRun(t *testing.T) {
	const nasty = `</script><script>alert(1)</script><img src=x onerror=alert(2)>`
	s := newSite(t)
	p := play(t, pipeline.Task{Issue: 7, Title: nasty + strings.Repeat("w", 5000), URL: "javascript:alert(1)"}, "plan "+nasty+"\nimplement "+nasty+"\nreview ok\nhuman stop // "+nasty+"\nhuman resume")
	events := p.Events
	ref := *p.Run.Active
	report := &pipeline.TestReport{Head: p.Run.Head, Total: 1000, Failed: 1000}
	for i := range 1000 {
		f := pipeline.Failure{Test: fmt.Sprintf("Test%d%s", i, nasty), File: "a b/" + nasty + ".go", Line: 1, Error: nasty}
		f.Fingerprint = pipeline.FailureFingerprint(&f)
		report.Failures = append(report.Failures, f)
	}
	events = append(events, pipeline.Event{ID: "many", Type: pipeline.EventPhaseCompleted, Source: "agent:" + nasty, Time: p.Now, Data: pipeline.Data{Phase: &ref, Tests: report}})
	s.keep(t, events, shop, 7, today)
	page := s.get(t, "/runs/1", 200)
	for _, text := range []string{page, s.get(t, "/runs/1/events", 200), s.get(t, "/runs/1/tape", 200)} {
		has(t, text, "-<script>alert", "-<img src=x", "-href=\"javascript:", "&lt;script&gt;")
	}
	has(t, page, "And 900 more", "1000</b> open", "and 994 more")
	if len(page) > 1<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
}

// However much was found, the worst of what is open is shown, and the rest counted.
func TestManyFindings(t *testing.T) {
	run := &pipeline.Run{}
	for i := range 10_000 {
		is := pipeline.Issue{Finding: &pipeline.Finding{Severity: pipeline.SeverityInfo}, State: "fixed", FixedIn: "abc"}
		switch {
		case i >= 9990:
			is.Finding.Severity, is.State = pipeline.SeverityCritical, "open"
		case i >= 9950:
			is.State = "open"
		case i >= 9945:
			is.State, is.Back = "open", 1
		}
		run.Findings = append(run.Findings, is)
	}
	list := issues(run, nil)
	if len(list.Rows) != issuesShown || list.More != 9900 || list.Rows[0].Class != "again" || list.Rows[5].Severity != "critical" || list.Rows[15].Severity != "info" || list.Rows[99].Class != "fixed" {
		t.Errorf("%d rows, %d more, %+v", len(list.Rows), list.More, list.Rows)
	}
	if want := []issueCount{{"again", 5}, {"open", 50}, {"fixed", 9945}}; !slices.Equal(list.Count, want) {
		t.Errorf("counts %v, want %v", list.Count, want)
	}
}

// What people decided about a finding is shown with who and why.
func TestFates(t *testing.T) {
	s := newSite(t)
	p := play(t, pipeline.Task{Issue: 7, Title: "x"}, "plan ok\nimplement a\nreview error one, error two, warning three\nimplement b\nreview error two\nimplement c\nreview error one, error two")
	for _, is := range p.Run.Findings {
		if is.Finding.Message == "two" {
			p.Append(pipeline.SignalEvents([]pipeline.Signal{{Key: "k", Kind: pipeline.SignalDismissed, At: p.Now, Actor: pipeline.Actor{ID: 6, Login: "bob"}, Finding: is.Fingerprint(), Text: "wanted so"}})...)
		}
	}
	events := p.Events
	for i := range events {
		if v := events[i].Data.Review; v != nil {
			v.Summary = "fine\n\nHeld back: style in a.go:3, \"long\", because ann dismissed it (learning 4)"
		}
	}
	s.keep(t, events, shop, 7, today)
	has(t, s.get(t, "/runs/1", 200), "back again, after it was fixed", "dismissed by bob", "“wanted so”", "fixed in", "held back or lowered", "Held back: style in a.go:3", "dismissed a finding: “wanted so”")
}

// What was remembered is shown with what became of it.
func TestRunMemory(t *testing.T) {
	s := newSite(t)
	s.fill(t, "clean")
	ctx := t.Context()
	err := s.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		ids, err := s.db.SaveLearnings(ctx, tx, []pipeline.Learning{
			{Key: "a", Scope: "repo:acme/shop", Type: pipeline.LearningSemantic, Content: "Totals are in cents <b>", State: "active", Source: "human", Created: today, Touched: today},
			{Key: "b", Scope: "repo:acme/shop", Type: pipeline.LearningSemantic, Content: "Carts may be empty", State: "active", Source: "human", Created: today, Touched: today}})
		if err != nil {
			return err
		}
		if err := s.db.RecordRecall(ctx, tx, 1, pipeline.Recall{Phase: pipeline.PhaseReview, Iteration: 1, Role: "reviewer", Given: ids[:1], Used: ids[:1], Withheld: ids[1:]}, today); err != nil {
			return err
		}
		return s.db.RecordReflection(ctx, tx, 1, "r", pipeline.Reflection{Trigger: "run_ended", Learnings: ids[:1], Usage: pipeline.Usage{MicroUSD: 20_000}}, today)
	})
	if err != nil {
		t.Fatal(err)
	}
	has(t, s.get(t, "/runs/1", 200), "Totals are in cents &lt;b&gt;", "given and used", "Carts may be empty", "withheld, to measure its worth", "run ended: 1 learning kept", "$0.02")
}

var keyField = regexp.MustCompile(`name="key" value="([^"]+)"`)

// form is a form of the run's page, filled in.
func (s *site) form(t testing.TB, of string, fields ...string) string {
	t.Helper()
	m := keyField.FindStringSubmatch(s.get(t, of, 200))
	if m == nil {
		t.Fatalf("no form on %s", of)
	}
	v := url.Values{"key": {m[1]}}
	for i := 0; i < len(fields); i += 2 {
		v.Set(fields[i], fields[i+1])
	}
	return v.Encode()
}

// answers has Tell do what the engine does: ask the run and append.
func (s *site) answers(t testing.TB) {
	s.pages.Tell = func(ctx context.Context, id int64, key string, cmd pipeline.SlashCommand, by pipeline.Actor, via string) (string, error) {
		run, err := s.db.Load(ctx, id)
		if err != nil {
			return "", err
		}
		events, text := run.Answer(cmd, by, via, 0, today)
		for i := range events {
			events[i].ID = key + "/" + events[i].ID
		}
		s.told = append(s.told, fmt.Sprintf("%s %q %q by %s via %s: %d events", cmd.Name, cmd.Args, cmd.Text, by.Login, via, len(events)))
		return text, s.db.Append(ctx, run, events, nil)
	}
}

// add keeps a run that a script made and returns its number.
func (s *site) add(t testing.TB, script string) (id int64, at string) {
	t.Helper()
	s.runs++
	s.keep(t, play(t, pipeline.Task{Issue: s.runs, Title: "x"}, script).Events, shop, s.runs, today.Add(-time.Hour))
	return int64(s.runs), fmt.Sprintf("/runs/%d", s.runs)
}

// waiting is a site with a run that waits for an answer.
func waiting(t testing.TB) *site {
	s := newSite(t)
	s.answers(t)
	s.add(t, stuck)
	return s
}

const (
	asksPlan   = "plan which? | a | b"
	asksMoney  = "plan ok\ncost 20000000 1"
	asksReview = "plan ok\nimplement a\nreview human look at it"
	goesOn     = "plan ok\nimplement a"
	isStopped  = "plan ok\nimplement a\nhuman stop"
)

// Covers T7, V4, V5: every answer can be given on the page, and does what it does in
// a comment.
func TestAnswer(t *testing.T) {
	s := waiting(t)
	for _, c := range []struct{ name, script, choice, field, value, told, state string }{
		{"continue", stuck, "continue", "n", "3", `continue "3" "look at\nthe caller" by ann via dashboard: 1 events`, "running"},
		{"continue without a number", stuck, "continue", "n", "", `continue "" "look at\nthe caller"`, "running"},
		{"accept", stuck, "accept", "", "", `accept ""`, "accepted"},
		{"cancel", stuck, "cancel", "", "", `cancel ""`, "cancelled"},
		{"take over", stuck, "take-over", "", "", `take-over ""`, "stopped"},
		{"simplify", stuck, "simplify", "", "", `simplify "" "look at\nthe caller"`, "running"},
		{"reset", stuck, "reset", "", "", `reset ""`, "running"},
		{"retry", stuck, "retry", "", "", `retry ""`, "running"},
		{"choose", asksPlan, "choose b", "", "", `choose "b"`, "running"},
		{"choose in words", asksPlan, "choose", "", "", `choose "" "look at\nthe caller"`, "running"},
		{"raise", asksMoney, "raise", "usd", "30", `raise "30"`, "running"},
		{"approve", asksReview, "approve", "", "", `approve ""`, "running"},
		{"stop", goesOn, "stop", "", "", `stop ""`, "stopped"},
		{"cancel at any time", goesOn, "cancel", "", "", `cancel ""`, "cancelled"},
		{"resume", isStopped, "resume", "", "", `resume ""`, "running"},
		{"retry what was stopped", isStopped, "retry", "", "", `retry ""`, "running"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.told = nil
			id, at := s.add(t, c.script)
			form := s.form(t, at, "choice", c.choice, "text", "look at\r\nthe caller", c.field, c.value)
			if to := s.post(t, at+"/answer", form, 303); to != at {
				t.Errorf("leads to %q, want the run", to)
			}
			if len(s.told) != 1 || !strings.HasPrefix(s.told[0], c.told) {
				t.Errorf("told %q, want %q", s.told, c.told)
			}
			run, err := s.db.Load(t.Context(), id)
			if err != nil || string(run.State) != c.state {
				t.Errorf("the run is %s (%v), want %s", run.State, err, c.state)
			}
			// Sent again, as by a double click, it is the same answer.
			if s.post(t, at+"/answer", form, 303); len(s.told) != 1 {
				t.Errorf("told twice: %q", s.told)
			}
			if run.State.Ended() {
				has(t, s.get(t, "/runs/1", 200), `-action=at+"/answer"`)
			}
		})
	}
}

// What cannot be done is said, changes nothing, and loses no words.
func TestRefusedAnswer(t *testing.T) {
	const said = "my long <words>"
	s := waiting(t)
	for _, c := range []struct {
		name, script string
		fields       []string
		status       int
		want         []string
	}{
		{"no number", stuck, []string{"choice", "continue", "n", "many"}, 400, []string{"takes a number from 1 to 20", "my long &lt;words&gt;</textarea>", `value="many"`, `role="alert"`, `-data-live`}},
		{"too many", stuck, []string{"choice", "continue", "n", "21"}, 400, []string{"takes a number from 1 to 20"}},
		{"no money", asksMoney, []string{"choice", "raise", "usd", "-1"}, 400, []string{"takes dollars from 0.01", `value="-1"`, "my long &lt;words&gt;"}},
		{"no words", asksPlan, []string{"choice", "choose", "text", " "}, 400, []string{"takes words"}},
		{"not a choice here", stuck, []string{"choice", "approve"}, 400, []string{"is not one of the choices here"}},
		{"unknown", stuck, []string{"choice", "explode"}, 400, []string{"There is no choice"}},
		{"not for pages", stuck, []string{"choice", "history"}, 400, []string{"There is no choice"}},
		{"nothing", stuck, nil, 400, []string{"There is no choice"}},
		{"no key", stuck, []string{"choice", "accept", "key", ""}, 400, []string{"has no key"}},
		{"much", stuck, []string{"choice", "continue", "text", strings.Repeat("a", wordBytes+1)}, 400, []string{"at most 20000", "aaaa</textarea>"}},
		{"another gate", stuck, []string{"choice", "accept", "gate", "gate/9"}, 409, []string{"has never asked"}},
		{"no gate", goesOn, []string{"choice", "continue"}, 409, []string{"Nothing waits", "You wrote, and nobody was told", "my long &lt;words&gt;"}},
		{"ended", "plan ok\nhuman cancel", []string{"choice", "stop"}, 409, []string{"has ended", "my long &lt;words&gt;"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			id, at := s.add(t, c.script)
			before, err := s.db.Load(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			form := url.Values{"key": {"0123456789abcdef"}, "text": {said}}
			for i := 0; i < len(c.fields); i += 2 {
				form.Set(c.fields[i], c.fields[i+1])
			}
			page := s.send(t, at+"/answer", form.Encode(), c.status)
			has(t, page, c.want...)
			after, err := s.db.Load(t.Context(), id)
			if err != nil || after.Seq != before.Seq || len(s.told) != 0 {
				t.Errorf("something changed: %d events before, %d after, told %q, %v", before.Seq, after.Seq, s.told, err)
			}
		})
	}
}

// An answer to a question that somebody else has answered meanwhile changes nothing,
// and says who was faster.
func TestAnsweredMeanwhile(t *testing.T) {
	s := waiting(t)
	mine := s.form(t, "/runs/1", "choice", "continue", "gate", "gate/1", "text", "look at the caller")
	s.viewer = person{login: "bob"}
	s.post(t, "/runs/1/answer", s.form(t, "/runs/1", "choice", "take-over", "gate", "gate/1"), 303)
	s.viewer = person{login: "ann"}
	has(t, s.send(t, "/runs/1/answer", mine, 409), "was answered already: bob said `take-over`", "look at the caller")
	if len(s.told) != 1 {
		t.Errorf("told %q, want bob's answer alone", s.told)
	}
}

// Between looking and telling somebody may be faster: then the engine's word counts.
func TestAnsweredAtTheSameMoment(t *testing.T) {
	s := waiting(t)
	s.pages.Tell = func(context.Context, int64, string, pipeline.SlashCommand, pipeline.Actor, string) (string, error) {
		return "Thank you, but that question was answered already.", nil
	}
	w := s.reply(t, "/runs/1/answer", s.form(t, "/runs/1", "choice", "accept"))
	if cookie, _ := url.QueryUnescape(w.Header().Get("Set-Cookie")); w.Code != 303 || !strings.Contains(cookie, "answered already") {
		t.Errorf("%d, %s", w.Code, cookie)
	}
}

// An answer that cannot be passed on is not lost.
func TestAnswerThatFails(t *testing.T) {
	s := waiting(t)
	s.pages.Tell = func(context.Context, int64, string, pipeline.SlashCommand, pipeline.Actor, string) (string, error) {
		return "", errors.New("disk full")
	}
	has(t, s.send(t, "/runs/1/answer", s.form(t, "/runs/1", "choice", "continue", "text", "look at the caller"), 500), "send it again", "look at the caller</textarea>", "-disk full")
}

func FuzzReadAnswer(f *testing.F) {
	f.Add("choice=continue&n=3&key=0123456789abcdef&gate=gate/1&text=a%0D%0Ab")
	f.Add("choice=choose+a+b&key=01234567&choice=stop")
	f.Add("choice=+&text=%ff")
	f.Fuzz(func(t *testing.T, body string) {
		form, err := url.ParseQuery(body)
		if err != nil {
			return
		}
		cmd, key, wrong := readAnswer(form)
		if wrong == "" && (!slices.Contains(commandWords, cmd.Name) || !keyForm.MatchString(key) || len(cmd.Text) > wordBytes || strings.Contains(cmd.Text, "\r\n")) {
			t.Fatalf("readAnswer(%q) = %+v, %q", body, cmd, key)
		}
	})
}

// Who may only read changes nothing, and who does not see a run learns nothing of it.
func TestWhoMayAnswer(t *testing.T) {
	s := waiting(t)
	form := s.form(t, "/runs/1", "choice", "accept")
	s.viewer = person{login: "eve", repos: []string{"acme/shop"}, writes: []string{}}
	has(t, s.send(t, "/runs/1/answer", form, 403), "it takes write access to acme/shop")
	s.viewer = person{login: "eve", repos: []string{}}
	has(t, s.send(t, "/runs/1/answer", form, 404), "There is no run 1")
	s.get(t, "/runs/1/answer", 404)
	if len(s.told) != 0 {
		t.Errorf("told %q", s.told)
	}
	s.viewer = person{}
	s.get(t, "/runs/1/answer", 303)
	s.send(t, "/runs/1/answer", "key="+strings.Repeat("a", formBytes), 400)
}

// A tape is read page by page, a long answer part by part.
func TestTape(t *testing.T) {
	s := newSite(t)
	p := play(t, pipeline.Task{Issue: 7, Title: "x"}, goesOn)
	s.keep(t, busy(p.Events, 150), shop, 7, today)
	has(t, s.get(t, "/runs/1/tape", 200), "The tape of this run was deleted")
	ctx := t.Context()
	call := func(conversation string, step int, data string) {
		t.Helper()
		if err := s.db.TapeRecord(ctx, 1, "run/1/iter/1/implement/"+conversation, step, "c0ffee", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i <= callsShown; i++ {
		call("implementer", i, fmt.Sprintf("-- implementer 1/%d --\n@model sonnet-9\n@usage input=9000 cached=7000 write=0 output=400\nI read </script>.\n>>> read\npath: a.go\n>>> run\ncommand: go test\n", i))
	}
	call("implementer.reflection", 1, "-- implementer.reflection 1/1 --\nTake another way.\n")
	call("implementer", callsShown+1, "of another version")
	call("implementer", callsShown+2, "-- implementer 1/52 --\n"+strings.Repeat("é", answerShown))

	has(t, s.get(t, "/runs/1/tape", 200), "implementer, step 1<", `<td class="nowrap">implement 1</td>`, "sonnet-9", "9000, 400", "7000 cached", "$0.0120", "1.2s", "<code>read</code>, <code>run</code>", "1 to 50 of 53", `href="?after=50"`, `-I read`)
	has(t, s.get(t, "/runs/1/tape?after=50", 200), "implementer.reflection, step 1", "51 to 53 of 53", "-Next</a>", "65 KB")
	has(t, s.get(t, "/runs/1/tape?call=1", 200), "I read &lt;/script&gt;.", "c0ffee", "&gt;&gt;&gt; read", "$0.0120, 1.2s", "-Next part")
	has(t, s.get(t, "/runs/1/tape?call=51", 200), "Take another way", "-$0.0120")
	has(t, s.get(t, "/runs/1/tape?call=52", 200), "of another version")
	has(t, s.get(t, "/runs/1/tape?call=53", 200), "part 1 of 3", `href="?call=53&amp;part=2"`)
	has(t, s.get(t, "/runs/1/tape?call=53&part=3", 200), "part 3 of 3", "Part before")
	for _, q := range []string{"?call=54", "?call=53&part=4", "?call=53&part=0"} {
		s.get(t, "/runs/1/tape"+q, 404)
	}
	for _, q := range []string{"?call=x", "?after=-1", "?call=1&part=x"} {
		s.get(t, "/runs/1/tape"+q, 400)
	}
	empty := newSite(t)
	empty.keep(t, p.Events, shop, 7, today)
	has(t, empty.get(t, "/runs/1/tape", 200), "No model has answered yet")
}

// BenchmarkRun states what the page of a run of 1,000 events takes as a multiple of
// the bare select of its rows.
func BenchmarkRun(b *testing.B) {
	s := newSite(b)
	s.keep(b, busy(play(b, pipeline.Task{Issue: 7, Title: "x"}, stuck).Events, 1000), shop, 7, today)
	var bare, page time.Duration
	for b.Loop() {
		begin := time.Now()
		rows, err := s.db.Log(b.Context(), 1, 0, "", 5000)
		if err != nil || len(rows) < 900 {
			b.Fatal(len(rows), err)
		}
		middle := time.Now()
		s.get(b, "/runs/1", 200)
		bare, page = bare+middle.Sub(begin), page+time.Since(middle)
	}
	b.ReportMetric(float64(page)/float64(bare), "page/select")
	b.ReportMetric(float64(page.Microseconds())/float64(b.N)/1e3, "ms/page")
}
