package memory_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/github/githubtest"
	"forge/pipeline"
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
	"-- implementer */2 --\n>>> submit\nsummary: Put a comma after hello", "-- implementer */2 --\n>>> submit\nsummary: Put a comma after hello, as [L1] says").Replace(servertest.GreeterTape)

// remarked is a server whose first run is verified, and whose pull request has the
// reviewer's remark; it returns the remark's comment.
func remarked(t *testing.T, o servertest.Options) (*servertest.Server, *pipeline.Run, int64) {
	t.Helper()
	if o.Tape == "" {
		o.Tape = remarkTape
	}
	wire := o.Wire
	o.Wire = func(w *server.Options) {
		w.Withhold, w.Config.Run.Learn.Holdout = -1, 0
		if wire != nil {
			wire(w)
		}
	}
	ts := servertest.New(t, o)
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	return ts, run, remark(ts, run.Published.Pull.Number)
}

// remark returns the first comment on a pull request's diff.
func remark(ts *servertest.Server, pull int) int64 {
	ts.T.Helper()
	pulls, err := ts.GitHub.Pulls(servertest.Repo)
	ts.Must(err)
	for _, p := range pulls {
		if p.Number == pull && len(p.Threads) > 0 {
			return p.Threads[0].Comments[0].ID
		}
	}
	ts.T.Fatalf("nothing is said on the diff of #%d: %+v", pull, pulls)
	return 0
}

func some(list []pipeline.Learning) bool { return len(list) > 0 }

// Covers H1, H7, L5, lessons 3: who resolves a remark without a change dismisses it;
// the next run, which is told of it, does not say it again, and says so.
func TestDismissedIsHeldBack(t *testing.T) {
	ts, first, comment := remarked(t, servertest.Options{})
	ts.Must(ts.GitHub.As("acme").Resolve(servertest.Repo, comment))
	ts.Outcome("pull_request_review_thread", fmt.Sprintf("run %d: dismissed F1 by acme", first.ID))
	e := ts.Event(first.ID, pipeline.EventDismissed)
	if s := e.Data.Signal; e.Source != "human:acme" || s.Actor.Login != "acme" || s.About == nil || s.About.Rule != "quoting" || s.Scope != "repo:"+servertest.Repo || s.Run != first.ID {
		t.Errorf("the event is %+v of %+v", e, s)
	}
	l := ts.Learnings("the dismissal", some)[0]
	if l.Source != pipeline.SourceDismissal || l.Type != pipeline.LearningSemantic || l.Author.Login != "acme" || l.ID != 1 {
		t.Errorf("it remembers %+v", l)
	}
	second := ts.Again()
	v := second.Iterations[0].Review
	if len(v.Findings) != 0 || len(v.Suppressed) != 1 || !strings.HasPrefix(v.Suppressed[0].String(), "style in greet.sh:1") ||
		!strings.Contains(v.Suppressed[0].Why, "acme dismissed it for this code on") || v.Suppressed[0].Learning != 1 {
		t.Errorf("findings %+v, held back %+v", v.Findings, v.Suppressed)
	}
	pulls, err := ts.GitHub.Pulls(servertest.Repo)
	ts.Must(err)
	if p := pulls[len(pulls)-1]; p.Number != second.Published.Pull.Number || len(p.Threads) != 0 {
		t.Errorf("on #%d it says %+v", p.Number, p.Threads)
	}
	recalls, err := ts.Forge.DB.Recalls(t.Context(), second.ID)
	ts.Must(err)
	used := map[string]bool{}
	for _, r := range recalls {
		used[string(r.Role)] = len(r.Used) == 1
		if diff := cmp.Diff([]int64{1}, r.Given); diff != "" {
			t.Errorf("%s was given (-want +got):\n%s", r.Role, diff)
		}
	}
	if diff := cmp.Diff(map[string]bool{"planner": false, "implementer": true, "reviewer": false}, used); diff != "" {
		t.Errorf("who used it (-want +got):\n%s", diff)
	}
	if text := ts.Event(second.ID, pipeline.EventRecalled).Data.Recall.Text; !strings.HasPrefix(text, "L1 (0.") || strings.Count(text, "\n") != 1 {
		t.Errorf("the prompt said %q", text)
	}
	ts.Event(second.ID, pipeline.EventUsed)
}

