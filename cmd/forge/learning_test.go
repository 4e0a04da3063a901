package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/github/githubtest"
	"forge/learn"
	"forge/learn/recall"
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/store"
)

// remarkTape is the greeter's with a remark of the reviewer that people may take
// up or leave; its implementer says that it heeds the first learning.
var remarkTape = strings.NewReplacer("findings: []", `findings:
- severity: warning
  category: style
  rule: quoting
  message: The greeting is not quoted for the shell
  file: greet.sh
  line: 1
  confidence: 0.8
  fix: {description: Quote it, replacement: 'echo "hello, $1"'}`,
	"-- implementer */2 --\n>>> submit\nsummary: Put a comma after hello", "-- implementer */2 --\n>>> submit\nsummary: Put a comma after hello, as [L1] says").Replace(greeterTape)

// remarked is an office whose first run is verified, and whose pull request has the
// reviewer's remark; it returns the remark's comment.
func remarked(t *testing.T, o officeOptions) (*office, *pipeline.Run, int64) {
	t.Helper()
	if o.tape == "" {
		o.tape = remarkTape
	}
	wire := o.wire
	o.wire = func(w *wireOptions) {
		w.withhold = -1
		if wire != nil {
			wire(w)
		}
	}
	of := newOffice(t, o)
	of.label("acme")
	run := of.untilState(pipeline.StateVerified)
	return of, run, of.remark(run.Published.Pull.Number)
}

func (of *office) must(err error) {
	of.t.Helper()
	if err != nil {
		of.t.Fatal(err)
	}
}

// remark returns the first comment on a pull request's diff.
func (of *office) remark(pull int) int64 {
	of.t.Helper()
	pulls, err := of.gh.Pulls(officeRepo)
	of.must(err)
	for _, p := range pulls {
		if p.Number == pull && len(p.Threads) > 0 {
			return p.Threads[0].Comments[0].ID
		}
	}
	of.t.Fatalf("nothing is said on the diff of #%d: %+v", pull, pulls)
	return 0
}

// again asks for the same once more, in an issue of its own.
func (of *office) again() *pipeline.Run {
	of.t.Helper()
	n, err := of.gh.As("acme").OpenIssue(officeRepo, "The greeting lacks its comma", "It still prints `hello Ann` where `hello, Ann` is right.")
	of.must(err)
	of.must(of.gh.As("acme").Label(officeRepo, n, "forge"))
	return of.until("of the second issue", func(r *pipeline.Run) bool { return r.Task.Issue == n && r.State == pipeline.StateVerified })
}

// event waits for an event of a run.
func (of *office) event(run int64, typ pipeline.EventType) pipeline.Event {
	of.t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		events, err := of.s.db.Events(of.t.Context(), run, 0)
		of.must(err)
		if i := slices.IndexFunc(events, func(e pipeline.Event) bool { return e.Type == typ }); i >= 0 {
			return events[i]
		}
		select {
		case <-tick.C:
		case <-deadline:
			of.t.Fatalf("run %d has no %s", run, typ)
		}
	}
}

// learnings waits until the memory is as it should be, and returns it.
func (of *office) learnings(what string, cond func([]pipeline.Learning) bool) []pipeline.Learning {
	of.t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := of.s.db.Learnings(of.t.Context(), store.MemoryFilter{})
		of.must(err)
		if cond(list) {
			return list
		}
		select {
		case <-tick.C:
		case <-deadline:
			of.t.Fatalf("it never remembers %s; it has %+v", what, list)
		}
	}
}

func some(list []pipeline.Learning) bool { return len(list) > 0 }

