package pipeline_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/pipelinetest"
	"forge/pipeline/proof"
	"forge/pipeline/upstream"

	"pgregory.net/rapid"
)

// told are outcomes that make agents talk to each other, besides the usual ones.
var told = map[Phase][]string{
	PhaseDesign: {"design ok clash base is 640 px / base is 320 px", "design ok infeasible X1: it is too slow", "design ok clash a / b infeasible X1: no way"},
	PhaseImplement: {"implement it constraint high AC1: no sockets", "implement it constraint low plan: slow", "implement unable why",
		"implement half constraint blocking AC1: none here | high plan: nor there"},
	PhaseReview: {"review uncovered it is", "review missed AC1"},
	PhaseTest:   {"test TestA 0.2 against AC1", "test quality/size of architect developer ux", "test quality/size 0.9 of developer"},
	PhaseResolve: {"resolve fix so", "resolve design a; b", "resolve design one", "resolve clarify AC1: works well", "resolve clarify AC1: works",
		"resolve tighten AC1: works within 5 ms", "resolve clarify AC1: works within 9 ms", "resolve clarify AC1: may work", "resolve limit AC1",
		"resolve add Sum is wrong (Sum is wrong)", "resolve design a; AC1 is skipped", "resolve design b but it is less", "resolve add Sum is wrong (nowhere at all)", "resolve add It may be wrong (Sum is wrong)", "resolve limit AC7",
		"resolve settle ux: base is 320 px", "resolve settle architect: other words", "resolve settle ux: other words", "resolve limit X1", "resolve tighten X1: y", "fault agent x", "fault provider! x", "fault budget x", "away 60"},
}

func listening() config.Config {
	cfg := config.Default()
	cfg.Upstream.Enabled = true
	return cfg
}

// Covers U2, U3: whatever agents tell each other, break down or leave unanswered, and
// whatever people do, each feedback ends decided or with a human; no agent takes away what
// is asked for; nothing is verified with one open; and the log replays to the same run.
func TestFeedbackEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cfg := anyConfig(t)
		cfg.Upstream = config.Upstream{Enabled: true, Same: rapid.IntRange(0, 3).Draw(t, "same"), Max: rapid.IntRange(0, 4).Draw(t, "max")}
		p := pipelinetest.New(cfg, Task{Issue: 1, Title: "Sum is wrong", Body: "It is."})
		quiet, limit := 0, 0
		for range rapid.IntRange(1, 120).Draw(t, "length") {
			ref, working := p.Step()
			checkFeedback(t, &p.Run)
			if p.Run.State.Ended() {
				break
			}
			if !working || rapid.IntRange(0, 9).Draw(t, "interrupt") == 0 {
				line := rapid.SampledFrom(append(interruptions, "human choose a", "human choose b")).Draw(t, "interruption")
				if strings.HasSuffix(line, "%d") {
					continue
				}
				verb, rest, _ := cut(line)
				if verb != "cost" && !p.Human(verb, rest) {
					p.Outcome(verb, rest, ref, true)
				}
				quiet = 0
				continue
			}
			all := append(told[ref.Phase], outcomes[ref.Phase]...)
			verb, rest, _ := cut(rapid.SampledFrom(all).Draw(t, "outcome"))
			if !p.Outcome(verb, rest, ref, true) {
				t.Fatalf("outcome %s %s does not fit %+v", verb, rest, ref)
			}
			// Besides the loop's own: answers, each with its faults, and the work after them.
			limit = (p.Run.MaxIterations()+1)*3*(cfg.Loop.Faults+2) + 2*(cfg.Upstream.Most()+1)*(cfg.Loop.Faults+2)
			if quiet++; quiet > limit {
				t.Fatalf("still running after %d phases that nobody interfered with:\n%s", quiet, p.Trace.String())
			}
		}
		checkVerified(t, &p.Run)
		checkReplay(t, p.Events, &p.Run)
	})
}