// Covers H1: words in the conversation dismiss, also as a command, and taking them
// back takes back what was learnt.
func TestDismissedInWords(t *testing.T) {
	ts, run, comment := remarked(t, servertest.Options{})
	ts.Must(ts.GitHub.As("acme").Reply(servertest.Repo, comment, "/forge dismiss the name never has spaces"))
	ts.Event(run.ID, pipeline.EventDismissed) // one of the two deliveries of a reply
	l := ts.Learnings("the reason", some)[0]
	if !strings.HasSuffix(l.Content, "was dismissed: the name never has spaces") || l.Confidence != 0.7 {
		t.Errorf("it remembers %q at %v", l.Content, l.Confidence)
	}
	loaded, err := ts.Forge.DB.Load(t.Context(), run.ID)
	ts.Must(err)
	if s := loaded.Findings[0].State; s != "dismissed" {
		t.Errorf("the finding is %s", s)
	}
	pulls, err := ts.GitHub.Pulls(servertest.Repo)
	ts.Must(err)
	said := pulls[0].Threads[0].Comments
	own := slices.IndexFunc(said, func(c githubtest.Comment) bool { return c.Author == "acme" })
	ts.Must(ts.GitHub.As("acme").DeleteComment(servertest.Repo, said[own].ID))
	ts.Outcome("pull_request_review_comment", "dismissed F1, taken back by acme")
	ts.Learnings("nothing", func(list []pipeline.Learning) bool { return len(list) == 0 })
}

// Covers H1, V2: no words let an error pass: a refusal is answered, what nobody can read is
// not. A command does.
func TestErrorRefusedInWords(t *testing.T) {
	t.Parallel()
	tape := strings.Replace(servertest.GreeterTape, "-- quality */1 --", `-- quality 1/1 --
>>> submit
summary: One fault.
risk: 50
findings: [{severity: error, category: correctness, message: The name is split at spaces, file: greet.sh, line: 1, confidence: 0.9}]
-- quality */1 --`, 1)
	ts := servertest.New(t, servertest.Options{Tape: tape, Wire: func(o *server.Options) { o.Config.Run.Loop.MaxIterations = 1 }})
	ts.Label("acme")
	run := ts.Until("asks on its pull request", func(r *pipeline.Run) bool {
		return r.State == pipeline.StateWaiting && r.Published.Pull != nil && r.Published.Rev == r.Rev
	})
	comment := remark(ts, run.Published.Pull.Number)
	ts.Must(ts.GitHub.As("acme").Reply(servertest.Repo, comment, "Ann says it is by design. I do not see why."))
	ts.Event(run.ID, pipeline.EventAnswered)
	if now, err := ts.Forge.DB.Load(t.Context(), run.ID); err != nil || now.State != pipeline.StateWaiting || now.Findings[0].State != pipeline.IssueOpen {
		t.Fatalf("the run is %s, the error %s, %v", now.State, now.Findings[0].State, err)
	}
	ts.Must(ts.GitHub.As("acme").Reply(servertest.Repo, comment, "By design."))
	servertest.Eventually(t, func() bool {
		events, err := ts.Forge.DB.Events(t.Context(), run.ID, 0)
		ts.Must(err)
		return slices.ContainsFunc(events, func(e pipeline.Event) bool {
			return e.Type == pipeline.EventAnswered && e.Data.Signal.Text == "By design."
		})
	}, func() string { return "the second answer is not read" })
	ts.Thread(comment, "it still counts")
	if now, err := ts.Forge.DB.Load(t.Context(), run.ID); err != nil || now.State != pipeline.StateWaiting || now.Findings[0].State != pipeline.IssueOpen {
		t.Fatalf("the run is %s, the error %s, %v", now.State, now.Findings[0].State, err)
	}
	ts.Must(ts.GitHub.As("acme").Reply(servertest.Repo, comment, "/forge dismiss by design"))
	ts.UntilState(pipeline.StateVerified)
}

