package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river/riverdriver/riversqlite"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/mergeable"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// keeper makes the store's deliveries the engine's, as the program's wiring does.
type keeper struct {
	*store.DB
	onRelease func()            // called before a lease is given back
	learnt    []pipeline.Signal // that belong to no run
}

func (k *keeper) Learn(_ context.Context, _ *Tx, signals []pipeline.Signal) error {
	k.learnt = append(k.learnt, signals...)
	return nil
}

func (k *keeper) DeadDeliveries(ctx context.Context, limit int) ([]record.Delivery, error) {
	return k.Deliveries(ctx, store.DeliveryFilter{State: record.DeliveryDead, Limit: limit})
}

func (k *keeper) Release(ctx context.Context, run int64, owner string, seq int64) (bool, error) {
	if k.onRelease != nil {
		k.onRelease()
	}
	return k.DB.Release(ctx, run, owner, seq)
}

// thorough has tests that do the same again and again do more of it; with the tag e2e.
var thorough bool

// inBubble runs a test by the clock of a bubble, with a store whose goroutines are in it.
func inBubble(t *testing.T, test func(t *testing.T, k *keeper)) {
	synctest.Test(t, func(t *testing.T) { test(t, openStore(t)) })
}

func openStore(t testing.TB) *keeper {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "forge.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return &keeper{DB: db}
}

// options are quick ones, with phases that does everything right.
func options(t testing.TB) Options {
	return Options{
		Executor: &fakePhases{}, Publisher: &billboard{}, Logger: testLog(t),
		Watch: 10 * time.Millisecond, Tick: 20 * time.Millisecond, Settle: time.Millisecond, Grace: 50 * time.Millisecond,
	}
}