// Covers H1, H7, L5, lessons 3: who resolves a remark without a change dismisses it;
// the next run, which is told of it, does not say it again, and says so.
func TestDismissedIsHeldBack(t *testing.T) {
	of, first, comment := remarked(t, officeOptions{})
	of.must(of.gh.As("acme").Resolve(officeRepo, comment))
	of.outcome("pull_request_review_thread", fmt.Sprintf("run %d: dismissed F1 by acme", first.ID))
	e := of.event(first.ID, pipeline.EventDismissed)
	if s := e.Data.Signal; e.Source != "human:acme" || s.Actor.Login != "acme" || s.About == nil || s.About.Rule != "quoting" || s.Scope != "repo:"+officeRepo || s.Run != first.ID {
		t.Errorf("the event is %+v of %+v", e, s)
	}
	l := of.learnings("the dismissal", some)[0]
	if l.Source != learn.SourceDismissal || l.Type != pipeline.LearningSemantic || l.Author.Login != "acme" || l.ID != 1 {
		t.Errorf("it remembers %+v", l)
	}
	second := of.again()
	v := second.Iterations[0].Review
	if len(v.Findings) != 0 || len(v.Held) != 1 || !strings.HasPrefix(v.Held[0].String(), "style in greet.sh:1") || !strings.Contains(v.Held[0].Why, "acme dismissed it for this code on") || v.Held[0].Learning != 1 {
		t.Errorf("findings %+v, held back %+v", v.Findings, v.Held)
	}
	pulls, err := of.gh.Pulls(officeRepo)
	of.must(err)
	if p := pulls[len(pulls)-1]; p.Number != second.Published.Pull.Number || len(p.Threads) != 0 {
		t.Errorf("on #%d it says %+v", p.Number, p.Threads)
	}
	recalls, err := of.s.db.Recalls(t.Context(), second.ID)
	of.must(err)
	used := map[string]bool{}
	for _, r := range recalls {
		used[r.Role] = len(r.Used) == 1
		if diff := cmp.Diff([]int64{1}, r.Given); diff != "" {
			t.Errorf("%s was given (-want +got):\n%s", r.Role, diff)
		}
	}
	if diff := cmp.Diff(map[string]bool{"planner": false, "implementer": true, "reviewer": false}, used); diff != "" {
		t.Errorf("who used it (-want +got):\n%s", diff)
	}
	if text := of.event(second.ID, pipeline.EventRecalled).Data.Recall.Text; !strings.HasPrefix(text, "L1 (0.") || strings.Count(text, "\n") != 1 {
		t.Errorf("the prompt said %q", text)
	}
	of.event(second.ID, pipeline.EventUsed)
}

// Covers H1: words in the conversation dismiss, also as a command, and taking them
// back takes back what was learnt.
func TestDismissedInWords(t *testing.T) {
	of, run, comment := remarked(t, officeOptions{})
	of.must(of.gh.As("acme").Reply(officeRepo, comment, "/forge dismiss the name never has spaces"))
	of.event(run.ID, pipeline.EventDismissed) // one of the two deliveries of a reply
	l := of.learnings("the reason", some)[0]
	if !strings.HasSuffix(l.Content, "was dismissed: the name never has spaces") || l.Confidence != 0.7 {
		t.Errorf("it remembers %q at %v", l.Content, l.Confidence)
	}
	loaded, err := of.s.db.Load(t.Context(), run.ID)
	of.must(err)
	if s := loaded.Findings[0].State; s != "dismissed" {
		t.Errorf("the finding is %s", s)
	}
	pulls, err := of.gh.Pulls(officeRepo)
	of.must(err)
	said := pulls[0].Threads[0].Comments
	of.must(of.gh.As("acme").DeleteComment(officeRepo, said[len(said)-1].ID))
	of.outcome("pull_request_review_comment", "dismissed F1, taken back by acme")
	of.learnings("nothing", func(list []pipeline.Learning) bool { return len(list) == 0 })
}

