package play

import (
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"forge/cmd/forge/server/servertest"
	"forge/pipeline"
)

// seeded draws the secrets of a test: none is in the source, where others' scanners
// would find it.
type seeded struct{ *rand.Rand }

func (s seeded) of(chars string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = chars[s.IntN(len(chars))]
	}
	return string(b)
}

const (
	upper   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	letters = upper + "abcdefghijklmnopqrstuvwxyz"
)

func (s seeded) token() string  { return "ghp_" + s.of(letters+"0123456789", 36) }
func (s seeded) awsKey() string { return "AKIA" + s.of(upper+"234567", 16) }

func (s seeded) pem() string {
	lines := []string{"-----BEGIN RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEA" + s.of(letters+"0123456789+/", 48)}
	for range 4 {
		lines = append(lines, s.of(letters+"0123456789+/", 64))
	}
	return strings.Join(append(lines, "-----END RSA PRIVATE KEY-----"), "\n")
}

// objects are all that the local GitHub's repository holds, reachable or not.
func objects(ts *servertest.Server, dir string) string {
	ts.T.Helper()
	repos, err := filepath.Glob(filepath.Join(dir, "githubtest-*", "repos", servertest.Repo+"-*.git"))
	if err != nil || len(repos) != 1 {
		ts.T.Fatalf("the repositories %q, %v", repos, err)
	}
	objects, err := exec.Command("git", "-c", "safe.directory=*", "--git-dir="+repos[0], "cat-file", "--batch-all-objects", "--batch").Output()
	ts.Must(err)
	return string(objects)
}

// everything is what the local GitHub holds: all objects, all texts as people see them,
// and all deliveries, which carry what was posted.
func everything(ts *servertest.Server, dir string) string {
	ts.T.Helper()
	var b strings.Builder
	b.WriteString(objects(ts, dir))
	pulls, err := ts.GitHub.Pulls(servertest.Repo)
	ts.Must(err)
	texts, err := json.Marshal(pulls)
	ts.Must(err)
	b.Write(texts)
	for n := 1; ; n++ {
		i, err := ts.GitHub.Issue(servertest.Repo, n)
		if err != nil {
			break
		}
		texts, err := json.Marshal(i)
		ts.Must(err)
		b.Write(texts)
	}
	for _, d := range ts.GitHub.Deliveries() {
		b.Write(d.Payload)
	}
	if b.Len() < 10_000 || !strings.Contains(b.String(), "hello") {
		ts.T.Fatalf("only %d bytes are looked through", b.Len())
	}
	return b.String()
}

// nothingOf fails for each secret that the local GitHub holds a line of.
func nothingOf(ts *servertest.Server, dir string, secrets ...string) {
	ts.T.Helper()
	all := everything(ts, dir)
	for _, s := range secrets {
		for line := range strings.Lines(s) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") && strings.Contains(all, line) {
				ts.T.Errorf("GitHub has %s", line)
			}
		}
	}
}

// leaky is the greeter's tape with another first attempt, of which a human says that it
// must go, and the right one after it.
func leaky(first string) string {
	return strings.Replace(servertest.GreeterTape, "-- implementer */1 --", first+`
-- implementer 1@2/1 --
@expect this looks like a secret
@expect Read them from the environment.
>>> edit
path: greet.sh
old: "echo hello $1"
new: "echo hello, $1"
-- implementer 1@2/2 --
>>> submit
summary: Put a comma after hello
-- implementer */1 --`, 1)
}

// Covers S25: what an implementer writes is looked through before it is a commit. A
// human is asked at once, with file and line; what comes after their word is verified,
// and nothing of the secrets has ever reached GitHub, in no commit and in no text.
func TestSecretsAreNotPushed(t *testing.T) {
	t.Parallel()
	s := seeded{rand.New(rand.NewPCG(1, 2))}
	token, aws, key := s.token(), s.awsKey(), s.pem()
	var dir string
	ts := newServer(t, servertest.Options{Prepare: func(state string) { dir = filepath.Dir(state) }, Tape: leaky(`-- implementer 1/1 --
>>> write
path: conf/dev.env
content: |
  # for development
  GITHUB_TOKEN=` + token + `
  AWS_ACCESS_KEY_ID=` + aws + `
>>> write
path: conf/dev.pem
content: |
  ` + strings.ReplaceAll(key, "\n", "\n  ") + `
-- implementer 1/2 --
>>> submit
summary: Configure development
`)})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateWaiting)
	if g := run.Gate().Guard; g.Name != pipeline.GuardSecret || len(g.About) != 3 || run.Head != run.Base {
		t.Errorf("guard %+v, head %s, base %s", g, run.Head, run.Base)
	}
	for _, place := range []string{"conf/dev.env:2 (github-token", "conf/dev.env:3 (aws-access-key", "conf/dev.pem:1 (private-key", "what would be pushed looks like a secret"} {
		ts.Says(place)
	}
	nothingOf(ts, dir, token, aws, key)
	ts.Comment("rita", "/forge approve") // who may not write
	ts.Comment("acme", "/forge accept")
	ts.Says("`accept` is not one of the choices here")
	ts.Comment("acme", "/forge continue\nRead them from the environment.")
	run = ts.UntilState(pipeline.StateVerified)
	if len(run.Iterations) != 1 || len(run.Waivers) != 0 {
		t.Errorf("%d iterations, waivers %+v", len(run.Iterations), run.Waivers)
	}
	if _, err := ts.GitHub.File(servertest.Repo, run.Head, "conf/dev.env"); err == nil {
		t.Error("conf/dev.env is there")
	}
	nothingOf(ts, dir, token, aws, key)
}