func testLog(t testing.TB) *slog.Logger {
	var w io.Writer = io.Discard
	if os.Getenv("FORGE_TEST_LOG") != "" {
		w = t.Output()
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// newEngine makes an engine that is not started, with the drivers of SQLite.
func newEngine(t testing.TB, k *keeper, opts Options) *Engine {
	t.Helper()
	e, err := New(riversqlite.New(k.SQL()), riversqlite.New(nil), k, opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// newDriven makes an engine without jobs.
func newDriven(t testing.TB, k *keeper, opts Options) *Engine {
	t.Helper()
	e, err := New[*Tx](nil, nil, k, opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func start(t testing.TB, e *Engine) *Engine {
	t.Helper()
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, e) })
	return e
}

func stop(t testing.TB, e *Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := e.Stop(ctx); err != nil {
		t.Errorf("Stop: %v", err)
	}
}

// newRun makes a run for an issue, as an earlier delivery would have.
func newRun(t testing.TB, k *keeper, issue int, change ...func(*pipeline.Start)) int64 {
	t.Helper()
	s := newStart(issue)
	for _, f := range change {
		f(&s)
	}
	run, err := k.CreateRun(t.Context(), fmt.Sprintf("issue-%d", issue), s, time.Now(), newTrace(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return run.ID
}

func newStart(issue int) pipeline.Start {
	return pipeline.Start{
		Repo: testRepo, By: maintainer, Config: config.Default(), Base: "base",
		Task: pipeline.Task{Issue: issue, Title: fmt.Sprintf("task %d", issue)}, Branch: fmt.Sprintf("forge/issue-%d", issue),
	}
}

var (
	testRepo   = pipeline.Repo{ID: 42, Owner: "acme", Name: "shop", DefaultBranch: "main"}
	maintainer = pipeline.Actor{ID: 1, Login: "mia"}
)

func load(t testing.TB, k *keeper, id int64) *pipeline.Run {
	t.Helper()
	run, err := k.Load(context.WithoutCancel(t.Context()), id)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func eventTypes(t testing.TB, k *keeper, id int64) []string {
	t.Helper()
	events, err := k.Events(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i, ev := range events {
		if ev.Seq != int64(i)+1 {
			t.Errorf("event %d has seq %d", i+1, ev.Seq)
		}
		out = append(out, string(ev.Type))
	}
	return out
}

func count(list []string, want pipeline.EventType) (n int) {
	for _, s := range list {
		if s == string(want) {
			n++
		}
	}
	return n
}

// fakePhases is an executor whose phases do what they are asked for, or what the test
// says.
type fakePhases struct {
	do func(ctx context.Context, run *pipeline.Run, act pipeline.Action, emit Emit) ([]pipeline.Event, error) // nil, or nil results: what is right

	mu   sync.Mutex
	keys []string
}

func (c *fakePhases) Do(ctx context.Context, run *pipeline.Run, act pipeline.Action, emit Emit) ([]pipeline.Event, error) {
	c.mu.Lock()
	c.keys = append(c.keys, act.Key)
	c.mu.Unlock()
	if c.do != nil {
		events, err := c.do(ctx, run, act, emit)
		if events != nil || err != nil {
			return events, err
		}
	}
	return succeed(run, act), nil
}

func (c *fakePhases) did() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.keys)
}

func succeed(run *pipeline.Run, act pipeline.Action) []pipeline.Event {
	d := pipeline.Data{Phase: act.Phase}
	switch act.Phase.Phase {
	case pipeline.PhasePlan:
		d.Plan = &pipeline.Plan{Summary: "a plan"}
	case pipeline.PhaseImplement:
		d.Implementation = &pipeline.Implementation{Summary: "done", Parent: run.Head, Head: fmt.Sprintf("sha-%d-%d", run.ID, act.Phase.Iteration)}
	case pipeline.PhaseReview:
		d.Review = &pipeline.Review{Head: run.Head, Summary: "fine"}
	case pipeline.PhaseTest:
		d.Tests = &pipeline.TestReport{Head: run.Head, Total: 1, Passed: 1}
	case pipeline.PhaseUpdate:
		d.Update = &pipeline.Update{Base: run.BaseHead, Parent: run.Head, Head: "merge-" + run.BaseHead}
	}
	return []pipeline.Event{{ID: act.Key + "/completed", Type: pipeline.EventPhaseCompleted, Source: "agent", Data: d}}
}

// billboard is a publisher that remembers what it was shown.
type billboard struct {
	publish func(ctx context.Context, run *pipeline.Run, again bool) error // may be nil
	pull    int                                                            // number of the pull request that it opens; 0 for none
	late    func(run *pipeline.Run) string                                 // why the documents are not written; may be nil

	mu    sync.Mutex
	shown []shown
}

type shown struct {
	run, rev int64
	again    bool
	at       time.Time
}

func (b *billboard) Publish(ctx context.Context, run *pipeline.Run, again bool) (pipeline.Publication, []pipeline.Event, error) {
	b.mu.Lock()
	b.shown = append(b.shown, shown{run.ID, run.Rev, again, time.Now()})
	b.mu.Unlock()
	if b.publish != nil {
		if err := b.publish(ctx, run, again); err != nil {
			return pipeline.Publication{}, nil, err
		}
	}
	pub := pipeline.Publication{Head: run.Head, Calls: 1}
	if b.late != nil {
		pub.Late = b.late(run)
	}
	if b.pull != 0 && run.Head != run.Base {
		pub.Pull = &pipeline.PullRef{Number: b.pull}
	}
	return pub, nil, nil
}

func (b *billboard) all() []shown {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.shown)
}

// waitFor waits until ok holds, looking after every event of the engine.
type watcher struct {
	c chan struct{}
}

func watchEvents(opts *Options) *watcher {
	w := &watcher{c: make(chan struct{}, 1)}
	before := opts.OnEvents
	opts.OnEvents = func(run *pipeline.Run, events []pipeline.Event) {
		if before != nil {
			before(run, events)
		}
		signal(w.c)
	}
	return w
}

func (w *watcher) until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-w.c:
		case <-again.C:
		case <-limit:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func (w *watcher) untilState(t testing.TB, k *keeper, run int64, want pipeline.State) {
	t.Helper()
	w.until(t, fmt.Sprintf("run %d is %s and shown", run, want), func() bool {
		r := load(t, k, run)
		return r.State == want && r.Published.Rev == r.Rev
	})
}

// fakeGitHub is a GitHub with people on it.
type fakeGitHub struct {
	may     map[string]string // permissions by login; others may write
	prepare func(n pipeline.Notice) (pipeline.Start, error)
	asked   func(login string) error

	closed bool  // its pull requests are
	merged bool  // they are
	away   error // nobody can see that
	stands mergeable.State
	unread int // so many times nobody can read what a review requests

	mu      sync.Mutex
	replies []string
}

func (h *fakeGitHub) Permission(_ context.Context, _ pipeline.Repo, a pipeline.Actor) (string, error) {
	if h.asked != nil {
		if err := h.asked(a.Login); err != nil {
			return "", err
		}
	}
	if p, ok := h.may[a.Login]; ok {
		return p, nil
	}
	return "write", nil
}

func (h *fakeGitHub) Prepare(_ context.Context, n pipeline.Notice) (pipeline.Start, error) {
	if h.prepare != nil {
		return h.prepare(n)
	}
	return newStart(n.Issue), nil
}

func (h *fakeGitHub) PullState(context.Context, pipeline.Repo, int) (open, merged bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.closed, h.merged, h.away
}

func (h *fakeGitHub) Mergeable(context.Context, pipeline.Repo, int) (mergeable.State, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stands, nil
}

func (h *fakeGitHub) Requested(_ context.Context, _ pipeline.Repo, _ int, f pipeline.Feedback) (pipeline.Review, error) {
	if h.unread > 0 {
		h.unread--
		return pipeline.Review{}, errors.New("GitHub is away")
	}
	if f.Path == "" && strings.HasPrefix(f.Body, "/") { // a command, and nothing on a line
		return pipeline.Review{}, nil
	}
	return pipeline.Review{Findings: []pipeline.Finding{{Severity: pipeline.SeverityError, Category: "human", Message: f.Body, Review: f.Review}}}, nil
}

func (h *fakeGitHub) Reply(_ context.Context, n pipeline.Notice, text, key string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.replies = append(h.replies, fmt.Sprintf("#%d %d %s: %s", cmp.Or(n.Issue, n.Pull), n.Comment, key, text))
	return nil
}

// Memory, Remember and Forget say what they were asked.
func (h *fakeGitHub) Memory(_ context.Context, repo pipeline.Repo, words string) (string, error) {
	return fmt.Sprintf("memory of %s: %q", repo.FullName(), words), nil
}

func (h *fakeGitHub) Remember(_ context.Context, w Word) (string, error) {
	return fmt.Sprintf("%s says at run %d: %q", w.Actor.Login, w.Run, w.Text), nil
}

func (h *fakeGitHub) Forget(_ context.Context, w Word, id int64) (string, error) {
	return fmt.Sprintf("%s forgets %d: %q", w.Actor.Login, id, w.Text), nil
}

// Answer says what it was told of an incident.
func (h *fakeGitHub) Answer(_ context.Context, w Word) (string, error) {
	return fmt.Sprintf("%s answers in %s: %q", w.Actor.Login, w.Repo.FullName(), w.Text), nil
}

func (h *fakeGitHub) said() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.replies)
}

// readWords reads the test's payloads: "start 7", "start 7 commented", "command 7 stop", "edit 7",
// "push BRANCH SHA", "none", "panic", each followed by "by LOGIN" if wanted.
func readWords(event string, payload []byte) (pipeline.Notice, error) {
	text, login, found := strings.Cut(string(payload), " by ")
	n := pipeline.Notice{Repo: testRepo, Actor: maintainer}
	if found {
		n.Actor = pipeline.Actor{ID: int64(len(login)), Login: login, Bot: strings.HasSuffix(login, "[bot]")}
	}
	words := strings.Fields(text)
	words = append(words, "", "", "")
	number := func() (i int) { fmt.Sscan(words[1], &i); return i }
	switch words[0] {
	case "none":
		n.Kind, n.Why = pipeline.NoticeNone, "ignored: "+event
	case "start":
		n.Kind, n.Issue, n.Task = pipeline.NoticeStart, number(), pipeline.Task{Issue: number()}
		if words[2] == "commented" {
			n.Comment = 98
		}
	case "command":
		n.Kind, n.Issue, n.Comment = pipeline.NoticeCommand, number(), 99
		n.Command = command.Line{Name: words[2], Args: words[3]}
		if words[2] == "memory" || words[2] == "remember" {
			n.Command.Args, n.Command.Text = "", words[3]
		}
		if words[2] == "wrong" {
			n.Command.Error = "there is no such command"
		}
	case "edit":
		n.Kind, n.Issue = pipeline.NoticeIssueEdited, number()
		n.Task = pipeline.Task{Title: words[2]}
	case "unlabel":
		n.Kind, n.Issue = pipeline.NoticeUnlabelled, number()
	case "push":
		n.Kind, n.Branch, n.Head = pipeline.NoticePush, words[1], words[2]
	case "base":
		n.Kind, n.Branch, n.Head, n.Why = pipeline.NoticeBaseMoved, "main", words[1], "push to main"
	case "checks":
		n.Kind, n.Head, n.Why = pipeline.NoticeChecks, words[1], "check build: success"
	case "review":
		n.Kind, n.Branch = pipeline.NoticeFeedback, words[1]
		n.Feedback = &pipeline.Feedback{Event: "pull_request_review", Action: "submitted", State: words[2], Body: words[3]}
	case "numbered": // a review with an id, and what becomes of it
		n.Kind, n.Branch = pipeline.NoticeFeedback, words[1]
		n.Feedback = &pipeline.Feedback{Event: "pull_request_review", Action: words[2], State: "changes_requested", Body: words[3], Review: 70}
	case "panic":
		panic("a poisonous payload")
	default:
		return n, errors.New("unreadable payload")
	}
	return n, nil
}

func deliver(t testing.TB, k *keeper, guid, payload string) {
	t.Helper()
	err := k.KeepDeliveries(context.WithoutCancel(t.Context()), []record.Delivery{{GUID: guid, Event: "test", Received: time.Now(), Payload: []byte(payload)}})
	if err != nil {
		t.Fatal(err)
	}
}

func outcome(t testing.TB, k *keeper, guid string) (record.DeliveryState, string) {
	t.Helper()
	d, err := k.Delivery(context.WithoutCancel(t.Context()), guid)
	if err != nil {
		t.Fatal(err)
	}
	return d.State, d.Outcome
}

// reminders counts the events of the kind that tests append from outside: a run
// without a question takes them in, and shows that something happened.
func reminders(t testing.TB, k *keeper, id int64) (n int) {
	t.Helper()
	events, err := k.Events(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Type == pipeline.EventGateReminded {
			n++
		}
	}
	return n
}
