package github

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"forge/github/render"
	"forge/github/render/rendertest"
	"forge/pipeline"
	"forge/pipeline/measure"

	"github.com/google/go-cmp/cmp"
)

// testPusher is a branch in memory.
type testPusher struct {
	head   string
	err    error
	pushes int
}

type movedError struct{ head string }

func (e movedError) Error() string { return "moved" }
func (e movedError) Moved() string { return e.head }

type rejectedError struct{ words string }

func (e rejectedError) Error() string    { return "rejected" }
func (e rejectedError) Rejected() string { return e.words }

func (p *testPusher) Push(_ context.Context, _ pipeline.Repo, _, sha, old string) error {
	p.pushes++
	if p.err != nil {
		return p.err
	}
	if p.head != old {
		return movedError{p.head}
	}
	p.head = sha
	return nil
}

func (p *testPusher) Diff(context.Context, pipeline.Repo, string, string) (string, error) {
	return rendertest.Diff, nil
}

func (p *testPusher) Delete(_ context.Context, _ pipeline.Repo, _, old string) error {
	switch {
	case p.err != nil:
		return p.err
	case p.head != old && p.head != "":
		return movedError{p.head}
	}
	p.head = ""
	return nil
}

// publish publishes the story's run and records the outcome in it, as the engine does.
func publish(s *rendertest.Story, a *App, p *testPusher, again bool) ([]pipeline.Event, error) {
	pub, events, err := a.Publish(context.Background(), s.Run, PublishOptions{Again: again, Pusher: p})
	typ := pipeline.EventPublishCompleted
	d := pipeline.Data{Publication: &pub}
	if err != nil {
		typ = pipeline.EventPublishFailed
		d.Fault = &pipeline.Fault{Class: pipeline.FaultGitHub, Message: err.Error()}
	}
	s.Add(typ, d)
	for _, e := range events {
		s.Add(e.Type, e.Data)
	}
	return events, err
}

func mustPublish(s *rendertest.Story, a *App, p *testPusher) {
	s.T.Helper()
	if events, err := publish(s, a, p, false); err != nil || len(events) != 0 {
		s.T.Fatalf("publish at event %d: %v, events %v", s.N, err, events)
	}
}

// steps is a whole run with one bounce, cut where the engine publishes.
var steps = []func(*rendertest.Story){
	func(s *rendertest.Story) {},
	(*rendertest.Story).Plan,
	func(s *rendertest.Story) { s.Implement(1, 0, 1, "Retries with growing pauses.") },
	func(s *rendertest.Story) { s.Review(1, 1, false, rendertest.FirstFindings()...); s.Bounce(1, 2) },
	func(s *rendertest.Story) { s.Implement(2, 1, 2, "Count upwards; stop with the context.") },
	func(s *rendertest.Story) { s.Review(2, 2, true, rendertest.FirstFindings()[0]) },
	func(s *rendertest.Story) { s.Tests(2, 2) },
	(*rendertest.Story).Verified,
}

// final checks what a whole run must leave behind, whatever happened on the way.
func (f *fake) final(t *testing.T) {
	t.Helper()
	n := map[string]int{}
	for _, c := range f.comments {
		first, _, _ := strings.Cut(c.Body, "\n")
		n[first]++
	}
	if len(f.comments) != 1 || n["<!-- forge:"+strings.Repeat("ab", 16)+"/status -->"] != 1 {
		t.Errorf("comments: %v, want the status alone", n)
	}
	if f.pull == nil || f.pull["draft"] != false || f.pull["state"] != "open" {
		t.Fatalf("pull request: %v, want an open one out of draft", f.pull)
	}
	if len(f.reviews) != 1 || f.reviews[0]["event"] != "COMMENT" {
		t.Errorf("reviews: %v, want one", f.reviews)
	}
	if len(f.threads) != 2 {
		t.Fatalf("threads: %d, want 2", len(f.threads))
	}
	for _, th := range f.threads {
		if !th.Resolved || len(th.Comments) != 2 || !strings.Contains(th.Comments[1].Body, "Fixed in [`2222222`]") {
			t.Errorf("thread: resolved %v, comments %+v; want it answered once and resolved", th.Resolved, th.Comments)
		}
	}
	got := map[string]any{}
	for _, c := range f.checks {
		got[c["head_sha"].(string)[:3]] = c["conclusion"]
	}
	if want := map[string]any{"111": "failure", "222": "success"}; len(f.checks) != 2 || cmp.Diff(want, got) != "" {
		t.Errorf("check runs: %v, want %v", got, want)
	}
}