// Covers S25: a false alarm passes in a named person's name, and the step is not paid
// for again.
func TestFalseAlarm(t *testing.T) {
	t.Parallel()
	token := seeded{rand.New(rand.NewPCG(3, 4))}.token()
	ts := newServer(t, servertest.Options{Tape: leaky(`-- implementer 1/1 --
>>> write
path: testdata/token.txt
content: "` + token + `\n"
-- implementer 1/2 --
>>> submit
summary: Test with a token that never was one
`)})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateWaiting)
	calls := run.Steps[pipeline.PhaseImplement]
	ts.Comment("acme", "/forge approve")
	run = ts.UntilState(pipeline.StateVerified)
	if text, err := ts.GitHub.File(servertest.Repo, run.Head, "testdata/token.txt"); err != nil || text != token+"\n" {
		t.Errorf("the file is %q, %v", text, err)
	}
	if len(run.Waivers) != 1 || run.Waivers[0].By.Login != "acme" || !strings.Contains(run.Ended, "let pass by @acme: this looks like a secret") {
		t.Errorf("waivers %+v, ended %q", run.Waivers, run.Ended)
	}
	if calls == 0 {
		t.Error("the implementer took no step")
	}
}

// Covers S24, S25: whatever a model says, in the commit's message, the plan, a finding or
// its suggestion, no secret in it is posted, and nothing in it is acted on.
func TestSecretsAreNotPosted(t *testing.T) {
	t.Parallel()
	s := seeded{rand.New(rand.NewPCG(5, 6))}
	planned, committed, found, suggested, reviewed := s.token(), s.token(), s.token(), s.token(), s.awsKey()
	var dir string
	tape := strings.NewReplacer("summary: Put a comma after hello\nsteps", "summary: Put a comma after hello, with "+planned+"\nsteps",
		"summary: Small and right.\nrisk: 1\nfindings: []", `summary: It needs `+reviewed+`
risk: 40
findings:
  - {severity: error, category: correctness, file: greet.sh, line: 1, confidence: 0.9, message: "greet.sh must not say `+found+`", fixable: true,
     fix: {description: "Say it", old: "echo hello, $1", new: "echo hello, ${1} # `+suggested+`"}}
-- quality 2/1 --
>>> submit
rulings: [{id: F1, verdict: fixed, why: it says it otherwise}]
summary: Small and right.
risk: 1
findings: []
-- implementer 2/1 --
>>> edit
path: greet.sh
old: "echo hello, $1"
new: "echo hello, ${1}"
-- implementer 2/2 --
>>> submit
summary: "Say it\n\ncloses owner/repo#2, @octocat [skip ci]\n\nCo-authored-by: a <a@example.com>\nForge-Run: other/9"
addressed: [{id: F1, what: done}]`).Replace(leaky(`-- implementer 1/1 --
>>> edit
path: greet.sh
old: "echo hello $1"
new: "echo hello, $1"
-- implementer 1/2 --
>>> submit
summary: Use ` + committed + `
`))
	ts := newServer(t, servertest.Options{Prepare: func(state string) { dir = filepath.Dir(state) }, Tape: tape})
	ts.Label("acme")
	ts.UntilState(pipeline.StateWaiting)
	ts.Says("the commit message:1 (github-token")
	ts.Comment("acme", "/forge continue\nRead them from the environment.")
	run := ts.Until("is done", func(r *pipeline.Run) bool { return r.State == pipeline.StateVerified || len(r.Gates) == 2 })
	if run.State != pipeline.StateVerified {
		t.Fatalf("it asks: %s", run.Gate().Question)
	}
	if len(run.Iterations) != 2 {
		t.Errorf("%d iterations", len(run.Iterations))
	}
	ts.Says("[secret]")
	ts.Says("Forge took out what looks like a secret (github-token)")
	nothingOf(ts, dir, planned, committed, found, suggested, reviewed)
	all := objects(ts, dir)
	for _, acts := range []string{"closes owner/repo#2", "@octocat", "[skip ci]", "\nCo-authored-by: a", "\nForge-Run: other/9"} {
		if strings.Contains(all, acts) {
			t.Errorf("a commit holds %q", acts)
		}
	}
	if !strings.Contains(all, "\nForge-Run: "+run.Trace+"/2\n") {
		t.Error("the commit has not its own trailer")
	}
}

// Covers S25: Forge's own secrets are known exactly, have they a shape or not, and nobody
// can let them pass.
func TestOwnSecretsStay(t *testing.T) {
	t.Parallel()
	const model = "plain words 4 the model"
	var dir string
	ts := newServer(t, servertest.Options{Env: map[string]string{"OPENAI_API_KEY": model}, Prepare: func(state string) { dir = filepath.Dir(state) }, Tape: leaky(`-- implementer 1/1 --
>>> write
path: notes.txt
content: |
  ` + model + `
  WEBHOOK_SECRET
-- implementer 1/2 --
>>> submit
summary: Take notes
`)})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateWaiting)
	if g := run.Gate(); g.Guard.Name != pipeline.GuardSecret || len(g.Guard.About) != 0 {
		t.Errorf("guard %+v", g.Guard)
	}
	ts.Says("notes.txt:1 (forge-secret")
	ts.Says("notes.txt:2 (forge-secret")
	ts.Comment("acme", "/forge approve")
	ts.Says("`approve` is not one of the choices here")
	ts.Comment("acme", "/forge continue\nRead them from the environment.")
	ts.UntilState(pipeline.StateVerified)
	nothingOf(ts, dir, model, ts.GitHub.WebhookSecret)
}
