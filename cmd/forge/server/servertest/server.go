package servertest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/incidents"
	"forge/cmd/forge/server"
	"forge/cmd/forge/settings"
	"forge/github/githubtest"
	"forge/learn/production"
	"forge/pipeline"
	"forge/pipeline/needs"
	"forge/pipeline/sandbox/sandboxtest"
	"forge/pipeline/store"
	"forge/pipeline/workspace/workspacetest"
)

// Server is a Forge in this process and a GitHub, with one repository and one issue: small
// enough to try out what can go wrong.
type Server struct {
	T       *testing.T
	GitHub  *githubtest.Server
	Forge   *server.Server
	Issue   int
	Restart func() // stops Forge, and starts it on the same database

	mu      sync.Mutex
	changed chan struct{} // closed at each event
	run     *pipeline.Run
	on      func(*pipeline.Run, pipeline.Event)
}

// Options are what a Server is made of.
type Options struct {
	Files  map[string]string // over the greeter's; an empty text removes
	Tape   string            // default: GreeterTape; WEBHOOK_SECRET in it is the App's
	Body   string            // of the issue
	Title  string
	Author string                                       // of the issue; default: acme
	On     func(*Server, *pipeline.Run, pipeline.Event) // called at each event
	Env    map[string]string                            // of the server, on top

	// Sandbox has commands run in bubblewrap, behind a worker process, with this machine's
	// tools; the test is skipped where that cannot be. Else they run in a workspacetest. A
	// test that is called as part of a TestInSandbox has it.
	Sandbox     bool
	Now         func() time.Time // of the server
	HubNow      func() time.Time // of GitHub
	Prepare     func(stateDir string)
	Wire        func(*server.Options)
	TestTimeout time.Duration // of a test command
	Deployments bool          // the App is told of them
	Deploys     bool          // and may make them
	SignIn      bool          // people sign in to the web pages with GitHub; else they are for this machine
}

// Repo is the repository, with the greeter.
const Repo = "acme/greet"

// New starts both, until the test ends.
func New(t *testing.T, o Options) *Server {
	t.Helper()
	if o.Sandbox = o.Sandbox || strings.HasPrefix(t.Name(), "TestInSandbox/"); o.Sandbox {
		needs.Sandbox(t)
	}
	dir, err := demo.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	manifest := demo.Manifest()
	if o.Deployments {
		manifest = []byte(strings.NewReplacer("# deployments:", "deployments:", "# - deployment", "- deployment").Replace(string(manifest)))
	}
	if o.Deploys {
		manifest = []byte(strings.NewReplacer("# deployments: read", "deployments: write", "# - deployment", "- deployment").Replace(string(manifest)))
	}
	gh, err := githubtest.New(githubtest.Options{Dir: dir, Manifest: manifest, Clock: o.HubNow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gh.Close() })
	Judge(t, gh, cmp.Or(o.Env["FORGE_SLUG"], "forge"))
	files := maps.Clone(Greeter())
	maps.Copy(files, o.Files)
	maps.DeleteFunc(files, func(_, text string) bool { return text == "" })
	if _, err := gh.AddRepo("acme", "greet", files); err != nil {
		t.Fatal(err)
	}
	if _, err := gh.Install(Repo); err != nil {
		t.Fatal(err)
	}
	ts := &Server{T: t, GitHub: gh, changed: make(chan struct{})}
	if o.Title == "" {
		o.Title, o.Body = "The greeting lacks its comma", "It prints `hello Ann` where `hello, Ann` is right."
	}
	if ts.Issue, err = gh.As(cmp.Or(o.Author, "acme")).OpenIssue(Repo, o.Title, o.Body); err != nil {
		t.Fatal(err)
	}
	if o.On != nil {
		ts.on = func(r *pipeline.Run, e pipeline.Event) { o.On(ts, r, e) }
	}
	if o.Tape == "" {
		o.Tape = GreeterTape
	}
	ts.start(dir, o)
	return ts
}