func checkFeedback(t *rapid.T, r *Run) {
	t.Helper()
	criteria := []upstream.Item{{ID: "AC1"}}
	for i := range r.Upstream {
		f := &r.Upstream[i]
		if f.State.Open() && i < len(r.Upstream)-1 {
			t.Fatalf("%s is %s, and %s came after it", f.ID, f.State, r.Upstream[i+1].ID)
		}
		if d := f.Decision; d != nil && f.State == upstream.Resolved && !d.Human {
			if d.Choice == upstream.Add && d.Quote != "Sum is wrong" {
				t.Fatalf("%s was decided by an agent, and nobody asks for it: %+v", f.ID, d)
			}
			if len(criteria) > 0 {
				criteria[0].Text = f.Was
			}
			was := upstream.Spec{Criteria: criteria, Says: func(text string) bool { return text == "Sum is wrong" }}
			if why := was.Weaker(d) + d.Unconfirmed(); why != "" {
				t.Fatalf("%s was decided by an agent, and %s: %+v", f.ID, why, d)
			}
		}
		if d := f.Decision; d != nil && f.State == upstream.Resolved && d.Human && d.Choice == upstream.Limit {
			criteria = nil // a human leaves it out, so that steps may say so
		}
	}
	f := r.Feedback()
	switch {
	case f == nil:
	case r.State == StateVerified:
		t.Fatalf("verified with %s open: %s", f.ID, f.State)
	case r.State == StateRunning && r.Active == nil:
		t.Fatalf("%s is %s, and nothing happens", f.ID, f.State)
	}
}

// Covers U2: an event that comes at a wrong time, or of another feedback, changes nothing;
// with one open, no event verifies the run.
func TestFeedbackOutOfTurn(t *testing.T) {
	t.Parallel()
	p := pipelinetest.New(listening(), Task{Issue: 1, Title: "x"})
	if err := p.Play("plan ok\nimplement half constraint blocking AC1: no sockets"); err != nil {
		t.Fatal(err)
	}
	up := p.Run.Feedback()
	if up == nil || up.State != upstream.Resolving {
		t.Fatalf("the feedback: %+v", up)
	}
	for _, e := range []Event{
		{Type: EventUpstreamRaised, Data: Data{Upstream: &upstream.Feedback{ID: "up/2"}}},
		{Type: EventUpstreamNotified, Data: Data{Upstream: &upstream.Feedback{ID: "up/1"}}},
		{Type: EventUpstreamTimedOut, Data: Data{Upstream: &upstream.Feedback{ID: "up/2"}}},
		{Type: EventUpstreamResolved, Data: Data{Upstream: &upstream.Feedback{ID: "up/1", Decision: &upstream.Reply{Choice: upstream.Limit, Criterion: "AC1"}}}},
		{Type: EventUpstreamResolved},
		{Type: EventRunVerified},
	} {
		p.Append(e)
		if f := p.Run.Feedback(); f == nil || f.State != upstream.Resolving || len(p.Run.Upstream) != 1 || p.Run.State != StateRunning {
			t.Errorf("after %s: %+v, the run is %s", e.Type, f, p.Run.State)
		}
	}
}

// Covers U2: the time limit is the setting's, to the second, and counts only while the
// owner's provider is away; a late answer changes nothing.
func TestFeedbackTimeLimit(t *testing.T) {
	t.Parallel()
	p := pipelinetest.New(listening(), Task{Issue: 1, Title: "x"})
	p.Run.Config.Upstream.TimeoutMinutes = 7
	if err := p.Play("plan ok\nimplement half constraint blocking AC1: no sockets"); err != nil {
		t.Fatal(err)
	}
	var order []EventType
	for _, e := range p.Events {
		if e.Type == EventUpstreamRaised || e.Type == EventUpstreamNotified || e.Type == EventPublishCompleted && len(order) == 1 {
			order = append(order, e.Type)
		}
	}
	if !slices.Equal(order, []EventType{EventUpstreamRaised, EventPublishCompleted, EventUpstreamNotified}) {
		t.Errorf("people are not shown it first: %v", order)
	}
	if at, _ := p.Run.Alarm(); !at.IsZero() {
		t.Errorf("while the owner can work, a limit fires at %v", at)
	}
	taken, ref := p.Run.Feedback().Taken, *p.Run.Active
	if err := p.Play("away 60"); err != nil {
		t.Fatal(err)
	}
	at, events := p.Run.Alarm()
	if at.Sub(taken) != 7*time.Minute || len(events) != 1 || events[0].Type != EventUpstreamTimedOut {
		t.Fatalf("after %v: %+v", at.Sub(taken), events)
	}
	p.Append(events...)
	p.Append(Event{Type: EventPhaseCompleted, Data: Data{Phase: &ref, Upstream: &upstream.Feedback{Reply: pipelinetest.Reply("limit AC1")}}})
	if f := p.Run.Feedback(); f.State != upstream.Escalating || f.Reply != nil {
		t.Errorf("after a late answer: %+v", f)
	}
}

