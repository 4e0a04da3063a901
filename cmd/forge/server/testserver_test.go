package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/settings"
	"forge/github/githubtest"
	"forge/pipeline"
	"forge/pipeline/deps"
	"forge/pipeline/needs"
	"forge/pipeline/sandbox"
	"forge/pipeline/sandbox/sandboxtest"
	"forge/pipeline/store"
	"forge/pipeline/workspace"
	"forge/pipeline/workspace/workspacetest"
)

// testServer is a Forge in this process and a GitHub, with one repository and one
// issue: small enough to try out what can go wrong.
type testServer struct {
	t       *testing.T
	gh      *githubtest.Server
	s       *Server
	issue   int
	restart func() // stops the server, and starts it on the same database

	mu      sync.Mutex
	changed chan struct{} // closed at each event
	run     *pipeline.Run
	on      func(*pipeline.Run, pipeline.Event)
}

type testOptions struct {
	files  map[string]string // over the greeter's; an empty text removes
	tape   string            // default: servertest.GreeterTape; WEBHOOK_SECRET in it is the App's
	body   string            // of the issue
	title  string
	author string                                           // of the issue; default: acme
	on     func(*testServer, *pipeline.Run, pipeline.Event) // called at each event
	env    map[string]string                                // of the server, on top

	now         func() time.Time // of the server
	hubNow      func() time.Time // of GitHub
	wire        func(*Options)
	deployments bool // the App is told of them
	deploys     bool // and may make them
}

const greetRepo = "acme/greet"

// goAlone answers what tools there are, which takes a second where there are many.
func goAlone(_ string, c workspace.Command) (workspace.Result, bool) {
	if slices.Contains(c.Args, deps.ToolScript) || slices.Contains(c.Args, deps.MoreToolScript) {
		return workspace.Result{Stdout: []byte("go go1.26\n")}, true
	}
	return workspace.Result{}, false
}

// goAndGit is a machine without other tools: to ask Maven, npm and the rest for their
// settings takes seconds, and what they say is another thing on each machine.
func goAndGit(ctx context.Context, name string, args ...string) string {
	if name != "git" && name != "go" {
		return ""
	}
	return sandbox.HostTool(ctx, name, args...)
}

// inSandbox has the commands of a test run in bubblewrap, behind a worker process: of cases
// that are played there, most of them once more. Else they run in a workspacetest.
func inSandbox(t *testing.T) bool {
	return strings.HasPrefix(t.Name(), "TestInSandbox/") || strings.HasPrefix(t.Name(), "TestSlowCases/")
}

func newTestServer(t *testing.T, o testOptions) *testServer {
	t.Helper()
	if inSandbox(t) {
		needs.Sandbox(t)
	}
	dir, err := demo.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	manifest := demo.Manifest()
	if o.deployments {
		manifest = []byte(strings.NewReplacer("# deployments:", "deployments:", "# - deployment", "- deployment").Replace(string(manifest)))
	}
	if o.deploys {
		manifest = []byte(strings.NewReplacer("# deployments: read", "deployments: write", "# - deployment", "- deployment").Replace(string(manifest)))
	}
	gh, err := githubtest.New(githubtest.Options{Dir: dir, Manifest: manifest, Clock: o.hubNow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gh.Close() })
	servertest.Judge(t, gh, cmp.Or(o.env["FORGE_SLUG"], "forge"))
	files := maps.Clone(servertest.Greeter())
	maps.Copy(files, o.files)
	maps.DeleteFunc(files, func(_, text string) bool { return text == "" })
	if _, err := gh.AddRepo("acme", "greet", files); err != nil {
		t.Fatal(err)
	}
	if _, err := gh.Install(greetRepo); err != nil {
		t.Fatal(err)
	}
	ts := &testServer{t: t, gh: gh, changed: make(chan struct{})}
	if o.title == "" {
		o.title, o.body = "The greeting lacks its comma", "It prints `hello Ann` where `hello, Ann` is right."
	}
	if ts.issue, err = gh.As(cmp.Or(o.author, "acme")).OpenIssue(greetRepo, o.title, o.body); err != nil {
		t.Fatal(err)
	}
	if o.on != nil {
		ts.on = func(r *pipeline.Run, e pipeline.Event) { o.on(ts, r, e) }
	}
	if o.tape == "" {
		o.tape = servertest.GreeterTape
	}
	ts.startServer(dir, o)
	return ts
}