func (ts *Server) start(dir string, o Options) {
	ts.T.Helper()
	env, err := demo.Environment(ts.GitHub, dir, []byte(strings.ReplaceAll(o.Tape, "WEBHOOK_SECRET", ts.GitHub.WebhookSecret)))
	if err != nil {
		ts.T.Fatal(err)
	}
	if o.SignIn {
		ts.signIn(env)
	}
	if o.Prepare != nil {
		o.Prepare(env["FORGE_STATE_DIR"])
	}
	env["FORGE_CALL_TIMEOUT"] = "1s"
	maps.Copy(env, o.Env)
	cfg, err := settings.Server("", func(k string) string { return env[k] })
	if err != nil {
		ts.T.Fatal(err)
	}
	wired := server.Options{Config: cfg, Log: slog.New(slog.DiscardHandler), OnEvents: ts.onEvents, Now: o.Now, TestTimeout: o.TestTimeout, Settle: 10 * time.Millisecond}
	if o.Sandbox {
		wired.Worker = sandboxtest.Worker(ts.T)
	} else {
		wired.Workspaces, wired.HostTool = workspacetest.New(ts.T, workspacetest.GoAlone), sandboxtest.GoAndGit
	}
	if o.Wire != nil {
		o.Wire(&wired)
	}
	ts.Forge, err = server.Listen(ts.T.Context(), wired)
	if err != nil {
		ts.T.Fatal(err)
	}
	ts.Restart = func() {
		ts.Stop()
		ts.start(dir, o)
	}
	ts.T.Cleanup(func() {
		if ts.Forge != nil {
			ts.Stop()
		}
	})
	ts.GitHub.SetHook(ts.Forge.URL + "/webhook")
}

func (ts *Server) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), server.DrainTime)
	defer cancel()
	Kept(ts.T, ts.GitHub, ts.Forge.DB.Delivery)
	if err := ts.Forge.Stop(ctx); err != nil {
		ts.T.Errorf("stop: %v", err)
	}
	ts.Forge = nil
}