// A run leaves what it should, within the budget of calls: 14 for a clean run and
// 8 more for a bounce.
func TestPublishRun(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	a, p, s := f.app(t), &testPusher{}, rendertest.New(t)
	for _, step := range steps {
		step(s)
		mustPublish(s, a, p)
	}
	f.final(t)
	if got := s.Run.Published.Calls; got != f.calls || got > 14+8 {
		t.Errorf("calls: counted %d, made %d, want at most those of a clean run and 8:\n%s", got, f.calls, strings.Join(f.log, "\n"))
	}
	if p.pushes != 2 || p.head != rendertest.SHA(2) {
		t.Errorf("pushes: %d, head %s", p.pushes, p.head)
	}
	before := f.calls
	mustPublish(s, a, p)
	if f.calls != before {
		t.Errorf("publishing what is shown already: %d calls, want 0: %v", f.calls-before, f.log[before:])
	}
	if got := len(f.tokens); got != 1 {
		t.Errorf("tokens asked for: %d, want 1", got)
	}
	if want := `"repository_ids":[99]`; !strings.Contains(f.tokens[0], want) {
		t.Errorf("token request %s, want %s", f.tokens[0], want)
	}
}

func TestPublishClean(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	a, p, s := f.app(t), &testPusher{}, rendertest.New(t)
	for _, step := range []func(*rendertest.Story){func(*rendertest.Story) {}, (*rendertest.Story).Plan,
		func(s *rendertest.Story) { s.Implement(1, 0, 1, "Retries.") },
		func(s *rendertest.Story) { s.Review(1, 1, true, rendertest.FirstFindings()[0]) }, func(s *rendertest.Story) { s.Tests(1, 1) },
		(*rendertest.Story).Verified} {
		step(s)
		mustPublish(s, a, p)
	}
	if f.calls > 14 {
		t.Errorf("a clean run took %d calls, want at most 14:\n%s", f.calls, strings.Join(f.log, "\n"))
	}
}

// A check gets its annotations once: GitHub adds those of an update to those that there are.
func TestPublishNotesOnce(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	a, p, s := f.app(t), &testPusher{}, rendertest.New(t)
	noted := func(s *rendertest.Story) {
		s.Run.Iterations[0].Tests.Measures = []measure.Result{{Name: "lint", Places: []measure.Place{{File: "a.go", Line: 3, Rule: "words", Message: "a bad word"}}}}
	}
	for _, step := range []func(*rendertest.Story){(*rendertest.Story).Plan, func(s *rendertest.Story) { s.Implement(1, 0, 1, "Retries.") },
		func(s *rendertest.Story) { s.Review(1, 1, true) }, func(s *rendertest.Story) { s.Tests(1, 1) }, noted, (*rendertest.Story).Verified} {
		step(s)
		mustPublish(s, a, p)
	}
	if f.notes != 1 {
		t.Errorf("%d annotations were sent, want 1:\n%s", f.notes, strings.Join(f.log, "\n"))
	}
}

// Every call of a run fails once, before or after its effect, and nothing is made
// twice or lost. Covers reliability 2 and 4.
func TestPublishFaults(t *testing.T) {
	t.Parallel()
	dry := newFake(t)
	a, p, s := dry.app(t), &testPusher{}, rendertest.New(t)
	for _, step := range steps {
		step(s)
		mustPublish(s, a, p)
	}
	kinds := []struct {
		name   string
		status int
		header map[string]string
		after  bool
	}{
		{"502 before", 502, nil, false}, {"502 after", 502, nil, true},
		{"connection lost before", -1, nil, false}, {"connection lost after", -1, nil, true},
		{"429", 429, map[string]string{"Retry-After": "30"}, false},
		{"403 with limit", 403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}, false},
	}
	for i, k := range kinds {
		from, step := 1+i, len(kinds) // each call breaks down in one of the ways
		if thorough {
			from, step = 1, 1
		}
		for n := from; n <= dry.calls; n += step {
			f := newFake(t)
			hit, done := "", false
			f.fault = func(call int, method, path string, after bool) (int, map[string]string, string) {
				if done || call < n || after != k.after {
					return 0, nil, ""
				}
				done, hit = true, method+" "+path
				return k.status, k.header, `{"message":"fault"}`
			}
			now := time.Unix(1_700_000_000, 0)
			a := f.app(t, func(o *Options) { o.Clock = func() time.Time { return now } })
			p, s := &testPusher{}, rendertest.New(t)
			for _, step := range steps {
				step(s)
				_, err := publish(s, a, p, false)
				for tries := 0; err != nil; tries++ {
					if tries == 4 {
						t.Fatalf("%s at call %d (%s): still failing: %v", k.name, n, hit, err)
					}
					var typed interface {
						Ambiguous() bool
						RetryAfter() time.Duration
					}
					if !errors.As(err, &typed) {
						t.Fatalf("%s at call %d (%s): error %v says nothing of retrying", k.name, n, hit, err)
					}
					now = now.Add(typed.RetryAfter())
					_, err = publish(s, a, p, typed.Ambiguous())
				}
			}
			f.final(t)
			if t.Failed() {
				t.Fatalf("%s at call %d (%s)\n%s", k.name, n, hit, strings.Join(f.log, "\n"))
			}
			f.Close()
		}
	}
}