func (ts *testServer) startServer(dir string, o testOptions) {
	ts.t.Helper()
	env, err := demo.Environment(ts.gh, dir, []byte(strings.ReplaceAll(o.tape, "WEBHOOK_SECRET", ts.gh.WebhookSecret)))
	if err != nil {
		ts.t.Fatal(err)
	}
	env["FORGE_CALL_TIMEOUT"] = "1s"
	maps.Copy(env, o.env)
	cfg, err := settings.Server("", func(k string) string { return env[k] })
	if err != nil {
		ts.t.Fatal(err)
	}
	wired := Options{Config: cfg, Log: slog.New(slog.DiscardHandler), OnEvents: ts.onEvents, Now: o.now, Settle: 10 * time.Millisecond, HostTool: goAndGit}
	if inSandbox(ts.t) {
		wired.Worker = sandboxtest.Worker(ts.t)
	} else {
		wired.Workspaces = workspacetest.New(ts.t, goAlone)
	}
	if o.wire != nil {
		o.wire(&wired)
	}
	ts.s, err = Listen(ts.t.Context(), wired)
	if err != nil {
		ts.t.Fatal(err)
	}
	ts.restart = func() {
		ts.stop()
		ts.startServer(dir, o)
	}
	ts.t.Cleanup(func() {
		if ts.s != nil {
			ts.stop()
		}
	})
	ts.gh.SetHook(ts.s.URL + "/webhook")
}

func (ts *testServer) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), DrainTime)
	defer cancel()
	servertest.Kept(ts.t, ts.gh, ts.s.DB.Delivery)
	if err := ts.s.Stop(ctx); err != nil {
		ts.t.Errorf("stop: %v", err)
	}
	ts.s = nil
}

