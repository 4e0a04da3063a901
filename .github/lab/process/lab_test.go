package process

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/server/servertest"
	"forge/github/githubtest"
	"forge/lab/contract"
	"forge/pipeline/needs"
)

// The bug of the end-to-end tests: NewVersion of github.com/Masterminds/semver/v3
// accepts empty identifiers and leading zeros in v3.3.0; v3.3.1 fixes it, and its
// version_test.go shows it.
const (
	bugModule = "github.com/Masterminds/semver/v3"
	bugBroken = "v3.3.0"
	bugFixed  = "v3.3.1"
	e2eRepo   = "acme/semver"
)

// moduleDir downloads a module and returns where it lies.
func moduleDir(t *testing.T, version string) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", bugModule+"@"+version)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	var info struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &info); err != nil || jsonErr != nil || info.Dir == "" {
		t.Skipf("needs %s@%s from the module proxy: %v %s", bugModule, version, err, info.Error)
	}
	return info.Dir
}

// labTest is a local GitHub with the broken module on it, and what a server needs to
// work there.
type labTest struct {
	t        *testing.T
	gh       *githubtest.Server
	contract *contract.Contract // nil where GitHub's descriptions are not
	dir      string
	issue    int
	env      []string
	before   []string // of the command that begins a server
	procs    []*process
}

// log is what all servers of the lab logged.
func (l *labTest) log() string {
	var b strings.Builder
	for _, p := range l.procs {
		b.WriteString(p.text())
	}
	return b.String()
}

type labOptions struct {
	models   []string          // environment of the model; default: the tape itself
	database string            // default: SQLite
	files    map[string]string // in the repository, besides the module
	plain    bool              // without the module
	tape     string            // default: what mends the module's bug
	issue    string            // likewise
}

// patience is how long a run may take on a machine that has much else to do. Nothing waits
// for it but what fails.
const patience = 10 * time.Minute

func newLab(t *testing.T, o labOptions) *labTest {
	t.Helper()
	needs.Sandbox(t)
	dir, err := demo.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	opts := githubtest.Options{Dir: dir, Manifest: demo.Manifest()}
	var held *contract.Contract
	if contracts := top + "/../shared/github"; exists(contracts) {
		if held, err = contract.New(contracts); err != nil {
			t.Fatal(err)
		}
		opts.Contract = held
	}
	gh, err := githubtest.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gh.Close() })
	servertest.Judge(t, gh, "forge")
	files := map[string]string{}
	if !o.plain {
		files = filesOf(t, moduleDir(t, bugBroken))
	}
	maps.Copy(files, o.files)
	if _, err := gh.AddRepo("acme", "semver", files); err != nil {
		t.Fatal(err)
	}
	if _, err := gh.Install(e2eRepo); err != nil {
		t.Fatal(err)
	}
	if o.tape == "" {
		o.tape, o.issue = read(t, "testdata/tape.txtar"), read(t, "testdata/issue.md")
	}
	title, body, _ := strings.Cut(o.issue, "\n")
	l := &labTest{t: t, gh: gh, contract: held, dir: dir}
	if l.issue, err = gh.As("acme").OpenIssue(e2eRepo, title, strings.TrimSpace(body)); err != nil {
		t.Fatal(err)
	}
	env, err := demo.Environment(gh, dir, []byte(o.tape))
	if err != nil {
		t.Fatal(err)
	}
	l.shareCache(env["FORGE_STATE_DIR"])
	l.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GOTRACEBACK=all", "FORGE_CALL_TIMEOUT=1s"}
	for name, value := range env {
		l.env = append(l.env, name+"="+value)
	}
	l.env = append(l.env, o.models...)
	if o.database != "" {
		l.env = append(l.env, "FORGE_DATABASE_URL="+o.database)
	}
	return l
}

