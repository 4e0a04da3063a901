package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/cmd/forge/bus"
	"forge/cmd/forge/demo"
	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/shell"
	"forge/github/githubtest"
	"forge/pipeline"
	"forge/pipeline/agent/agenttest"
	"forge/pipeline/module"
	"forge/pipeline/needs"
	"forge/pipeline/record"
	"forge/pipeline/workspace"
	"forge/pipeline/workspace/workspacetest"
)

const greetRepo = "acme/greet"

// cli runs commands in this process, in a state directory and an environment of their own.
type cli struct {
	t      *testing.T
	spaces workspace.Workspaces // nil: the sandbox
	dir    string               // the state directory's parent
	repo   string               // of [newLocalCLI]: a local git repository with the servertest.Greeter() in it
	env    map[string]string
}

func newCLI(t *testing.T) *cli {
	t.Helper()
	dir, err := demo.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &cli{t: t, dir: dir, env: map[string]string{"HOME": dir, "FORGE_STATE_DIR": filepath.Join(dir, "state")}}
	if !inSandbox(t) {
		c.spaces = workspacetest.New(t, nil)
	}
	return c
}

// newLocalCLI has a local repository, too.
func newLocalCLI(t *testing.T) *cli {
	t.Helper()
	c := newCLI(t)
	c.repo = filepath.Join(c.dir, "greet")
	c.env["FORGE_CALL_TIMEOUT"] = "1s" // and so long what was refused is tried again after
	template, err := greeter()
	if err == nil {
		err = os.CopyFS(c.repo, os.DirFS(template))
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// greeter is the repository that the tests copy.
var greeter = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "greet")
	if err := writeFiles(dir, servertest.Greeter()); err != nil {
		return "", err
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main", "--template="}, {"add", "-A"}, commitArgs("init")} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("git %v: %w\n%s", args, err, out)
		}
	}
	return dir, nil
})