// Covers H2, H6: a suggestion applied by GitHub's button makes what is known of it
// surer, and the run says by how much.
func TestSuggestionApplied(t *testing.T) {
	ts, run, comment := remarked(t, servertest.Options{})
	must := func(ctx context.Context, tx *store.Tx) error {
		_, err := ts.Forge.DB.SaveLearnings(ctx, tx, []pipeline.Learning{{Key: "test", Scope: "repo:" + servertest.Repo, Type: pipeline.LearningProcedural, Category: "style", Source: pipeline.SourceReflection,
			Content: "Quote what the shell expands.", Paths: []string{"greet.sh"}, Weight: 1, Base: 0.5, Created: run.Started.Add(-time.Hour), State: pipeline.LearningActive}})
		return err
	}
	ts.Must(ts.Forge.DB.Tx(t.Context(), must))
	ts.Must(ts.GitHub.As("acme").CommitSuggestion(servertest.Repo, comment))
	e := ts.Event(run.ID, pipeline.EventMore)
	if v := e.Data.Evidence; v == nil || v.Delta != 0.1 || v.Of != "test" || v.Actor.Login != "acme" {
		t.Errorf("the evidence is %+v", v)
	}
	if s := ts.Event(run.ID, pipeline.EventFixApplied).Data.Signal; !s.Button {
		t.Errorf("the signal is %+v", s)
	}
	// 0.1 for the suggestion, and (1 − 0.6) × 0.1 for the rate of one in one.
	ts.Learnings("the evidence", func(list []pipeline.Learning) bool { return len(list) == 1 && list[0].Confidence == 0.64 })
}

// Covers H5: what a person remarks where the review said nothing is remembered.
func TestGap(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	ts.Must(ts.GitHub.As("acme").Review(servertest.Repo, run.Published.Pull.Number, githubtest.Review{Event: "COMMENT", Path: "greet.sh", Line: 1, Comment: "A missing name must be an error: check the arguments."}))
	ts.Event(run.ID, pipeline.EventCommentAdded)
	list := ts.Learnings("the gap", func(list []pipeline.Learning) bool { return len(list) == 2 })
	for _, l := range list {
		if l.Source != pipeline.SourceGap || l.Confidence != 0.7 || l.Category != "correctness" {
			t.Errorf("it remembers %+v", l)
		}
	}
}

// readerTape has a model that reads an answer.
func readerTape(meaning, words string) string {
	return remarkTape + "-- reader */1 --\n@expect The greeting is not quoted for the shell\n" +
		fmt.Sprintf("@expect %s\n{\"meaning\": %q, \"words\": %q}\n", words, meaning, words)
}

// Covers H1, H7, lessons 28: an answer in words of no table is an event, and read by a
// model once. What it reads as a refusal holds for code that was merged as it stood, and
// the run itself stays as it is.
func TestAnswerReadAsRefusal(t *testing.T) {
	t.Parallel()
	ts, run, comment := remarked(t, servertest.Options{Tape: readerTape("refuses", "names come from our own list"),
		Wire: func(o *server.Options) { o.PollEvery = 20 * time.Millisecond }})
	ts.Must(ts.GitHub.As("acme").Reply(servertest.Repo, comment, "Hm, names come from our own list, so where's the harm."))
	if s := ts.Event(run.ID, pipeline.EventAnswered).Data.Signal; s.Actor.Login != "acme" || s.About == nil || s.Weight != 1 {
		t.Errorf("the answer is %+v", s)
	}
	read := ts.Event(run.ID, pipeline.EventAnswerRead)
	if s := read.Data.Signal; read.Source != "agent:reader" || s.Reading.Meaning != "refuses" || s.Weight != 0 {
		t.Errorf("what was read is %+v of %+v", read, s)
	}
	ts.Must(ts.GitHub.As("acme").Merge(servertest.Repo, run.Published.Pull.Number))
	if s := ts.Event(run.ID, pipeline.EventRefused).Data.Signal; s.Actor.Login != "acme" || s.Reading == nil {
		t.Errorf("the refusal is %+v", s)
	}
	l := ts.Learnings("the refusal", some)[0]
	if l.Source != pipeline.SourceDismissal || l.Confidence != 0.5 || !strings.Contains(l.Content, "as a model reads this answer: Hm, names come from") {
		t.Errorf("it remembers %q at %v", l.Content, l.Confidence)
	}
	loaded, err := ts.Forge.DB.Load(t.Context(), run.ID)
	ts.Must(err)
	if s := loaded.Findings[0].State; s == pipeline.IssueDismissed {
		t.Errorf("the finding is %s", s)
	}
	events, err := ts.Forge.DB.Events(t.Context(), run.ID, 0)
	ts.Must(err)
	if n := len(slices.DeleteFunc(events, func(e pipeline.Event) bool { return e.Type != pipeline.EventAnswerRead })); n != 1 {
		t.Errorf("it was read %d times", n)
	}
}