// environments are those of all labs of this process: all hold the same repository, and
// to compile its base costs ten seconds. FORGE_E2E_CACHE is a folder for some that stay.
var environments = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("FORGE_E2E_CACHE"); dir != "" {
		return dir, os.MkdirAll(dir, 0o711)
	}
	dir := filepath.Join(scratch, "cache")
	return dir, os.Mkdir(dir, 0o711)
})

func (l *labTest) shareCache(state string) {
	l.t.Helper()
	cache, err := environments()
	if err != nil {
		l.t.Fatal(err)
	}
	work := filepath.Join(state, "work")
	for _, dir := range []string{state, work} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := os.Symlink(cache, filepath.Join(work, "deps")); err != nil {
		l.t.Fatal(err)
	}
}

// filesOf are the files of a directory, by their path in it.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[name] = read(t, filepath.Join(dir, name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// process is a running `forge serve`.
type process struct {
	cmd   *exec.Cmd
	url   string
	ready time.Duration // from its start to its first answer

	mu  sync.Mutex
	log strings.Builder
}

var readyLine = regexp.MustCompile(`msg="forge is ready" address=(\S+)`)

// serve starts a server and waits until it is ready.
func (l *labTest) serve(extra ...string) *process {
	l.t.Helper()
	call := append(slices.Clone(l.before), program, "serve")
	p := &process{cmd: exec.Command(call[0], call[1:]...)}
	p.cmd.Env = append(slices.Clone(l.env), extra...)
	p.cmd.Dir = l.dir
	pipe, err := p.cmd.StderrPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	begun := time.Now()
	if err := p.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(p.kill)
	l.procs = append(l.procs, p)
	ready := make(chan string, 1)
	go func() {
		defer close(ready)
		lines := bufio.NewScanner(pipe)
		for lines.Scan() {
			p.mu.Lock()
			p.log.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
			if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
				ready <- m[1]
			}
		}
		io.Copy(io.Discard, pipe)
	}()
	select {
	case url, ok := <-ready:
		if !ok {
			l.t.Fatalf("the server ended at its start:\n%s", p.text())
		}
		p.url, p.ready = url, time.Since(begun)
	case <-time.After(30 * time.Second):
		l.t.Fatalf("the server is not ready after 30 s:\n%s", p.text())
	}
	l.gh.SetHook(p.url + "/webhook")
	return p
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// kill ends the process as a power cut would: it gets to do nothing any more.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// pull returns the one pull request, nil while there is none.
func (l *labTest) pull() *githubtest.Pull {
	l.t.Helper()
	pulls, err := l.gh.Pulls(e2eRepo)
	if err != nil {
		l.t.Fatal(err)
	}
	if len(pulls) > 1 {
		l.t.Fatalf("there are %d pull requests, want one", len(pulls))
	}
	if len(pulls) == 0 {
		return nil
	}
	return &pulls[0]
}

// verified waits until the pull request has left draft with a green check and the
// status comment says so.
func (l *labTest) verified(timeout time.Duration) *githubtest.Pull {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := l.gh.Wait(ctx, l.isVerified)
	if err != nil {
		l.t.Fatalf("not verified after %s: %+v\nissue: %+v\nlog: %s", timeout, l.pull(), l.issueNow(), l.log())
	}
	return l.pull()
}

func (l *labTest) isVerified() bool {
	p := l.pull()
	if p == nil || p.Draft {
		return false
	}
	green := slices.ContainsFunc(p.Checks, func(c githubtest.CheckRun) bool { return c.Name == "forge" && c.Conclusion == "success" })
	return green && slices.ContainsFunc(l.issueNow().Comments, func(c githubtest.Comment) bool { return strings.Contains(c.Body, "Done: reviewed and tested") })
}

func (l *labTest) issueNow() githubtest.Issue {
	i, err := l.gh.Issue(e2eRepo, l.issue)
	if err != nil {
		l.t.Fatal(err)
	}
	return i
}

// start gives the issue the label.
func (l *labTest) start() {
	l.t.Helper()
	if err := l.gh.As("acme").Label(e2eRepo, l.issue, "forge"); err != nil {
		l.t.Fatal(err)
	}
}

