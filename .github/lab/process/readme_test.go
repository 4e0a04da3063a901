package process

import (
	"bufio"
	"bytes"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/demo"
	"forge/github/githubtest"
)

// newcomer follows the README on a machine with a local GitHub.
type newcomer struct {
	t   *testing.T
	gh  *githubtest.Server
	dir string
	env []string
}

// The commands of the README are typed as they stand there, up to a server that is
// ready. Only where GitHub is, and that the model is a tape, is added.
func TestReadmeCommands(t *testing.T) {
	long(t)
	t.Parallel()
	gh, err := githubtest.New(githubtest.Options{Dir: t.TempDir(), Manifest: demo.Manifest(), Empty: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gh.Close() })
	if _, err := gh.AddRepo("acme", "greet", map[string]string{"README.md": "x"}); err != nil {
		t.Fatal(err)
	}
	dir, err := demo.TempDir() // which the user that runs the tests may pass
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	n := newcomer{t: t, gh: gh, dir: dir, env: append(os.Environ(), "FORGE_STATE_DIR="+filepath.Join(dir, "state"), "FORGE_LISTEN=127.0.0.1:0")}
	steps := map[string]func(){
		"go run ./cmd/forge demo":       nil, // the step "demo" of .ci/run
		"go test ./...":                 nil, // its step "go test"
		"go build -o forge ./cmd/forge": n.build,
		"./forge setup":                 n.setUp,
		"./forge doctor":                n.doctor,
		"./forge serve":                 n.serve,
	}
	for _, block := range regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(read(t, filepath.Join(top, "README.md")), -1) {
		for line := range strings.Lines(block[1]) {
			line, _, _ = strings.Cut(line, "#")
			step, known := steps[strings.TrimSpace(line)]
			if !known {
				t.Errorf("nothing tries %q of the README", strings.TrimSpace(line))
			}
			delete(steps, strings.TrimSpace(line))
			if step != nil {
				step()
			}
		}
	}
	for line := range steps {
		t.Errorf("the README does not say %q any more", line)
	}
}

func (n *newcomer) build() {
	cmd := exec.Command("go", "build", "-o", filepath.Join(n.dir, "forge"), "./cmd/forge")
	cmd.Dir = top
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("%v\n%s", err, out)
	}
}

func (n *newcomer) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(n.t.Context(), "./forge", args...)
	cmd.Dir, cmd.Env = n.dir, n.env
	return cmd
}

// setUp answers the page and presses GitHub's button.
func (n *newcomer) setUp() {
	tape := filepath.Join(n.dir, "tape.txtar")
	if err := os.WriteFile(tape, []byte("-- planner 0/1 --\n>>> submit\nsummary: x\n"), 0o600); err != nil {
		n.t.Fatal(err)
	}
	cmd := n.command("setup", "--github", n.gh.URL)
	var out bytes.Buffer
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	lines := bufio.NewScanner(io.TeeReader(pipe, &out))
	page := ""
	for page == "" && lines.Scan() {
		page = regexp.MustCompile(`http://127\.0\.0\.1:\d+/start/\S+`).FindString(lines.Text())
	}
	if page == "" {
		n.t.Fatalf("the set-up shows no page:\n%s", out.String())
	}
	jar, _ := cookiejar.New(nil)
	browser := http.Client{Jar: jar}
	n.open(browser.Get(page))
	origin, _, _ := strings.Cut(page, "/start/")
	text := n.open(browser.PostForm(origin+"/settle", url.Values{"github": {n.gh.URL}, "poll": {"yes"}, "model": {"tape:" + tape}, "name": {"forge"}}))
	to := regexp.MustCompile(`<form method="post" action="([^"]+\?state=[^"]+)"`).FindStringSubmatch(text)
	manifest := regexp.MustCompile(`name="manifest" value="([^"]*)"`).FindStringSubmatch(text)
	if to == nil || manifest == nil {
		n.t.Fatalf("the page leads to no App:\n%s", text)
	}
	at, err := url.Parse(html.UnescapeString(to[1]))
	if err != nil {
		n.t.Fatal(err)
	}
	n.open(browser.PostForm(n.gh.URL+"/-/register", url.Values{"manifest": {html.UnescapeString(manifest[1])}, "state": {at.Query().Get("state")}}))
	if _, err := n.gh.Install("acme/greet"); err != nil {
		n.t.Fatal(err)
	}
	for lines.Scan() { // to its end
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "forge doctor") {
		n.t.Fatalf("%v\n%s", err, out.String())
	}
}

// open returns the page that a browser comes to.
func (n *newcomer) open(resp *http.Response, err error) string {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 400 {
		n.t.Fatalf("%s: %v\n%s", resp.Status, err, text)
	}
	return string(text)
}

func (n *newcomer) doctor() {
	if out, err := n.command("doctor").CombinedOutput(); err != nil {
		n.t.Fatalf("%v\n%s", err, out)
	}
}

func (n *newcomer) serve() {
	cmd := n.command("serve")
	pipe, err := cmd.StderrPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	var log []string
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		log = append(log, lines.Text())
		if readyLine.MatchString(lines.Text()) {
			_ = cmd.Process.Signal(os.Interrupt) // asked to end below
		}
	}
	end := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer end.Stop()
	if err := cmd.Wait(); err != nil || !slices.ContainsFunc(log, readyLine.MatchString) {
		n.t.Errorf("%v\n%s", err, strings.Join(log, "\n"))
	}
}