// A process that dies between the calls and the record leaves a run that knows of
// nothing; with Again everything is found.
func TestPublishCrash(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	a, p, s := f.app(t), &testPusher{}, rendertest.New(t)
	for i, step := range steps {
		step(s)
		if _, _, err := a.Publish(context.Background(), s.Run, PublishOptions{Again: i > 0, Pusher: p}); err != nil {
			t.Fatalf("publication %d that is lost: %v", i, err)
		}
		if _, err := publish(s, a, p, true); err != nil {
			t.Fatalf("publication %d: %v", i, err)
		}
	}
	f.final(t)
}

// Nobody's comment but Forge's own is adopted, whatever marker it carries.
func TestPublishForgedMarker(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	a, p, s := f.app(t), &testPusher{}, rendertest.New(t)
	f.comments = append(f.comments, &fakeComment{ID: 1, Issue: 7, User: 7, Body: render.Marker(s.Run.Trace, "status")})
	if _, err := publish(s, a, p, true); err != nil {
		t.Fatal(err)
	}
	if len(f.comments) != 2 || f.comments[0].Edits != 0 {
		t.Errorf("comments: %d, the forged one edited %d times", len(f.comments), f.comments[0].Edits)
	}
}

// Covers lessons 14: a human's push is reported, and nothing is shown of the commit
// that did not get there.
func TestPublishMoved(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	a, p, s := f.app(t), &testPusher{}, rendertest.New(t)
	s.Plan()
	s.Implement(1, 0, 1, "x")
	mustPublish(s, a, p)
	p.head = rendertest.SHA(9)
	s.Review(1, 1, false, rendertest.FirstFindings()...)
	s.Bounce(1, 2)
	s.Implement(2, 1, 2, "y")
	before := f.calls
	events, err := publish(s, a, p, false)
	if err != nil || len(events) != 1 {
		t.Fatalf("publish over a moved branch: events %v, error %v", events, err)
	}
	if e := events[0]; e.Type != pipeline.EventBranchMoved || e.Data.Head != rendertest.SHA(9) || e.ID == "" {
		t.Errorf("event %+v", e)
	}
	if f.calls != before {
		t.Errorf("calls after a moved branch: %v", f.log[before:])
	}
	if s.Run.Head != rendertest.SHA(9) || s.Run.Published.Head != rendertest.SHA(9) {
		t.Errorf("run's head %s, published %s", s.Run.Head, s.Run.Published.Head)
	}
	mustPublish(s, a, p)
	if p.head != rendertest.SHA(9) {
		t.Errorf("the human's commit was overwritten with %s", p.head)
	}
}

// A push that got through although its answer was lost is no move.
func TestPublishPushLost(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	a, p, s := f.app(t), &testPusher{head: rendertest.SHA(1)}, rendertest.New(t)
	s.Plan()
	s.Implement(1, 0, 1, "x")
	mustPublish(s, a, p)
	if s.Run.Published.Head != rendertest.SHA(1) || f.pull == nil {
		t.Errorf("published head %q, pull %v", s.Run.Published.Head, f.pull)
	}
}