// checkContract wants everything that was said to fit GitHub's descriptions.
func (l *labTest) checkContract() {
	l.t.Helper()
	c := l.contract
	if c == nil {
		l.t.Log("GitHub's descriptions are not here: nothing was checked against them")
		return
	}
	for _, v := range c.Violations() {
		l.t.Errorf("outside GitHub's contract: %s", v)
	}
	l.t.Logf("checked against GitHub's descriptions: %+v", c.Counts())
}

// checkHead wants the pull request's head to pass the module's own tests, and the
// test of the version in which the bug was fixed.
func (l *labTest) checkHead(p *githubtest.Pull) (commits int) {
	l.t.Helper()
	dir := filepath.Join(l.t.TempDir(), "head")
	sh := func(name string, args ...string) string {
		cmd := exec.Command(name, args...)
		if name != "git" || args[0] != "clone" {
			cmd.Dir = dir
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			l.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	sh("git", "clone", "-q", "--branch", p.Branch, l.gh.URL+"/"+e2eRepo+".git", dir)
	if got := strings.TrimSpace(sh("git", "rev-parse", "HEAD")); got != p.Head {
		l.t.Errorf("the branch is at %s, the pull request at %s", got, p.Head)
	}
	sh("go", "test", "./...")
	later := read(l.t, filepath.Join(moduleDir(l.t, bugFixed), "version_test.go"))
	if err := os.WriteFile(filepath.Join(dir, "version_test.go"), []byte(later), 0o644); err != nil {
		l.t.Fatal(err)
	}
	sh("go", "test", "./...")
	return strings.Count(sh("git", "log", "--oneline", "origin/main..HEAD"), "\n")
}

// shaInKey is a commit in a marker's key: it differs from run to run.
var shaInKey = regexp.MustCompile(`/[0-9a-f]{7}$`)

// shape is what a run leaves on GitHub, without what differs from run to run.
func (l *labTest) shape(p *githubtest.Pull) map[string]int {
	s := map[string]int{}
	mark := regexp.MustCompile(`<!-- forge:[^/ ]*/?(\S+) -->`)
	count := func(where string, comments []githubtest.Comment) {
		for _, c := range comments {
			name := "no marker"
			if m := mark.FindStringSubmatch(c.Body); m != nil {
				name = m[1]
			}
			name = shaInKey.ReplaceAllString(name, "/SHA")
			s[where+" "+name+" by "+c.Author]++
		}
	}
	count("issue", l.issueNow().Comments)
	count("pull", p.Comments)
	for _, t := range p.Threads {
		count(fmt.Sprintf("thread resolved=%v", t.Resolved), t.Comments)
	}
	s["reviews"] = len(p.Reviews)
	for _, c := range p.Checks {
		s["check "+c.Name+" "+c.Conclusion]++
	}
	return s
}

// checkSecrets wants none of the server's secrets in its log, its state directory
// (database, mirrors, work trees), or anything that was said on GitHub. Covers
// S17, S29.
func (l *labTest) checkSecrets() {
	l.t.Helper()
	secrets := map[string]string{
		"webhook secret": l.gh.WebhookSecret, "installation token": "ghs_", "private key": "PRIVATE KEY",
		"OpenAI key": "sk-test-", "Anthropic key": "sk-ant-",
	}
	look := func(where, text string) {
		for name, secret := range secrets {
			if strings.Contains(text, secret) {
				l.t.Errorf("%s holds the %s", where, name)
			}
		}
	}
	look("the log", l.log())
	files := 0
	err := filepath.WalkDir(filepath.Join(l.dir, "state"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, "/work/bin/forge") { // the program itself knows what secrets look like
			return err
		}
		files++
		data, err := os.ReadFile(path)
		look(path, string(data))
		return err
	})
	if err != nil || files < 10 {
		l.t.Errorf("looked into %d files of the state directory, %v", files, err)
	}
	look("GitHub", fmt.Sprintf("%+v %+v", l.pull(), l.issueNow()))
}