// Covers H2, H6: a suggestion applied by GitHub's button makes what is known of it
// surer, and the run says by how much.
func TestSuggestionApplied(t *testing.T) {
	of, run, comment := remarked(t, officeOptions{})
	must := func(ctx context.Context, tx *store.Tx) error {
		_, err := of.s.db.SaveLearnings(ctx, tx, []pipeline.Learning{{Key: "test", Scope: "repo:" + officeRepo, Type: pipeline.LearningProcedural, Category: "style", Source: learn.SourceReflection,
			Content: "Quote what the shell expands.", Paths: []string{"greet.sh"}, Weight: 1, Base: 0.5, Created: run.Started.Add(-time.Hour), State: learn.Active}})
		return err
	}
	of.must(of.s.db.Tx(t.Context(), must))
	of.must(of.gh.As("acme").CommitSuggestion(officeRepo, comment))
	e := of.event(run.ID, pipeline.EventMore)
	if v := e.Data.Evidence; v == nil || v.Delta != 0.1 || v.Of != "test" || v.Actor.Login != "acme" {
		t.Errorf("the evidence is %+v", v)
	}
	if s := of.event(run.ID, pipeline.EventFixApplied).Data.Signal; !s.Button {
		t.Errorf("the signal is %+v", s)
	}
	// 0.1 for the suggestion, and (1 − 0.6) × 0.1 for the rate of one in one.
	of.learnings("the evidence", func(list []pipeline.Learning) bool { return len(list) == 1 && list[0].Confidence == 0.64 })
}

// Covers H5: what a person remarks where the review said nothing is remembered.
func TestGap(t *testing.T) {
	of := newOffice(t, officeOptions{})
	of.label("acme")
	run := of.untilState(pipeline.StateVerified)
	of.must(of.gh.As("acme").Review(officeRepo, run.Published.Pull.Number, githubtest.Review{Event: "COMMENT", Path: "greet.sh", Line: 1, Comment: "A missing name must be an error: check the arguments."}))
	of.event(run.ID, pipeline.EventCommentAdded)
	list := of.learnings("the gap", func(list []pipeline.Learning) bool { return len(list) == 2 })
	for _, l := range list {
		if l.Source != learn.SourceGap || l.Confidence != 0.7 || l.Category != "correctness" {
			t.Errorf("it remembers %+v", l)
		}
	}
}

// Covers H1: a thumb that points down, which no delivery tells, is found by looking.
func TestThumbsDown(t *testing.T) {
	of, run, comment := remarked(t, officeOptions{wire: func(o *wireOptions) { o.pollEvery = 20 * time.Millisecond }})
	of.must(of.gh.As("acme").React(officeRepo, comment, "-1"))
	if s := of.event(run.ID, pipeline.EventDismissed).Data.Signal; s.Actor.Login != "acme" {
		t.Errorf("the signal is %+v", s)
	}
	of.learnings("the dismissal", some)
	of.must(of.gh.As("acme").React(officeRepo, comment, "-1"))
	of.learnings("nothing", func(list []pipeline.Learning) bool { return len(list) == 0 })
}

// Covers L1, L2: a run that has ended is looked back at, and what it taught reaches
// the next one. Switched off, or with nobody to ask, it is not.
func TestReflection(t *testing.T) {
	const answer = "-- reflector */1 --\n@expect Look back at this run: the run ended: verified\n" +
		`{"learnings": [{"type": "procedural", "category": "style", "content": "Greetings are in greet.sh; run sh test.sh after changing one.", "confidence": 0.8, "tags": ["greeting"], "paths": ["greet.sh"]}]}` + "\n"
	of, run, _ := remarked(t, officeOptions{tape: remarkTape + answer})
	r := of.event(run.ID, pipeline.EventReflection).Data.Reflection
	if diff := cmp.Diff(&pipeline.Reflection{Trigger: "run_ended", Learnings: []int64{1}, Usage: pipeline.Usage{Calls: 1}}, r); diff != "" {
		t.Errorf("the reflection (-want +got):\n%s", diff)
	}
	stored, err := of.s.db.Reflections(t.Context(), run.ID)
	of.must(err)
	if len(stored) != 1 {
		t.Errorf("stored are %+v", stored)
	}
	second := of.again()
	if text := of.event(second.ID, pipeline.EventRecalled).Data.Recall.Text; !strings.Contains(text, "L1 (0.80, procedural, reflection) Greetings are in greet.sh") {
		t.Errorf("the second run is told %q", text)
	}
	for name, o := range map[string]officeOptions{"off": {tape: remarkTape + answer, env: map[string]string{"FORGE_REFLECTION": "false"}}, "nobody": {}} {
		t.Run(name, func(t *testing.T) {
			of, run, _ := remarked(t, o)
			of.must(of.s.memory.ended(t.Context(), run.ID))
			events, err := of.s.db.Events(t.Context(), run.ID, 0)
			of.must(err)
			if slices.ContainsFunc(events, func(e pipeline.Event) bool { return e.Type == pipeline.EventReflection }) {
				t.Error("somebody looked back at the run")
			}
		})
	}
}