func TestPublishRejected(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ said, want string }{
		{"GH013: Repository rule violations found", "GH013: Repository rule violations found. Let the App bypass the ruleset"},
		{"cannot lock ref 'refs/heads/forge/issue-1-x': 'refs/heads/forge' exists; cannot create 'refs/heads/forge/issue-1-x'", "a branch forge is there, so that none can be beneath it. Rename or delete"},
	} {
		f := newFake(t)
		a, p, s := f.app(t), &testPusher{err: rejectedError{tt.said}}, rendertest.New(t)
		s.Plan()
		s.Implement(1, 0, 1, "x")
		_, err := publish(s, a, p, false)
		var fault *pipeline.Fault
		if !errors.As(err, &fault) || !fault.Final || !strings.Contains(fault.Message, tt.want) {
			t.Fatalf("%s: %v", tt.said, err)
		}
		if len(f.comments) != 1 || f.pull != nil {
			t.Errorf("the status must be written all the same: %d comments, pull %v", len(f.comments), f.pull)
		}
	}
}

// Who cannot be assigned or asked for a review keeps nobody from the rest.
func TestUnfit(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]bool{404: true, 410: true, 422: true, 403: false, 500: false} {
		if got := unfit(&apiError{status: code}); got != want {
			t.Errorf("%d: %v, want %v", code, got, want)
		}
	}
}

// Covers T7: a gate is asked on the pull request, keeps its place when answered,
// and the history is shown once.
func TestPublishGate(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	a, p, s := f.app(t), &testPusher{}, rendertest.New(t)
	s.Bounced()
	s.Gate()
	mustPublish(s, a, p)
	s.Answer("history", 0, "")
	mustPublish(s, a, p)
	s.Answer("continue", 3, "Try a channel.")
	mustPublish(s, a, p)
	var places []string
	for _, c := range f.comments {
		key, _, _ := strings.Cut(strings.TrimPrefix(c.Body, "<!-- forge:"+s.Run.Trace+"/"), " ")
		places = append(places, fmt.Sprint(key, "@", c.Issue))
	}
	if diff := cmp.Diff([]string{"status@7", "gate/1@8", "history/1@8"}, places); diff != "" {
		t.Errorf("comments (-want +got):\n%s", diff)
	}
	if c := f.comments[1]; !strings.Contains(c.Body, "settled") || !strings.Contains(c.Body, "Try a channel.") {
		t.Errorf("the gate's comment does not show its answer:\n%s", c.Body)
	}
}