func commitArgs(message string) []string {
	return []string{"-c", "user.name=ann", "-c", "user.email=ann@example.com", "commit", "-q", "-m", message}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// writeFiles writes texts into a directory, by their path in it.
func writeFiles(dir string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// write writes texts into the local repository.
func (c *cli) write(files map[string]string) {
	c.t.Helper()
	if err := writeFiles(c.repo, files); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cli) git(args ...string) string {
	c.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = c.repo
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// context is one in which commands read the environment of c, and work in its workspaces.
func (c *cli) context() context.Context {
	ctx := context.WithValue(c.t.Context(), wiring{}, func(o *server.Options) { o.Workspaces, o.HostTool = c.spaces, noTool })
	return shell.WithEnvironment(ctx, func(name string) string { return c.env[name] })
}

// noTool is a machine without tools that could be asked for the settings of registries.
func noTool(context.Context, string, ...string) string { return "" }

// inSandbox has a test of [TestInSandbox] run its commands in the sandbox.
func inSandbox(t *testing.T) bool {
	in := strings.HasPrefix(t.Name(), "TestInSandbox/")
	if in {
		needs.Sandbox(t)
	}
	return in
}

// tape writes a tape and names it as a model.
func (c *cli) tape(text string) string {
	c.t.Helper()
	return "tape:" + c.file("tape.txtar", text)
}

// run runs a command and wants its exit code, and texts in what it prints.
func (c *cli) run(code int, want []string, args ...string) string {
	c.t.Helper()
	var out, errs bytes.Buffer
	got := Main(c.context(), args, &out, &errs)
	all := out.String() + errs.String()
	if got != code {
		c.t.Fatalf("forge %q exits with %d, want %d:\n%s", args, got, code, all)
	}
	for _, w := range want {
		if !strings.Contains(all, w) {
			c.t.Errorf("forge %q does not say %q:\n%s", args, w, all)
		}
	}
	return out.String()
}

// A model that cannot be used is told with its address before a run is made.
func TestNoRunWithoutAModel(t *testing.T) {
	t.Parallel()
	c := newLocalCLI(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>a shop</html>") }))
	defer web.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, tt := range []struct {
		url, model string
		say        []string
	}{
		{web.URL, "", []string{"no model is set", "FORGE_MODEL"}},
		{web.URL + "/v1", "openai/llama", []string{"web page", web.URL + "/v1/", "openai_base_url"}},
		{gone.URL + "/v1", "openai/llama", []string{"could not be reached", gone.URL + "/v1"}},
	} {
		c.env["OPENAI_BASE_URL"], c.env["FORGE_MODEL"] = tt.url, tt.model
		c.run(shell.Failed, append(tt.say, "no run was made"), "run", "--repo", c.repo, "Put a comma after hello")
		c.run(shell.Done, []string{"No runs yet"}, "runs")
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run(shell.Done, []string{"forge "}, "version")
	c.run(shell.Misused, []string{"unknown flag", "--help"}, "runs", "--jsn")
	c.run(shell.Misused, []string{"takes no arguments"}, "serve", "now")
	c.run(shell.Misused, []string{"FORGE_APP_ID", "FORGE_WEBHOOK_SECRET"}, "serve")
	c.run(shell.Misused, []string{"is not a run's number"}, "show", "x")
	c.run(shell.Misused, []string{"an issue's URL, or a task in words"}, "run")
	c.run(shell.Misused, []string{"--repo"}, "run", "--repo", filepath.Join(c.dir, "nowhere"), "do something")
	for _, args := range [][]string{{"show", "7"}, {"answer", "7", "accept"}, {"reset", "7"}, {"resume", "7"}, {"replay", "7"}} {
		c.run(shell.Failed, []string{"there is no run 7; `forge runs` lists them"}, args...)
	}
	c.run(shell.Misused, []string{"no command \"serv\"", "Did you mean `forge serve`?"}, "serv")
	c.run(shell.Done, []string{"forge "}, "--version")
	c.run(shell.Done, []string{"No runs yet"}, "runs")
	var schema struct{ Properties map[string]any }
	if err := json.Unmarshal([]byte(c.run(shell.Done, nil, "config", "schema")), &schema); err != nil || schema.Properties["loop"] == nil {
		t.Errorf("config schema: %v, %+v", err, schema)
	}
	if got := c.run(shell.Done, nil, "runs", "--json"); strings.TrimSpace(got) != "[]" {
		t.Errorf("runs --json of nothing = %q, want []", got)
	}
}

// V9: where there is no GitHub to open an issue on, it is said where a module that is
// left for later stays.
func TestLeftForLater(t *testing.T) {
	t.Parallel()
	parts := []module.Part{{ID: "a", Run: 8, Merged: "1"},
		{ID: "b", Run: 9, Branch: "forge/x--b", Base: "1", Head: "2", Left: "left out by mia", By: "mia", How: module.Later}, {ID: "c", Left: "it needs b"}}
	got := strings.Join(keptLater(&pipeline.Run{Parts: parts}), "\n")
	if !strings.HasPrefix(got, "The module b is left for later by mia. No issue") || !strings.Contains(got, "forge/x--b") || strings.Contains(got, "\n") {
		t.Errorf("on a local folder it says %q", got)
	}
	parts[1].Head = parts[1].Base
	if got := strings.Join(keptLater(&pipeline.Run{Parts: parts}), "\n"); strings.Contains(got, "forge/x--b") || !strings.Contains(got, "no work of it yet") {
		t.Errorf("of a module without a commit it says %q", got)
	}
	parts[1].By = "" // of an older run
	if got := strings.Join(keptLater(&pipeline.Run{Parts: parts}), "\n"); !strings.HasPrefix(got, "The module b is left for later (left out by mia). No") {
		t.Errorf("where nobody is named it says %q", got)
	}
	if got := keptLater(&pipeline.Run{Repo: pipeline.Repo{ID: 42}, Parts: parts}); got != nil {
		t.Errorf("on GitHub it says %q", got)
	}
}

// A run with modules has its calls on several tapes: that is said before anything is done.
func TestUnplayable(t *testing.T) {
	t.Parallel()
	for want, run := range map[string]*pipeline.Run{
		"a run with modules cannot be replayed":             {ID: 7, Parts: []module.Part{{ID: "a"}, {ID: "b", Run: 9}}},
		"`forge replay 9 --tape FILE` that of the module b": {ID: 7, Parts: []module.Part{{ID: "a"}, {ID: "b", Run: 9}}},
		"it builds the module b of run 7":                   {ID: 9, Part: &module.Of{Run: 7, Module: module.Module{ID: "b"}}},
	} {
		if err := unplayable(run); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of run %d: %v, want %q", run.ID, err, want)
		}
	}
	if err := unplayable(&pipeline.Run{ID: 7, Parts: []module.Part{{ID: "a", Left: "left out by mia"}}}); err != nil {
		t.Errorf("of a run whose modules never began: %v", err)
	}
}

// What is wrong with a local folder is said in words of a local folder.
func TestLocalFolders(t *testing.T) {
	t.Parallel()
	c := newLocalCLI(t)
	c.env["FORGE_MODEL"] = c.tape(servertest.GreeterTape)
	plain, empty := filepath.Join(c.dir, "plain"), filepath.Join(c.dir, "empty")
	for _, dir := range []string{plain, empty} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "init", "-q", empty).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	for dir, want := range map[string]string{plain: "there is no .git in it", empty: "needs a first commit", filepath.Join(c.repo, "greet.sh"): "is a file"} {
		if out := c.run(shell.Failed, []string{want}, "run", "--repo", dir, "do it"); strings.Contains(out, "GitHub") {
			t.Errorf("%s: it speaks of GitHub:\n%s", dir, out)
		}
	}
}

// A run that was interrupted is resumed by the command that the interrupted one names.
func TestResume(t *testing.T) {
	t.Parallel()
	c := newLocalCLI(t)
	c.env["FORGE_MODEL"] = c.tape(servertest.GreeterTape)
	ctx, cancel := context.WithCancel(c.context())
	var out bytes.Buffer
	if code := Main(ctx, []string{"run", "--repo", c.repo, "Put a comma after hello"}, writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte("implement")) {
			cancel()
		}
		return out.Write(p)
	}), &out); code != shell.Failed || !strings.Contains(out.String(), "Go on with `forge resume 1`.") {
		t.Fatalf("interrupted: exit %d\n%s", code, out.String())
	}
	c.run(shell.Done, []string{"verified"}, "resume", "1")
	c.run(shell.Done, []string{"is verified", "nothing to resume", "forge answer 1 continue"}, "resume", "1")
	c.run(shell.Done, []string{"reviewed and tested again", "verified"}, "answer", "1", "continue")
	c.run(shell.Failed, nil, "resume", "9")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Covers T4, T6, I2, V1, M1, M2, V6: a task in words on a local repository, and every view
// of the run that comes of it; then the same again from its tape.
func TestLocalRun(t *testing.T) {
	t.Parallel()
	c := newLocalCLI(t)
	models, err := agenttest.NewServer([]byte(servertest.GreeterTape))
	if err != nil {
		t.Fatal(err)
	}
	defer models.Close()
	c.env["ANTHROPIC_BASE_URL"], c.env["ANTHROPIC_API_KEY"] = models.URL, "sk-ant-test-0000000000"
	c.run(shell.Done, []string{"0 runs ended", "no data"}, "metrics")
	c.run(shell.Misused, []string{"no runs yet"}, "metrics", "--repo", "greet")
	c.run(shell.Done, []string{"verified", "is on the branch forge/put-a-comma"}, "run", "--repo", c.repo, "--model", "anthropic/tape", "Put a comma after hello")
	c.metrics(t)
	branch := strings.TrimSpace(c.git("branch", "--list", "forge/*", "--format", "%(refname:short)"))
	if got := c.git("show", branch+":greet.sh"); got != "echo hello, $1\n" {
		t.Errorf("greet.sh on %s is %q", branch, got)
	}
	if got := c.git("status", "--porcelain"); got != "" {
		t.Errorf("the repository's work tree was touched: %s", got)
	}
	c.run(shell.Done, []string{"1  verified", "Put a comma"}, "runs")
	c.run(shell.Done, []string{"iteration 1 (fresh): passed"}, "show", "1")
	c.run(shell.Done, []string{"PASSED (IMPLEMENTATION_VERIFIED)"}, "show", "1", "--report")
	c.run(shell.Done, []string{"## Iteration 1"}, "show", "1", "--scratchpad")
	c.run(shell.Done, []string{"told each other nothing", "No role has written anything"}, "show", "1", "--upstream", "--artefacts")
	c.run(shell.Done, []string{"phase.completed", "tool.executed", "run.verified"}, "show", "1", "--events")
	c.run(shell.Done, []string{"edit", "100 %"}, "show", "1", "--inner")
	p := (&pipeline.Run{}).Progress()
	if err := json.Unmarshal([]byte(c.run(shell.Done, nil, "show", "1", "--progress")), &p); err != nil || p.Loop.Status != pipeline.Verified {
		t.Errorf("progress %+v, %v", p, err)
	}
	tape := filepath.Join(c.dir, "written.txtar")
	c.run(shell.Done, nil, "replay", "1", "--tape", tape)
	if text := read(t, tape); !strings.Contains(text, "implementer 1/1") {
		t.Errorf("the tape is %s", text)
	}
	c.run(shell.Done, []string{"again: Run 1 is verified", "made the same change"}, "replay", "1")
}

// Covers T7: a local run that waits is answered by another command, which goes on
// with it; a second answer gets a polite line.
func TestLocalAnswer(t *testing.T) {
	t.Parallel()
	c := newLocalCLI(t)
	tape := strings.Replace(servertest.GreeterTape, "risk: 1\nfindings: []", "risk: 90\nneeds_human: it greets people\nfindings: []", 1)
	c.env["FORGE_MODEL"] = c.tape(tape)
	c.run(shell.Waiting, []string{"it greets people", "forge answer 1 CHOICE"}, "run", "--repo", c.repo, "Put a comma after hello")
	c.run(shell.Failed, []string{"not one of the choices"}, "answer", "1", "raise", "5")
	c.run(shell.Done, []string{"Iteration 1"}, "answer", "1", "history")
	c.run(shell.Done, []string{"**human_required**", "| iterations | 1 | 5 |"}, "show", "1", "--why")
	c.run(shell.Misused, []string{"is not a run's number"}, "reset", "x")
	c.run(shell.Done, []string{"iteration 1 of 6"}, "reset", "1")
	c.run(shell.Done, []string{"verified"}, "answer", "1", "approve", "--words", "go ahead")
	c.run(shell.Done, []string{"again: Run 1 is verified", "made the same change"}, "replay", "1")
	c.run(shell.Failed, []string{"has ended"}, "reset", "1")
	c.run(shell.Failed, []string{"has ended"}, "answer", "1", "accept")
}

// Covers T7: what agents ask is answered by a letter with words beside it; a letter within
// words, and words that may take it back, decide nothing.
func TestLocalChoose(t *testing.T) {
	t.Parallel()
	c := newLocalCLI(t)
	c.write(map[string]string{".github/forge.yml": "tests: {commands: [sh test.sh]}\nupstream: {enabled: true}\n"})
	c.commit("feedback between agents")
	const asks = "-- implementer 1/1 --\n>>> submit\nsummary: Nothing yet.\nunable: where?\n-- resolve 1/1 --\n>>> submit\nchoice: limit\ncriterion: AC1\nwhy: no\n"
	c.env["FORGE_MODEL"] = c.tape(strings.ReplaceAll(servertest.GreeterTape, "-- implementer */", "-- implementer 1@2/") + asks)
	c.run(shell.Waiting, []string{"AC1 is a known limitation", "AC1 says now:"}, "run", "--repo", c.repo, "Put a comma after hello")
	c.run(shell.Failed, []string{"a question decides nothing"}, "answer", "1", "choose", "b?")
	c.run(shell.Failed, []string{"one letter alone, from a to b, with words behind `--words`"}, "answer", "1", "choose", "b", "in", "greet.sh")
	c.run(shell.Failed, []string{"may take it back", "`forge answer 1 choose b`"}, "answer", "1", "choose", "b", "--words", "or not?")
	c.run(shell.Done, []string{"verified"}, "answer", "1", "choose", "b", "--words", "it stands in greet.sh")
}

// An issue by its URL, worked on right here as the App.
func TestRunIssue(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	gh, err := githubtest.New(githubtest.Options{Dir: c.dir, Manifest: demo.Manifest()})
	if err != nil {
		t.Fatal(err)
	}
	defer gh.Close()
	env, err := demo.Environment(gh, c.dir, []byte(servertest.GreeterTape))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(c.env, env)
	if _, err := gh.AddRepo("acme", "greet", servertest.Greeter()); err != nil {
		t.Fatal(err)
	}
	n, err := gh.As("acme").OpenIssue(greetRepo, "The greeting lacks its comma", "It prints `hello Ann`.")
	if err != nil {
		t.Fatal(err)
	}
	issue := fmt.Sprintf("%s/%s/issues/%d", gh.URL, greetRepo, n)
	c.run(shell.Failed, []string{"not installed"}, "run", issue)
	if _, err := gh.Install(greetRepo); err != nil {
		t.Fatal(err)
	}
	c.run(shell.Done, []string{"verified", "draft pull request"}, "run", issue)
	c.run(shell.Failed, nil, "run", gh.URL+"/"+greetRepo+"/issues/99")
}

// Covers lessons 18: every delivery has an outcome that can be looked up, and one
// that was given up can be handled again.
// A backup comes back, and what was there meanwhile is kept.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.env["FORGE_UNSAFE_NO_SANDBOX"] = "true" // the doctor looks at no sandbox
	c.run(shell.Done, []string{"No deliveries"}, "deliveries")
	backup := strings.TrimSpace(c.run(shell.Done, []string{filepath.Join(c.dir, "state", "backups")}, "backup"))
	c.run(shell.Done, []string{"copy.db"}, "backup", filepath.Join(c.dir, "copy.db"))
	c.run(shell.Done, []string{"is in its place", "What was there: "}, "restore", backup)
	c.run(shell.Done, []string{"No deliveries"}, "deliveries")
	c.run(shell.Failed, []string{"newest backup"}, "doctor") // it has no App
	c.run(shell.Misused, []string{"one FILE"}, "backup", "a", "b")
	c.run(shell.Failed, []string{"no such file"}, "restore", filepath.Join(c.dir, "missing"))
}