func (ts *Server) onEvents(run *pipeline.Run, events []pipeline.Event) {
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

// Until waits until the run is shown as it should be.
func (ts *Server) Until(what string, cond func(*pipeline.Run) bool) *pipeline.Run {
	ts.T.Helper()
	run, ok := ts.Within(60*time.Second, cond)
	if !ok {
		stacks := make([]byte, 1<<20)
		ts.T.Logf("what everybody does:\n%s", stacks[:runtime.Stack(stacks, true)])
		ts.T.Fatalf("no run %s: %+v", what, run)
	}
	return run
}

// Within waits for at most that long until the run is shown as it should be.
func (ts *Server) Within(limit time.Duration, cond func(*pipeline.Run) bool) (*pipeline.Run, bool) {
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

func (ts *Server) UntilState(s pipeline.State) *pipeline.Run {
	ts.T.Helper()
	return ts.Until(string(s), func(r *pipeline.Run) bool { return r.State == s })
}

// Says waits until a comment on the issue or the pull request has the text.
func (ts *Server) Says(text string) {
	ts.T.Helper()
	ctx, cancel := context.WithTimeout(ts.T.Context(), 60*time.Second)
	defer cancel()
	var all string
	err := ts.GitHub.Wait(ctx, func() bool {
		all = ts.Comments()
		return strings.Contains(all, text)
	})
	if err != nil {
		ts.T.Fatalf("nobody says %q:\n%s", text, all)
	}
}

func (ts *Server) Comments() string {
	var b strings.Builder
	i, err := ts.GitHub.Issue(Repo, ts.Issue)
	if err != nil {
		ts.T.Fatal(err)
	}
	pulls, err := ts.GitHub.Pulls(Repo)
	if err != nil {
		ts.T.Fatal(err)
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

func (ts *Server) Label(who string) {
	ts.T.Helper()
	if err := ts.GitHub.As(who).Label(Repo, ts.Issue, "forge"); err != nil {
		ts.T.Fatal(err)
	}
}

func (ts *Server) Comment(who, text string) {
	ts.T.Helper()
	if _, err := ts.GitHub.As(who).Comment(Repo, ts.Issue, text); err != nil {
		ts.T.Fatal(err)
	}
}

// Outcome waits until the newest delivery of the kind has one.
func (ts *Server) Outcome(event, want string) {
	ts.T.Helper()
	var seen []string
	Eventually(ts.T, func() bool {
		list, err := ts.Forge.DB.Deliveries(ts.T.Context(), store.DeliveryFilter{Repo: Repo})
		ts.Must(err)
		seen = nil
		for _, d := range list {
			if d.Event == event {
				seen = append(seen, d.Outcome)
			}
		}
		return slices.ContainsFunc(seen, func(o string) bool { return strings.Contains(o, want) })
	}, func() string { return fmt.Sprintf("no %s has the outcome %q; they have %q", event, want, seen) })
}

// Eventually waits until something is so that nothing tells of; otherwise says what is
// there instead.
func Eventually(t testing.TB, so func() bool, otherwise func() string) {
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

// Box finds the box of a choice in the question: its comment, and which one it is.
func (ts *Server) Box(choice string) (comment int64, nth int) {
	ts.T.Helper()
	pulls, err := ts.GitHub.Pulls(Repo)
	if err != nil {
		ts.T.Fatal(err)
	}
	i, err := ts.GitHub.Issue(Repo, ts.Issue)
	if err != nil {
		ts.T.Fatal(err)
	}
	list := i.Comments
	for _, p := range pulls {
		list = append(list, p.Comments...)
	}
	return ts.BoxIn(list, choice)
}

// BoxIn finds the box of a choice in one of some comments.
func (ts *Server) BoxIn(list []githubtest.Comment, choice string) (comment int64, nth int) {
	ts.T.Helper()
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
	ts.T.Fatalf("no box for %q", choice)
	return 0, 0
}

// Run is the newest run, as it was shown last.
func (ts *Server) Run() *pipeline.Run {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.run
}

// GreenMerges looks at the merges of the newest run.
func (ts *Server) GreenMerges() {
	ts.T.Helper()
	run := ts.Run()
	GreenMerges(ts.T, ts.GitHub.URL+"/"+Repo+".git", run)
}

// Incident waits until an incident is as it should be.
func (ts *Server) Incident(id int64, cond func(*production.Incident) bool) *production.Incident {
	ts.T.Helper()
	var i *production.Incident
	Eventually(ts.T, func() bool {
		row, err := ts.Forge.DB.Incident(ts.T.Context(), id)
		if err != nil {
			return false // it is not there yet
		}
		i, err = incidents.Folded(row)
		ts.Must(err)
		return cond(i)
	}, func() string { return fmt.Sprintf("incident %d never came to that: %+v", id, i) })
	return i
}

// Hook reports by one of Forge's hooks, and returns what it answers.
func (ts *Server) Hook(name, token, body string) (status int, answer string) {
	ts.T.Helper()
	req, err := http.NewRequestWithContext(ts.T.Context(), http.MethodPost, ts.Forge.URL+"/hooks/"+name, strings.NewReader(body))
	ts.Must(err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	ts.Must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ts.Must(err)
	return resp.StatusCode, string(text)
}

// Deployed waits until so many deployments have succeeded.
func (ts *Server) Deployed(n int) {
	ts.T.Helper()
	var done int
	Eventually(ts.T, func() bool {
		list, err := ts.Forge.DB.Deployments(ts.T.Context(), store.DeploymentFilter{Limit: 1000})
		ts.Must(err)
		done = 0
		for _, d := range list {
			if !d.Succeeded.IsZero() {
				done++
			}
		}
		return done == n
	}, func() string { return fmt.Sprintf("%d deployments have succeeded, want %d", done, n) })
}

// Must ends the test with the error, if there is one.
func (ts *Server) Must(err error) {
	ts.T.Helper()
	if err != nil {
		ts.T.Fatal(err)
	}
}

// Thread waits until something is said in the conversation that a comment began.
func (ts *Server) Thread(comment int64, text string) {
	ts.T.Helper()
	ctx, cancel := context.WithTimeout(ts.T.Context(), 60*time.Second)
	defer cancel()
	if err := ts.GitHub.Wait(ctx, func() bool {
		pulls, err := ts.GitHub.Pulls(Repo)
		ts.Must(err)
		return slices.ContainsFunc(pulls, func(p githubtest.Pull) bool {
			return slices.ContainsFunc(p.Threads, func(t githubtest.Thread) bool {
				return t.Comments[0].ID == comment && slices.ContainsFunc(t.Comments, func(c githubtest.Comment) bool { return strings.Contains(c.Body, text) })
			})
		})
	}); err != nil {
		ts.T.Fatalf("nobody says %q there: %v", text, err)
	}
}

// Again asks for the same once more, in an issue of its own.
func (ts *Server) Again() *pipeline.Run {
	ts.T.Helper()
	n, err := ts.GitHub.As("acme").OpenIssue(Repo, "The greeting lacks its comma", "It still prints `hello Ann` where `hello, Ann` is right.")
	ts.Must(err)
	ts.Must(ts.GitHub.As("acme").Label(Repo, n, "forge"))
	return ts.Until("of the second issue", func(r *pipeline.Run) bool { return r.Task.Issue == n && r.State == pipeline.StateVerified })
}

// Event waits for an event of a run.
func (ts *Server) Event(run int64, typ pipeline.EventType) pipeline.Event {
	ts.T.Helper()
	var found pipeline.Event
	Eventually(ts.T, func() bool {
		events, err := ts.Forge.DB.Events(ts.T.Context(), run, 0)
		ts.Must(err)
		i := slices.IndexFunc(events, func(e pipeline.Event) bool { return e.Type == typ })
		if i >= 0 {
			found = events[i]
		}
		return i >= 0
	}, func() string { return fmt.Sprintf("run %d has no %s", run, typ) })
	return found
}

// Learnings waits until the memory is as it should be, and returns it.
func (ts *Server) Learnings(what string, cond func([]pipeline.Learning) bool) []pipeline.Learning {
	ts.T.Helper()
	var list []pipeline.Learning
	Eventually(ts.T, func() bool {
		var err error
		list, err = ts.Forge.DB.Learnings(ts.T.Context(), store.MemoryFilter{})
		ts.Must(err)
		return cond(list)
	}, func() string { return fmt.Sprintf("it never remembers %s; it has %+v", what, list) })
	return list
}

// Remembered lists what the test's server remembers, in every state.
func (ts *Server) Remembered() []pipeline.Learning {
	ts.T.Helper()
	list, err := ts.Forge.DB.Learnings(ts.T.Context(), store.MemoryFilter{States: []pipeline.LearningState{"*"}})
	if err != nil {
		ts.T.Fatal(err)
	}
	return list
}

// Remarks comments on the diff of a pull request, and returns the comment.
func (ts *Server) Remarks(who string, pull, line int, text string) int64 {
	ts.T.Helper()
	ts.Must(ts.GitHub.As(who).Review(Repo, pull, githubtest.Review{Event: "COMMENT", Path: "hi.sh", Line: line, Comment: text}))
	pulls, err := ts.GitHub.Pulls(Repo)
	ts.Must(err)
	threads := pulls[len(pulls)-1].Threads
	return threads[len(threads)-1].Comments[0].ID
}

// Push commits files to a branch of the test's repository, as a person.
func (ts *Server) Push(branch, message string, files map[string]string) {
	ts.T.Helper()
	texts := map[string]*string{}
	for name, text := range files {
		texts[name] = &text
	}
	if _, err := ts.GitHub.As("acme").PushFiles(Repo, githubtest.Push{Branch: branch, Message: message, Files: texts}); err != nil {
		ts.T.Fatal(err)
	}
}

// signIn lets people sign in to the web pages with the local GitHub.
func (ts *Server) signIn(env map[string]string) {
	ts.T.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // GitHub must know the address before the server has it
	ts.Must(err)
	ts.Must(l.Close())
	env["FORGE_LISTEN"], env["FORGE_PUBLIC_URL"] = l.Addr().String(), "http://"+l.Addr().String()
	env["FORGE_DASHBOARD"], env["FORGE_CLIENT_ID"], env["FORGE_CLIENT_SECRET"] = "github", ts.GitHub.ClientID, ts.GitHub.ClientSecret
	ts.Must(ts.GitHub.SetCallbacks(env["FORGE_PUBLIC_URL"] + "/login/callback"))
}

// Page asks for one of Forge's pages, as a program of whoever runs it does.
func (ts *Server) Page(path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ts.T.Context(), http.MethodGet, ts.Forge.PagesURL+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+ts.Forge.PagesKey)
	return http.DefaultClient.Do(r)
}
