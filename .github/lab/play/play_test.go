// Package play has the tests that play whole runs in this process and take minutes: real
// projects with their package managers, modules that are stopped at any moment, the web
// pages in a browser.
package play

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/settings"
	"forge/github/githubtest"
	"forge/lab/feature"
	"forge/pipeline"
	"forge/pipeline/module"
	"forge/pipeline/needs"
	"forge/pipeline/sandbox/sandboxtest"
)

// testServer is a Forge in this process and a GitHub, with one repository and one
// issue: small enough to try out what can go wrong.
type testServer struct {
	t       *testing.T
	gh      *githubtest.Server
	s       *server.Server
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
	testTimeout time.Duration    // of a test command
	prepare     func(stateDir string)
	wire        func(*server.Options)
	deployments bool // the App is told of them
	deploys     bool // and may make them
	signIn      bool // people sign in to the web pages with GitHub; else they are for this machine
}

const greetRepo = "acme/greet"

func newTestServer(t *testing.T, o testOptions) *testServer {
	t.Helper()
	needs.Sandbox(t)
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
	if o.signIn {
		ts.signIn(env)
	}
	maps.Copy(env, o.env)
	if o.prepare != nil {
		o.prepare(env["FORGE_STATE_DIR"])
	}
	cfg, err := settings.Server("", func(k string) string { return env[k] })
	if err != nil {
		ts.t.Fatal(err)
	}
	wired := server.Options{Config: cfg, Log: slog.New(slog.DiscardHandler), OnEvents: ts.onEvents, Now: o.now, TestTimeout: o.testTimeout, Settle: 10 * time.Millisecond, Worker: sandboxtest.Worker(ts.t)}
	if o.wire != nil {
		o.wire(&wired)
	}
	ts.s, err = server.Listen(ts.t.Context(), wired)
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
	ctx, cancel := context.WithTimeout(context.Background(), server.DrainTime)
	defer cancel()
	servertest.Kept(ts.t, ts.gh, ts.s.DB.Delivery)
	if err := ts.s.Stop(ctx); err != nil {
		ts.t.Errorf("stop: %v", err)
	}
	ts.s = nil
}

// signIn lets people sign in to the web pages with the local GitHub.
func (ts *testServer) signIn(env map[string]string) {
	ts.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // GitHub must know the address before the server has it
	ts.must(err)
	ts.must(l.Close())
	env["FORGE_LISTEN"], env["FORGE_PUBLIC_URL"] = l.Addr().String(), "http://"+l.Addr().String()
	env["FORGE_DASHBOARD"], env["FORGE_CLIENT_ID"], env["FORGE_CLIENT_SECRET"] = "github", ts.gh.ClientID, ts.gh.ClientSecret
	ts.must(ts.gh.SetCallbacks(env["FORGE_PUBLIC_URL"] + "/login/callback"))
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

// labelInRound labels the issue, and in later rounds another one, by its title.
func (ts *testServer) labelInRound(round int, title string) {
	ts.t.Helper()
	if round > 0 {
		var err error
		ts.issue, err = ts.gh.As("acme").OpenIssue(greetRepo, title, "Again.")
		ts.must(err)
	}
	ts.label("acme")
}

func (ts *testServer) comment(who, text string) {
	ts.t.Helper()
	if _, err := ts.gh.As(who).Comment(greetRepo, ts.issue, text); err != nil {
		ts.t.Fatal(err)
	}
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

func (ts *testServer) must(err error) {
	ts.t.Helper()
	if err != nil {
		ts.t.Fatal(err)
	}
}

// again asks for the same once more, in an issue of its own.
func (ts *testServer) again() *pipeline.Run {
	ts.t.Helper()
	n, err := ts.gh.As("acme").OpenIssue(greetRepo, "The greeting lacks its comma", "It still prints `hello Ann` where `hello, Ann` is right.")
	ts.must(err)
	ts.must(ts.gh.As("acme").Label(greetRepo, n, "forge"))
	return ts.until("of the second issue", func(r *pipeline.Run) bool { return r.Task.Issue == n && r.State == pipeline.StateVerified })
}

// event waits for an event of a run.
func (ts *testServer) event(run int64, typ pipeline.EventType) pipeline.Event {
	ts.t.Helper()
	var found pipeline.Event
	eventually(ts.t, func() bool {
		events, err := ts.s.DB.Events(ts.t.Context(), run, 0)
		ts.must(err)
		i := slices.IndexFunc(events, func(e pipeline.Event) bool { return e.Type == typ })
		if i >= 0 {
			found = events[i]
		}
		return i >= 0
	}, func() string { return fmt.Sprintf("run %d has no %s", run, typ) })
	return found
}

// modular is a server with a feature's issue.
func modular(t *testing.T, f feature.Feature, o testOptions) *testServer {
	t.Helper()
	return modularWith(t, f, o, "")
}

// modularWith is the same with more sections of its model's tape.
func modularWith(t *testing.T, f feature.Feature, o testOptions, tape string) *testServer {
	t.Helper()
	o.files, o.tape = f.Files(), f.Tape()+tape
	o.files["greet.sh"] = ""
	o.title, o.body = "Letters", "Each piece says its own letter."
	return newTestServer(t, o)
}

// verifiedWith waits until a run is verified with its modules; one that asks ends it.
func (ts *testServer) verifiedWith(modules int) *pipeline.Run {
	ts.t.Helper()
	asks := func(p module.Part) bool { return p.Question != "" && p.Left == "" }
	run, ok := ts.within(10*time.Minute, func(r *pipeline.Run) bool {
		return r.State != pipeline.StateRunning || slices.ContainsFunc(r.Parts, asks)
	})
	if !ok || run.State != pipeline.StateVerified || len(run.Parts) != modules {
		ts.t.Fatalf("the run is %s with %d modules, want %d: %+v\n%s", run.State, len(run.Parts), modules, run.Gates, ts.comments())
	}
	return run
}

// gatesOf are the settings of the greeter with gates of quality.
func gatesOf(gates string) map[string]string {
	return map[string]string{".github/forge.yml": "tests:\n  commands: [sh test.sh]\nquality:\n" + gates}
}

// goFiles are the files of a package in Go. Its test takes no time: nothing is compiled
// for it, while the gate builds the package alone, and not all of Go for it.
func goFiles(gates string) map[string]string {
	return map[string]string{
		"greet.sh":          "",
		"test.sh":           "echo TAP version 13\necho 1..1\nif grep -q '\"hello' words/words.go; then echo ok 1 - greets; else echo not ok 1 - greets; fi\n",
		".github/forge.yml": "tests:\n  commands: [sh test.sh]\nquality:\n" + gates,
		"go.mod":            "module example.com/greet\n\ngo 1.22\n",
		"names/names.go":    "package names\n\nfunc First() string { return \"Ann\" }\n",
		"words/words.go":    "package words\n\nfunc Greet(name string) string { return \"hello \" + name }\n",
	}
}

func wait(ms int) { <-time.After(time.Duration(ms) * time.Millisecond) }

// greenMerges looks at the merges of the newest run.
func (ts *testServer) greenMerges() {
	ts.t.Helper()
	ts.mu.Lock()
	run := ts.run
	ts.mu.Unlock()
	servertest.GreenMerges(ts.t, ts.gh.URL+"/"+greetRepo+".git", run)
}

// long leaves a test out that takes minutes, where the short ones alone are asked for.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes minutes: left out with -short")
	}
}