// Every problem of settings that cannot be read is told by itself.
func TestDoctorOnUnreadableSettings(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	file := c.file("wrong.yml", "listen: [1]\ngithub: a\n")
	c.run(shell.Failed, []string{"✗ settings      " + file + ":1:", "✗ settings      " + file + ":2:", "2 to mend"}, "doctor", "--config", file)
}

// Who is told of events is shown, and can be told again.
func TestBusCommand(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run(shell.Done, []string{"Nobody is told of events"}, "bus")
	c.run(shell.Failed, []string{`no subscriber "ci"`}, "bus", "resume", "ci")
	c.run(shell.Failed, []string{`no subscriber "ci"`}, "bus", "test", "ci")
	c.run(shell.Misused, []string{"--types chooses what --follow prints"}, "bus", "--types", "run.*")
	c.run(shell.Misused, []string{"a time that is over"}, "bus", "--follow", "--since", "-1h")
	c.run(shell.Failed, []string{"there is no run 99"}, "bus", "--follow", "--run", "99")
	c.run(shell.Failed, []string{"-1 is no run"}, "bus", "--follow", "--run", "-1")
	c.run(shell.Failed, []string{"is no pattern"}, "bus", "--follow", "--types", "run.[")

	for name, words := range map[string]string{"url": "https://ci.example.com/forge", "secret": "0123456789abcdef0123456789abcdef",
		"forge.yml": "subscribers: {ci: {url_file: " + filepath.Join(c.dir, "url") + ", secret_file: " + filepath.Join(c.dir, "secret") + "}}\n"} {
		c.file(name, words)
	}
	config := filepath.Join(c.dir, "forge.yml")
	c.run(shell.Done, []string{"ci is not paused"}, "bus", "resume", "ci", "--config", config)
	db := c.db()
	defer db.Close()
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	if err := db.Subscribe(t.Context(), bus.Cursor("ci"), at); err != nil {
		t.Fatal(err)
	}
	c.run(shell.Done, []string{"ci is not paused"}, "bus", "resume", "ci", "--config", config)
	if err := db.SubscriberFailed(t.Context(), bus.Cursor("ci"), at, "it answers 410"); err != nil {
		t.Fatal(err)
	}
	c.run(shell.Done, []string{"paused: it answers 410"}, "bus", "--config", config)
	c.run(shell.Done, []string{"ci is told again"}, "bus", "resume", "ci", "--config", config)
	c.run(shell.Done, []string{"is told, since"}, "bus", "--config", config)
}