// A text that is longer than GitHub takes is several comments, which are kept up to date:
// each fits, none is made twice, and one that is no longer needed says so.
func TestPublishParts(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	a, p, s := f.app(t), &testPusher{}, rendertest.New(t)
	s.Bounced()
	s.Gate()
	mustPublish(s, a, p)
	short := len(f.comments)
	session, err := a.session(s.Run.Repo)
	if err != nil {
		t.Fatal(err)
	}
	pub := newPublisher(a, session, s.Run, PublishOptions{})
	text := func(lines int) string {
		return render.Marker(s.Run.Trace, "long") + "\n" + strings.Repeat(strings.Repeat("x", 99)+"\n", lines)
	}
	write := func(lines int) {
		t.Helper()
		if err := pub.comment(t.Context(), "long", 7, text(lines)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(comments, xs int) []*fakeComment {
		t.Helper()
		list, got := f.comments[short:], 0
		for i, c := range list {
			if n := len([]rune(c.Body)); n > 65_536 {
				t.Errorf("comment %d has %d characters", i+1, n)
			}
			got += strings.Count(c.Body, strings.Repeat("x", 99)+"\n")
		}
		if len(list) != comments || got != xs {
			t.Fatalf("%d comments with %d lines, want %d with %d", len(list), got, comments, xs)
		}
		return list
	}
	posts := 0
	f.fault = func(_ int, method, _ string, after bool) (int, map[string]string, string) {
		if method != "POST" || !after {
			return 0, nil, ""
		}
		if posts++; posts == 2 {
			return -1, nil, "" // made, and the answer is lost
		}
		return 0, nil, ""
	}
	if err := pub.comment(t.Context(), "long", 7, text(1500)); err == nil || pub.artefact("long").Hash != "" {
		t.Fatalf("half of a text: %v, %+v", err, pub.artefact("long"))
	}
	pub.opts.Again, pub.known = true, map[int][]comment{}
	write(1500)
	list := check(3, 1500)
	if !strings.Contains(list[1].Body, "Part 2 of 3") || !strings.Contains(list[2].Body, "/long/part/3 -->") {
		t.Errorf("the further parts do not say what they are: %.200q", list[2].Body)
	}
	calls := f.calls
	write(1500)
	if f.calls != calls {
		t.Errorf("what is there already took %d calls", f.calls-calls)
	}
	write(2000)
	check(4, 2000)
	write(10)
	list = check(4, 10)
	for _, c := range list[1:] {
		if !strings.Contains(c.Body, "Nothing stands here any more") {
			t.Errorf("a part that is not needed: %.200q", c.Body)
		}
	}
	write(1500)
	check(4, 1500)
}

func TestPublishCancelled(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	a, p, s := f.app(t), &testPusher{}, rendertest.New(t)
	s.Bounced()
	mustPublish(s, a, p)
	s.Add(pipeline.EventRunCancelled, pipeline.Data{})
	mustPublish(s, a, p)
	if f.pull["state"] != "closed" || f.checks[0]["conclusion"] != "cancelled" {
		t.Errorf("pull %v, check %v", f.pull["state"], f.checks[0]["conclusion"])
	}
}

// Covers lessons 6: a thread with a human's last word is not resolved, and one that
// comes back is opened again.
func TestPublishThreads(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	a, p, s := f.app(t), &testPusher{}, rendertest.New(t)
	for _, step := range steps[:4] {
		step(s)
		mustPublish(s, a, p)
	}
	if art := s.Run.Published.Artefacts["finding/aaaa"]; art.ID == 0 || art.Node == "" || art.URL == "" || art.Hash != findingOpen {
		t.Errorf("artefact of a finding: %+v", art)
	}
	f.threads[0].Comments = append(f.threads[0].Comments, threadComment{"Are you sure?", "", false})
	f.threads[0].IDs = append(f.threads[0].IDs, 1)
	s.Implement(2, 1, 2, "Mended.")
	s.Review(2, 2, true)
	mustPublish(s, a, p)
	if th := f.threads[0]; th.Resolved || !strings.Contains(th.Comments[2].Body, "I leave this open") {
		t.Errorf("thread with an unanswered reply: %+v", th)
	}
	if !f.threads[1].Resolved {
		t.Errorf("the other thread is not resolved")
	}
	s.Bounce(2, 1)
	s.Implement(3, 2, 3, "Broke it.")
	back := rendertest.FirstFindings()[1]
	s.Review(3, 3, false, back)
	mustPublish(s, a, p)
	if th := f.threads[1]; th.Resolved || !strings.Contains(th.Comments[2].Body, "This is back in [`3333333`]") {
		t.Errorf("thread of a finding that came back: %+v", th)
	}
	if len(f.threads) != 2 {
		t.Errorf("threads: %d: a known finding was posted anew", len(f.threads))
	}
}

// Covers lessons 8: one bad line does not lose the review.
func TestPublishReviewRefused(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.bad = []string{"retry.go"}
	a, p, s := f.app(t), &testPusher{}, rendertest.New(t)
	s.Bounced()
	mustPublish(s, a, p)
	if len(f.reviews) != 1 || len(f.threads) != 0 {
		t.Fatalf("reviews %d, threads %d", len(f.reviews), len(f.threads))
	}
	body := f.reviews[0]["body"].(string)
	for _, want := range []string{"The loop never ends", "The pause ignores", "The README does not"} {
		if !strings.Contains(body, want) {
			t.Errorf("the review's text lacks %q:\n%s", want, body)
		}
	}
}

func TestPublishDeletedComment(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	a, p, s := f.app(t), &testPusher{}, rendertest.New(t)
	mustPublish(s, a, p)
	f.comments = nil
	s.Plan()
	mustPublish(s, a, p)
	if len(f.comments) != 1 {
		t.Errorf("comments after the status was deleted: %d, want it written anew", len(f.comments))
	}
}

// A permission that is missing is named, and the status is written all the same.
func TestPublishForbidden(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.fault = func(_ int, method, path string, after bool) (int, map[string]string, string) {
		if strings.HasSuffix(path, "/check-runs") && !after {
			return http.StatusForbidden, nil, `{"message":"Resource not accessible by integration"}`
		}
		return 0, nil, ""
	}
	a, p, s := f.app(t), &testPusher{}, rendertest.New(t)
	s.Plan()
	s.Implement(1, 0, 1, "x")
	_, err := publish(s, a, p, false)
	var fault *pipeline.Fault
	if !errors.As(err, &fault) || !fault.Final || fault.Class != pipeline.FaultGitHub || !strings.Contains(fault.Message, `"checks: write"`) {
		t.Fatalf("publish without the permission: %v", err)
	}
	if len(f.comments) != 1 {
		t.Errorf("comments: %d, want the status", len(f.comments))
	}
}

// Random faults on a fifth of the calls, seeded. Covers reliability 4.
func TestPublishRandomFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		f := newFake(t)
		rnd := rand.New(rand.NewPCG(seed, 1))
		f.fault = func(_ int, _, _ string, after bool) (int, map[string]string, string) {
			if rnd.IntN(10) > 0 {
				return 0, nil, ""
			}
			return []int{502, -1, 503}[rnd.IntN(3)], nil, `{"message":"fault"}`
		}
		a, p, s := f.app(t), &testPusher{}, rendertest.New(t)
		for _, step := range steps {
			step(s)
			_, err := publish(s, a, p, false)
			again := false
			for tries := 0; err != nil && tries < 200; tries++ {
				var typed interface{ Ambiguous() bool }
				again = again || errors.As(err, &typed) && typed.Ambiguous()
				_, err = publish(s, a, p, again)
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		f.fault = nil
		f.final(t)
		if t.Failed() {
			t.Fatalf("seed %d\n%s", seed, strings.Join(f.log, "\n"))
		}
		f.Close()
	}
}

// Covers T8: a dispute and the ruling on it are shown in the finding's thread, once
// each; what the reviewer withdraws is resolved with the reason.
func TestPublishDispute(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	a, p, s := f.app(t), &testPusher{}, rendertest.New(t)
	for _, step := range steps[:4] {
		step(s)
		mustPublish(s, a, p)
	}
	issue := func(fp string) *pipeline.Issue {
		for i := range s.Run.Findings {
			if s.Run.Findings[i].Fingerprint() == fp {
				return &s.Run.Findings[i]
			}
		}
		t.Fatalf("no finding %s", fp)
		return nil
	}
	last := func() string { c := f.threads[0].Comments; return c[len(c)-1].Body }
	issue("aaaa").Disputed = "n is never negative, says @carol"
	s.Run.Rev++
	mustPublish(s, a, p)
	mustPublish(s, a, p)
	if len(f.threads[0].Comments) != 2 || !strings.Contains(last(), "disputes this: n is never negative, says @\u200bcarol") {
		t.Fatalf("thread of a disputed finding: %+v", f.threads[0].Comments)
	}
	issue("aaaa").Disputed, issue("aaaa").Upheld, issue("aaaa").Ruling = "", 1, "the caller passes -1"
	mustPublish(s, a, p)
	mustPublish(s, a, p)
	if len(f.threads[0].Comments) != 3 || !strings.Contains(last(), "upholds it: the caller passes -1") || f.threads[0].Resolved {
		t.Fatalf("thread of an upheld finding: %+v", f.threads[0].Comments)
	}
	issue("aaaa").State, issue("aaaa").Ruling = "withdrawn", "the caller checks it"
	mustPublish(s, a, p)
	mustPublish(s, a, p)
	if len(f.threads[0].Comments) != 4 || !strings.Contains(last(), "Withdrawn: the caller checks it") || !f.threads[0].Resolved {
		t.Fatalf("thread of a withdrawn finding: %+v", f.threads[0].Comments)
	}
	issue("aaaa").State = "open"
	mustPublish(s, a, p)
	if len(f.threads[0].Comments) != 5 || f.threads[0].Resolved {
		t.Fatalf("thread of a finding that is open again: %+v", f.threads[0].Comments)
	}
}

// What a person let pass is named wherever the verdict stands.
func TestWaiversAreNamed(t *testing.T) {
	t.Parallel()
	s := rendertest.New(t)
	s.Plan()
	s.Implement(1, 0, 1, "x")
	s.Review(1, 1, true)
	s.Tests(1, 1)
	s.Run.Waivers = []pipeline.Waiver{{Guard: pipeline.GuardUnread, What: "logo.png was not read", By: pipeline.Actor{Login: "alice"},
		At: s.At, Head: rendertest.SHA(1)}}
	s.Verified()
	v := render.Renderer{Run: s.Run, Web: "https://github.com", Host: "github.com", Slug: "forge"}
	if c := v.Check(); c.Conclusion != "success" || !strings.Contains(c.Title, "1 exception let pass by alice") {
		t.Errorf("check %q %q", c.Conclusion, c.Title)
	}
	for _, want := range []string{"with 1 exception let pass by alice", "logo.png was not read"} {
		if !strings.Contains(v.PullBody(), want) {
			t.Errorf("the pull request does not say %q:\n%s", want, v.PullBody())
		}
	}
}