func (ts *testServer) onEvents(run *pipeline.Run, events []pipeline.Event) {
	for _, e := range events {
		if ts.on != nil {
			ts.on(run, e)
		}
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if run.Part != nil { // what comes of it is its parent's to show
	} else if ts.run == nil || ts.run.ID < run.ID || ts.run.ID == run.ID && ts.run.Seq < run.Seq { // two that append at the same time tell in any order
		copied := *run
		copied.Parts = slices.Clone(run.Parts) // which the run changes in place
		ts.run = &copied
	}
	close(ts.changed)
	ts.changed = make(chan struct{})
}

// until waits until the run is shown as it should be.
func (ts *testServer) until(what string, cond func(*pipeline.Run) bool) *pipeline.Run {
	ts.t.Helper()
	run, ok := ts.within(60*time.Second, cond)
	if !ok {
		stacks := make([]byte, 1<<20)
		ts.t.Logf("what everybody does:\n%s", stacks[:runtime.Stack(stacks, true)])
		ts.t.Fatalf("no run %s: %+v", what, run)
	}
	return run
}

// within waits for at most that long until the run is shown as it should be.
func (ts *testServer) within(limit time.Duration, cond func(*pipeline.Run) bool) (*pipeline.Run, bool) {
	timeout := time.After(limit)
	for {
		ts.mu.Lock()
		run, changed := ts.run, ts.changed
		ts.mu.Unlock()
		if run != nil && run.Published.Rev >= run.Rev && cond(run) {
			return run, true
		}
		select {
		case <-changed:
		case <-timeout:
			return run, false
		}
	}
}

func (ts *testServer) untilState(s pipeline.State) *pipeline.Run {
	ts.t.Helper()
	return ts.until(string(s), func(r *pipeline.Run) bool { return r.State == s })
}

// says waits until a comment on the issue or the pull request has the text.
func (ts *testServer) says(text string) {
	ts.t.Helper()
	ctx, cancel := context.WithTimeout(ts.t.Context(), 60*time.Second)
	defer cancel()
	var all string
	err := ts.gh.Wait(ctx, func() bool {
		all = ts.comments()
		return strings.Contains(all, text)
	})
	if err != nil {
		ts.t.Fatalf("nobody says %q:\n%s", text, all)
	}
}

func (ts *testServer) comments() string {
	var b strings.Builder
	i, err := ts.gh.Issue(greetRepo, ts.issue)
	if err != nil {
		ts.t.Fatal(err)
	}
	pulls, err := ts.gh.Pulls(greetRepo)
	if err != nil {
		ts.t.Fatal(err)
	}
	list := i.Comments
	for _, p := range pulls {
		list = append(list, p.Comments...)
		b.WriteString(p.Body + "\n")
	}
	for _, c := range list {
		b.WriteString(c.Author + ": " + c.Body + "\n")
	}
	return b.String()
}

func (ts *testServer) label(who string) {
	ts.t.Helper()
	if err := ts.gh.As(who).Label(greetRepo, ts.issue, "forge"); err != nil {
		ts.t.Fatal(err)
	}
}

func (ts *testServer) comment(who, text string) {
	ts.t.Helper()
	if _, err := ts.gh.As(who).Comment(greetRepo, ts.issue, text); err != nil {
		ts.t.Fatal(err)
	}
}

// outcome waits until the newest delivery of the kind has one.
func (ts *testServer) outcome(event, want string) {
	ts.t.Helper()
	var seen []string
	eventually(ts.t, func() bool {
		list, err := ts.s.DB.Deliveries(ts.t.Context(), deliveriesOf(greetRepo))
		ts.must(err)
		seen = nil
		for _, d := range list {
			if d.Event == event {
				seen = append(seen, d.Outcome)
			}
		}
		return slices.ContainsFunc(seen, func(o string) bool { return strings.Contains(o, want) })
	}, func() string { return fmt.Sprintf("no %s has the outcome %q; they have %q", event, want, seen) })
}

// eventually waits until something is so that nothing tells of; otherwise says what is
// there instead.
func eventually(t testing.TB, so func() bool, otherwise func() string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(2 * time.Minute); !so(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal(otherwise())
		}
	}
}

// box finds the box of a choice in the question: its comment, and which one it is.
func (ts *testServer) box(choice string) (comment int64, nth int) {
	ts.t.Helper()
	pulls, err := ts.gh.Pulls(greetRepo)
	if err != nil {
		ts.t.Fatal(err)
	}
	i, err := ts.gh.Issue(greetRepo, ts.issue)
	if err != nil {
		ts.t.Fatal(err)
	}
	list := i.Comments
	for _, p := range pulls {
		list = append(list, p.Comments...)
	}
	return ts.boxIn(list, choice)
}

// boxIn finds the box of a choice in one of some comments.
func (ts *testServer) boxIn(list []githubtest.Comment, choice string) (comment int64, nth int) {
	ts.t.Helper()
	for _, c := range list {
		n := 0
		for line := range strings.SplitSeq(c.Body, "\n") {
			if !strings.HasPrefix(line, "- [ ] ") {
				continue
			}
			if strings.Contains(line, choice) {
				return c.ID, n
			}
			n++
		}
	}
	ts.t.Fatalf("no box for %q", choice)
	return 0, 0
}

func deliveriesOf(repo string) store.DeliveryFilter { return store.DeliveryFilter{Repo: repo} }

// greenMerges looks at the merges of the newest run.
func (ts *testServer) greenMerges() {
	ts.t.Helper()
	ts.mu.Lock()
	run := ts.run
	ts.mu.Unlock()
	servertest.GreenMerges(ts.t, ts.gh.URL+"/"+greetRepo+".git", run)
}