// Covers U3: an owner does not answer in a human's name.
func TestFeedbackAnsweredAsHuman(t *testing.T) {
	t.Parallel()
	p := pipelinetest.New(listening(), Task{Issue: 1, Title: "x"})
	if err := p.Play("plan ok\nimplement half constraint blocking AC1: no sockets"); err != nil {
		t.Fatal(err)
	}
	reply := &upstream.Reply{Choice: upstream.Fix, Why: "go on", By: "ann", Human: true}
	p.Append(Event{Type: EventPhaseCompleted, Data: Data{Phase: p.Run.Active, Upstream: &upstream.Feedback{Reply: reply}}})
	p.Step()
	if d := p.Run.Upstream[0].Decision; d == nil || d.Human || d.By != upstream.Planner {
		t.Errorf("decided by %+v", d)
	}
}

// Covers U3: a letter is a decision, so that words that may turn it around are asked about,
// as those of other commands that let something pass; a question is no decision. Words of
// one's own go to the implementer as they are.
func TestChoose(t *testing.T) {
	t.Parallel()
	const taken = ""
	for _, c := range []struct{ args, text, via, want string }{
		{"a", "", "comment", taken},
		{"A.", "", "comment", taken},
		{"a", "Good enough for the demo.", "comment", taken},
		{"a", "Good enough for the demo.", "cli", taken},
		{"", "a\nGood enough for the demo.", "comment", taken},
		{"a", "What if somebody objects?", "comment", "may take it back"},
		{"a", "Wirklich?", "cli", "may take it back"},
		{"", "a\nOr not?", "comment", "may take it back"},
		{"a", "> not yet?\n\nFine.", "comment", taken}, // quoted
		{"a", "Or b?", "dashboard", taken},             // pressed by whoever means it
		{"a?", "", "comment", "a question decides nothing"},
		{"a", "Or is b better?", "comment", "may take it back"},
		{"is b better?", "", "comment", "a question decides nothing"},
		{"a，", "", "comment", "one letter alone"},
		{"a, please", "", "comment", "one letter alone"},
		{"(a) and then b", "", "comment", "one letter alone"},
		{"q", "", "comment", "one letter alone"},
		{"a good enough", "", "cli", "with words behind `--words`"},
		{"option a", "", "comment", "one letter alone"},
		{"not a", "", "cli", "one letter alone"},
		{"I take (A)", "", "dashboard", "one letter alone"},
		{"option x", "", "comment", taken}, // none of the letters: words
		{"take a list", "", "comment", taken},
		{"use no sockets, only polling", "but not every second", "comment", taken},
	} {
		p := pipelinetest.New(listening(), Task{Issue: 1, Title: "x"})
		if err := p.Play("plan ok\nimplement half constraint blocking AC1: no sockets\nresolve limit AC1"); err != nil {
			t.Fatal(err)
		}
		events, said := p.Run.Answer(command.Line{Name: "choose", Args: c.args, Text: c.text}, Actor{Login: "ann"}, c.via, 0, p.Now)
		if (len(events) > 0) != (c.want == taken) || !strings.Contains(said, c.want) {
			t.Errorf("choose %q %q by %s: %d events, %q, want %q", c.args, c.text, c.via, len(events), said, c.want)
		}
	}
}