// bare is a memory on a database of its own, with one run.
func bare(t *testing.T, models agent.Model) (*memory, *pipeline.Run) {
	t.Helper()
	db, err := store.Open(t.Context(), t.TempDir()+"/forge.db", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	m := &memory{db: db, log: slog.New(slog.DiscardHandler), now: func() time.Time { return at }, index: recall.New(), reflection: true}
	m.record = func(ctx context.Context, id int64, events []pipeline.Event, also func(context.Context, *store.Tx) error) error {
		run, err := db.Load(ctx, id)
		if err != nil {
			return err
		}
		for i := range events {
			events[i].Time = at
		}
		return db.Append(ctx, run, events, also)
	}
	if m.agent, err = agent.New(agent.Options{Models: map[string]string{"": "tape:x"}, Open: func(string) (agent.Model, error) { return models, nil }}); err != nil {
		t.Fatal(err)
	}
	repo := pipeline.Repo{ID: 1, Owner: "acme", Name: "greet", DefaultBranch: "main"}
	run, err := db.CreateRun(t.Context(), "k", pipeline.Start{Repo: repo, Task: pipeline.Task{Issue: 1, Title: "Change the greeting"}, Config: pipeline.DefaultConfig(), Base: "b", Branch: "forge/x"}, at, strings.Repeat("a", 32), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m, run
}

func types(t *testing.T, m *memory, run int64) (out []pipeline.EventType) {
	t.Helper()
	events, err := m.db.Events(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events[1:] {
		out = append(out, e.Type)
	}
	return out
}

// Covers L1, L4: what bounced twice is looked back at once, once, for the run that is
// going on; nonsense stores nothing, and says so.
func TestLookBackAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		answer    string
		learnings int
		refused   string
	}{
		"good":     {`{"learnings": [{"type": "semantic", "category": "style", "content": "A fact.", "confidence": 0.6}]}`, 1, ""},
		"nonsense": {"It went well.", 0, "not the JSON that was asked for"},
	} {
		t.Run(name, func(t *testing.T) {
			tape, err := agent.ReadTape([]byte("-- reflector 0/1 --\n@expect review sent the work back twice\n" + tc.answer + "\n"))
			if err != nil {
				t.Fatal(err)
			}
			m, run := bare(t, tape)
			bounce := func(n int) pipeline.Event {
				return pipeline.Event{ID: fmt.Sprint("b", n), Type: pipeline.EventBounce, Data: pipeline.Data{Bounce: &pipeline.Bounce{Number: n, Phase: pipeline.PhaseReview, Iteration: n, Count: 1}}}
			}
			for n := range 2 {
				m.lookBackNow(t.Context(), run.ID) // nothing asks for it yet
				if err := m.record(t.Context(), run.ID, []pipeline.Event{bounce(n + 1)}, nil); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // the second time it is done
				m.lookBackNow(t.Context(), run.ID)
			}
			if diff := cmp.Diff([]pipeline.EventType{pipeline.EventBounce, pipeline.EventBounce, pipeline.EventAgentIteration, pipeline.EventReflection}, types(t, m, run.ID)); diff != "" {
				t.Fatalf("events (-want +got):\n%s", diff)
			}
			list, err := m.db.Reflections(t.Context(), run.ID)
			if err != nil || len(list) != 1 || !list[0].Now || len(list[0].Learnings) != tc.learnings || !strings.Contains(list[0].Refused, tc.refused) || (list[0].Refused == "") != (tc.refused == "") {
				t.Errorf("reflections %+v, %v", list, err)
			}
			if m.index.Len() != tc.learnings {
				t.Errorf("%d learnings can be recalled at once, want %d", m.index.Len(), tc.learnings)
			}
		})
	}
}

// Covers H1: a crash between learning and writing it down leaves the rest to the next
// time, and nothing is done twice.
func TestLearnAfterCrash(t *testing.T) {
	m, run := bare(t, nil)
	at := m.now().Add(time.Hour)
	err := m.db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := m.db.SaveLearnings(ctx, tx, []pipeline.Learning{{Key: "test", Scope: "repo:acme/greet", Type: pipeline.LearningProcedural, Category: "style", Source: learn.SourceReflection,
			Content: "Quote what the shell expands.", Paths: []string{"greet.sh"}, Weight: 1, Base: 0.5, Created: m.now()}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s := pipeline.Signal{Key: "dismissed/1", Kind: pipeline.SignalDismissed, At: at, Actor: pipeline.Actor{ID: 1, Login: "ann"}, Weight: 1, Finding: "fp", File: "greet.sh", Text: "no",
		Scope: "repo:acme/greet", Run: run.ID, About: &pipeline.Finding{ID: "F1", Category: "style", Message: "Quote it for the shell"}}
	if err := m.record(t.Context(), run.ID, pipeline.SignalEvents([]pipeline.Signal{s}), nil); err != nil {
		t.Fatal(err)
	}
	crash := fmt.Errorf("crash")
	record := m.record
	m.record = func(context.Context, int64, []pipeline.Event, func(context.Context, *store.Tx) error) error {
		return crash
	}
	if err := m.learn(t.Context()); err == nil || !strings.Contains(err.Error(), "crash") {
		t.Fatalf("the crash is lost: %v", err)
	}
	m.record = record
	for range 2 {
		if err := m.learn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]pipeline.EventType{pipeline.EventDismissed, pipeline.EventLess}, types(t, m, run.ID)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if l, err := m.db.Learning(t.Context(), 1); err != nil || l.Confidence != 0.3 || l.Against != 1 {
		t.Errorf("the learning is %+v, %v; want 0.5 − 0.2, once", l, err)
	}
	if m.index.Len() != 2 {
		t.Errorf("%d learnings can be recalled, want 2", m.index.Len())
	}
}

// Covers L5: a phase that is carried out again recalls the same, whatever was learnt,
// forgotten or edited in between; what is withheld is not told.
func TestRecallIsTheSameAgain(t *testing.T) {
	m, run := bare(t, nil)
	m.withhold = 0.5
	db, at := m.db, m.now()
	save := func(n int) {
		err := db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			var list []pipeline.Learning
			for i := range n {
				list = append(list, pipeline.Learning{Key: fmt.Sprint(n, i), Scope: "repo:acme/greet", Type: pipeline.LearningSemantic, Source: "human", Weight: 1, Base: 0.8, Created: at,
					Content: fmt.Sprintf("The greeting number %d of %d\nis in file%d.go", i, n, i)})
			}
			_, err := db.SaveLearnings(ctx, tx, list)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	save(8)
	emit := func(ctx context.Context, events ...pipeline.Event) error {
		for i := range events {
			events[i].Time = at
		}
		return db.Append(ctx, run, events, nil)
	}
	tell := func() string {
		j := agent.Job{Run: run, Ref: pipeline.PhaseRef{Phase: pipeline.PhasePlan, Attempt: 1}}
		if err := m.recall(t.Context(), &j, "planner", emit); err != nil {
			t.Fatal(err)
		}
		return j.Learnings
	}
	once := tell()
	recalls, err := db.Recalls(t.Context(), run.ID)
	if err != nil || len(recalls) != 1 || len(recalls[0].Given) == 0 || len(recalls[0].Withheld) == 0 || len(recalls[0].Given)+len(recalls[0].Withheld) != 8 {
		t.Fatalf("recalled %+v, %v; want some of 8 given and some withheld", recalls, err)
	}
	if n := strings.Count(once, "\n"); n != len(recalls[0].Given) {
		t.Errorf("%d lines for %d learnings:\n%s", n, len(recalls[0].Given), once)
	}
	for _, id := range recalls[0].Withheld {
		if strings.Contains(once, fmt.Sprintf("L%d ", id)) {
			t.Errorf("%d was withheld, and told:\n%s", id, once)
		}
	}
	if err := db.ForgetLearning(t.Context(), nil, recalls[0].Given[0], pipeline.Actor{}, at, ""); err != nil {
		t.Fatal(err)
	}
	save(3)
	if again := tell(); again != once {
		t.Errorf("once it says\n%s\nthen\n%s", once, again)
	}
}

// Covers L5, V3: the tester is told what is known about tests, and of that alone;
// what it names counts as used.
func TestTesterRecalls(t *testing.T) {
	tape := strings.NewReplacer("-- tester */1 --\n", "-- tester */1 --\n@expect Greeting is flaky on slow machines\n@reject Quote what the shell expands\n",
		"analysis: It says hullo., confidence: 0.2", "analysis: 'It says hullo, which is not what [L1] is about.', confidence: 0.9, fix: {description: say hello}").Replace(failingTape)
	of := newOffice(t, officeOptions{tape: tape, wire: func(w *wireOptions) { w.withhold = -1 }})
	known := func(key, category, content string) pipeline.Learning {
		return pipeline.Learning{Key: key, Scope: "repo:" + officeRepo, Type: pipeline.LearningSemantic, Category: category, Source: learn.SourceReflection, Content: content,
			Weight: 1, Base: 0.8, Created: time.Now().Add(-time.Hour), State: learn.Active}
	}
	of.must(of.s.db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := of.s.db.SaveLearnings(ctx, tx, []pipeline.Learning{known("flaky", "", "The test of the greeting is flaky on slow machines: Greeting is flaky on slow machines"),
			known("shell", "style", "Quote what the shell expands in greet.sh when it greets"), known("how", "tests", "sh test.sh needs a shell that knows echo")})
		return err
	}))
	of.label("acme")
	run := of.untilState(pipeline.StateVerified)
	recalls, err := of.s.db.Recalls(t.Context(), run.ID)
	of.must(err)
	i := slices.IndexFunc(recalls, func(r pipeline.Recall) bool { return r.Role == "tester" })
	if i < 0 {
		t.Fatalf("the tester was given nothing: %+v", recalls)
	}
	r := recalls[i]
	slices.Sort(r.Given)
	if r.Phase != pipeline.PhaseTest || r.Iteration != 1 || !slices.Equal(r.Given, []int64{1, 3}) || !slices.Equal(r.Used, []int64{1}) {
		t.Errorf("the tester's recall is %+v", r)
	}
}

// A run is given a learning in all its phases or in none, so that what it is worth can
// be told; over runs and learnings it is chance, each by itself.
func TestSplit(t *testing.T) {
	m := &memory{withhold: 0.1}
	ids := make([]int64, 50)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	const runs = 800
	withheld, both := 0, 0
	for i := range runs {
		run := &pipeline.Run{ID: int64(i + 1), Trace: fmt.Sprintf("%032x", i)}
		given, w := m.split(run, ids)
		out := map[int64]bool{}
		for _, id := range w {
			out[id] = true
		}
		for _, id := range w {
			if out[id+1] {
				both++
			}
		}
		withheld += len(w)
		if len(given)+len(w) != len(ids) {
			t.Fatalf("%d given and %d withheld of %d", len(given), len(w), len(ids))
		}
		// Another phase recalls other learnings, in another order.
		other := slices.Clone(ids[10:40])
		slices.Reverse(other)
		given, _ = m.split(run, other)
		for _, id := range given {
			if out[id] {
				t.Fatalf("run %d is given learning %d in one phase and not in another", run.ID, id)
			}
		}
	}
	// 40,000 draws at 0.1, and 39,200 pairs of neighbours at 0.01: within some four
	// standard deviations.
	if share := float64(withheld) / (runs * 50); share < 0.094 || share > 0.106 {
		t.Errorf("%.4f of the learnings are withheld, want 0.1", share)
	}
	if share := float64(both) / (runs * 49); share < 0.008 || share > 0.012 {
		t.Errorf("%.4f of the neighbours are both withheld, want 0.01", share)
	}
}