// Covers L1, L2: a run that has ended is looked back at, and what it taught reaches
// the next one. Switched off, or with nobody to ask, it is not.
func TestReflection(t *testing.T) {
	t.Parallel()
	const answer = "-- reflector */1 --\n@expect Look back at this run: the run ended: verified\n" +
		`{"learnings": [{"type": "procedural", "category": "style", "content": "Greetings are in greet.sh; run sh test.sh after changing one.", "confidence": 0.8, "tags": ["greeting"], "paths": ["greet.sh"]}]}` + "\n"
	ts, run, _ := remarked(t, servertest.Options{Tape: remarkTape + answer})
	r := ts.Event(run.ID, pipeline.EventReflection).Data.Reflection
	if diff := cmp.Diff(&pipeline.Reflection{Trigger: "run_ended", Learnings: []int64{1}, Usage: pipeline.Usage{Calls: 1}}, r); diff != "" {
		t.Errorf("the reflection (-want +got):\n%s", diff)
	}
	if _, err := ts.Forge.Gateway.File(t.Context(), run.Repo, run.Head, "greet.sh"); err != nil {
		t.Errorf("what a learning cites cannot be read: %v", err)
	}
	stored, err := ts.Forge.DB.Reflections(t.Context(), run.ID)
	ts.Must(err)
	if len(stored) != 1 {
		t.Errorf("stored are %+v", stored)
	}
	second := ts.Again()
	if text := ts.Event(second.ID, pipeline.EventRecalled).Data.Recall.Text; !strings.Contains(text, "L1 (0.50, procedural, reflection) Greetings are in greet.sh") {
		t.Errorf("the second run is told %q", text)
	}
	for name, o := range map[string]servertest.Options{"off": {Tape: remarkTape + answer, Env: map[string]string{"FORGE_REFLECTION": "false"}}, "nobody": {}} {
		t.Run(name, func(t *testing.T) {
			ts, run, _ := remarked(t, o)
			ts.Must(ts.Forge.Learner.RunEnded(t.Context(), run.ID))
			events, err := ts.Forge.DB.Events(t.Context(), run.ID, 0)
			ts.Must(err)
			if slices.ContainsFunc(events, func(e pipeline.Event) bool { return e.Type == pipeline.EventReflection }) {
				t.Error("somebody looked back at the run")
			}
		})
	}
}

// Covers L5, V3: the tester is told what is known about tests, and of that alone;
// what it names counts as used.
func TestTesterRecalls(t *testing.T) {
	t.Parallel()
	tape := strings.NewReplacer("-- tester */1 --\n", "-- tester */1 --\n@expect Greeting is flaky on slow machines\n@reject Quote what the shell expands\n",
		"analysis: It says hullo., confidence: 0.2", "analysis: 'It says hullo, which is not what [L1] is about.', confidence: 0.9, fix: {description: say hello}").Replace(servertest.FailingTape)
	ts := servertest.New(t, servertest.Options{Tape: tape, Wire: func(w *server.Options) { w.Withhold, w.Config.Run.Learn.Holdout = -1, 0 }})
	known := func(key string, category pipeline.Category, content string) pipeline.Learning {
		return pipeline.Learning{Key: key, Scope: "repo:" + servertest.Repo, Type: pipeline.LearningSemantic, Category: category, Source: pipeline.SourceReflection, Content: content,
			Weight: 1, Base: 0.8, Created: time.Now().Add(-time.Hour), State: pipeline.LearningActive}
	}
	ts.Must(ts.Forge.DB.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := ts.Forge.DB.SaveLearnings(ctx, tx, []pipeline.Learning{known("flaky", "", "The test of the greeting is flaky on slow machines: Greeting is flaky on slow machines"),
			known("shell", "style", "Quote what the shell expands in greet.sh when it greets"), known("how", "tests", "sh test.sh needs a shell that knows echo")})
		return err
	}))
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	recalls, err := ts.Forge.DB.Recalls(t.Context(), run.ID)
	ts.Must(err)
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