// Covers U2, U6: a gate that others than the implementer answer for is asked of each of them by
// itself, one after the other, before the work goes back; it is measured again when the work
// has changed, and at the second miss people are asked. Without feedback it just goes back.
func TestGateOfOwners(t *testing.T) {
	t.Parallel()
	begin := "plan ok\nimplement it\nreview ok\n"
	for _, c := range []struct{ track, script, asked, last string }{
		{"", begin + "test quality/size of architect developer\nresolve fix drop the table", "planner", "implement"},
		{"", begin + "test quality/size of architect ux product\nresolve fix drop the table", "planner", "implement"},
		{"", begin + "test quality/size 0.9 of developer qa", "", "implement"},
		{"full", "analyse ok\ndesign ok\n" + begin + "test quality/size of product architect developer\nresolve fix a\nresolve fix b", "product architect", "implement"},
		{"full", "analyse ok\ndesign ok\n" + begin + "test quality/size of product architect developer\nresolve fix a", "product architect", "resolve"},
		{"", begin + "test quality/size of architect\nresolve fix a\nimplement it\nreview ok\ntest quality/size of architect", "planner planner", ""},
		{"", begin + "test quality/size of architect\nresolve fix a\nimplement it\nreview ok\ntest ok", "planner", ""},
		{"", begin + "test TestA 0.2 against AC1\nresolve fix the test is of the old way", "planner", "implement"},
		{"", begin + "test TestA 0.2 against AC1\nresolve limit AC1\nhuman choose a", "planner", "implement"},
	} {
		p, _ := entered(t, c.track, c.script, func(cfg *config.Config) { cfg.Upstream.Enabled = true })
		var asked []string
		for _, f := range p.Run.Upstream {
			asked = append(asked, f.To)
		}
		last := ""
		if p.Run.Active != nil {
			last = string(p.Run.Active.Phase)
		}
		if strings.Join(asked, " ") != c.asked || last != c.last {
			t.Errorf("%q: asked %v, then %s; want %s, then %s; %+v", c.script, asked, last, c.asked, c.last, p.Run.Upstream)
		}
	}
	p, _ := entered(t, "", begin+"test quality/size 0.9 of architect developer")
	if len(p.Run.Upstream) > 0 || p.Run.Active.Phase != PhaseImplement {
		t.Errorf("with feedback off: %+v, %+v", p.Run.Upstream, p.Run.Active)
	}
}

// Covers U3: a criterion may become the sentence of the task that it was written for; not
// another sentence of it, a part of one, nor one that names a criterion or only holds a word of
// the quote, and not where nobody has said what it was written for.
func TestClarifiedByTheTask(t *testing.T) {
	t.Parallel()
	body := "The list can be exported as CSV, but not by guests. Guests need no export. The list can be exported as CSV never. AC1 holds: the list can be exported."
	for _, c := range []struct {
		quote, text string
		free        bool
	}{
		{"The list can be exported as CSV", "The list can be exported as CSV, but not by guests", true},
		{"list can be exported as CSV, but not by guests", "The list can be exported as CSV, but not by guests.", true},
		{"The list can be exported as CSV", "The list can be exported as CSV", false},
		{"The list can be exported as CSV", "Guests need no export", false},
		{"no export", "Guests need no export", false},
		{"export", "Guests need no export", false},
		{"the list can be exported", "AC1 holds: the list can be exported", false},
		{"", "The list can be exported as CSV, but not by guests", false},
	} {
		p := pipelinetest.New(listening(), Task{Issue: 1, Title: "Export", Body: body})
		if err := p.Play("plan ok\nimplement half constraint blocking AC1: guests see nothing"); err != nil {
			t.Fatal(err)
		}
		p.Run.Plan.Criteria[0].For = "REQ1"
		p.Run.Plan.Requirements = []proof.Requirement{{ID: "REQ1", Quote: c.quote}}
		d := upstream.Reply{Choice: upstream.Clarify, Criterion: "AC1", Text: c.text}
		if why := p.Run.Asks().Weaker(&d); (why == "") != c.free {
			t.Errorf("%q by %q: %q, want without a human: %v", c.text, c.quote, why, c.free)
		}
	}
}