func TestDeliveriesCommand(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run(shell.Done, []string{"No deliveries"}, "deliveries")
	db := c.db()
	now := time.Now()
	if err := db.KeepDeliveries(t.Context(), []record.Delivery{{GUID: "good", Event: "ping", Received: now, Payload: []byte("{}")},
		{GUID: "bad", Event: "issues", Action: "opened", Repo: "acme/greet", Received: now, Payload: []byte("{}")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.FinishDelivery(t.Context(), nil, "good", "a ping", false, now); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := db.FailDelivery(t.Context(), "bad", "it is poison", now); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	c.run(shell.Done, []string{"good", "a ping", "issues.opened", "it is poison"}, "deliveries")
	if out := c.run(shell.Done, []string{"bad"}, "deliveries", "--dead"); strings.Contains(out, "good") {
		t.Errorf("--dead lists what is alive:\n%s", out)
	}
	c.run(shell.Done, []string{"outcome: a ping"}, "deliveries", "good")
	c.run(shell.Failed, []string{"nowhere"}, "deliveries", "nowhere")
	c.run(shell.Misused, []string{"--retry needs"}, "deliveries", "--retry")
	c.run(shell.Failed, nil, "deliveries", "--retry", "good")
	c.run(shell.Done, []string{"waits to be handled again"}, "deliveries", "--retry", "bad")
	var list []deliveryView
	if err := json.Unmarshal([]byte(c.run(shell.Done, nil, "deliveries", "--json")), &list); err != nil || len(list) != 2 || list[0].State != "waiting" {
		t.Errorf("deliveries --json: %+v, %v", list, err)
	}
}
