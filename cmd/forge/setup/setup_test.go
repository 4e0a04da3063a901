package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/settings"
	"forge/github/githubtest"
	"forge/github/githubtest/exchangetest"
	"forge/pipeline/agent"
)

// world is a GitHub without an App, and a folder.
type world struct {
	t   *testing.T
	gh  *githubtest.Server
	dir string
	jar http.CookieJar // of the browser

	mu  sync.Mutex
	now time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: filepath.Join(t.TempDir(), "forge"), now: time.Now()}
	w.jar, _ = cookiejar.New(nil)
	gh, err := githubtest.New(githubtest.Options{Dir: t.TempDir(), Manifest: demo.Manifest(), Empty: true, Contract: exchangetest.Record(t)})
	if err != nil {
		t.Fatal(err)
	}
	w.gh = gh
	t.Cleanup(func() { gh.Close() })
	if _, err := gh.AddRepo("acme", "greet", map[string]string{"README.md": "x"}); err != nil {
		t.Fatal(err)
	}
	return w
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) tape() string {
	path := filepath.Join(w.t.TempDir(), "tape.txtar")
	if err := os.WriteFile(path, []byte("-- planner 0/1 --\n>>> submit\nsummary: x\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return "tape:" + path
}

func (w *world) options() Options {
	state := w.t.TempDir()
	return Options{Dir: w.dir, Answers: Answers{GitHub: w.gh.URL, Poll: true, Model: w.tape(), Name: "forge"}, In: strings.NewReader(""), Out: io.Discard,
		Now: w.clock, Every: 5 * time.Millisecond, Linger: 1,
		Getenv: func(name string) string {
			return map[string]string{"FORGE_STATE_DIR": state, "FORGE_LISTEN": "127.0.0.1:0"}[name]
		}}
}

// started is a set-up that runs.
type started struct {
	w      *world
	page   string
	manual string
	ended  chan error
	cancel context.CancelFunc
	http   *http.Client
}

func (w *world) start(o Options) *started {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	st := &started{w: w, ended: make(chan error, 1), cancel: cancel,
		http: &http.Client{Jar: w.jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	ready := make(chan [2]string, 9)
	o.Ready = func(page, manual string) { ready <- [2]string{page, manual} }
	go func() { st.ended <- Run(ctx, o) }()
	select {
	case at := <-ready:
		st.page, st.manual = at[0], at[1]
	case err := <-st.ended:
		w.t.Fatalf("the set-up ended: %v", err)
	case <-time.After(20 * time.Second):
		w.t.Fatal("the set-up shows no page")
	}
	w.t.Cleanup(cancel)
	return st
}

// stop interrupts the set-up.
func (st *started) stop() {
	st.w.t.Helper()
	st.cancel()
	if err := st.end(); !errors.Is(err, context.Canceled) {
		st.w.t.Fatalf("interrupted, it ends with %v", err)
	}
}

// end waits for the set-up to end by itself.
func (st *started) end() error {
	st.w.t.Helper()
	select {
	case err := <-st.ended:
		return err
	case <-time.After(30 * time.Second):
		st.w.t.Fatal("the set-up does not end")
		return nil
	}
}

func (st *started) origin() string { return st.page[:strings.Index(st.page, "/start/")] }

// get follows redirects on the page itself.
func (st *started) get(address string) (int, string) {
	st.w.t.Helper()
	for range 5 {
		resp, err := st.http.Get(address)
		if err != nil {
			st.w.t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		to := resp.Header.Get("Location")
		if to == "" {
			return resp.StatusCode, string(text)
		}
		if strings.HasPrefix(to, "/") {
			to = st.origin() + to
		}
		address = to
	}
	st.w.t.Fatal("too many redirects")
	return 0, ""
}

func (st *started) post(address string, form url.Values) (int, string, string) {
	st.w.t.Helper()
	resp, err := st.http.PostForm(address, form)
	if err != nil {
		st.w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), resp.Header.Get("Location")
}

var (
	formTo   = regexp.MustCompile(`<form method="post" action="([^"]+\?state=[^"]+)"`)
	formText = regexp.MustCompile(`name="manifest" value="([^"]*)"`)
)

// register presses the button of the page, and the one on GitHub, and returns where
// GitHub leads back to.
func (w *world) register(page string) string {
	w.t.Helper()
	to, text := formTo.FindStringSubmatch(page), formText.FindStringSubmatch(page)
	if to == nil || text == nil {
		w.t.Fatalf("the page has no form for GitHub:\n%s", page)
	}
	u, err := url.Parse(strings.ReplaceAll(to[1], "&amp;", "&"))
	if err != nil {
		w.t.Fatal(err)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	manifest := strings.NewReplacer("&#34;", `"`, "&#43;", "+", "&amp;", "&", "&#39;", "'").Replace(text[1])
	if resp, err := client.PostForm(u.String(), url.Values{"manifest": {manifest}}); err != nil || resp.StatusCode != http.StatusOK {
		w.t.Fatalf("GitHub does not show the App: %v %v", resp, err)
	}
	resp, err := client.PostForm(w.gh.URL+"/-/register", url.Values{"manifest": {manifest}, "state": {u.Query().Get("state")}})
	if err != nil || resp.StatusCode != http.StatusSeeOther {
		w.t.Fatalf("GitHub does not make the App: %v %v", resp, err)
	}
	return resp.Header.Get("Location")
}

func (st *started) settle() (int, string) {
	a := st.w.options().Answers
	code, text, _ := st.post(st.origin()+"/settle", url.Values{"github": {a.GitHub}, "poll": {"yes"}, "model": {a.Model}, "name": {"forge"}})
	return code, text
}

func (w *world) install() {
	w.t.Helper()
	if _, err := w.gh.Install("acme/greet"); err != nil {
		w.t.Fatal(err)
	}
}

// check wants one App, one label, and files that hold what GitHub gave out, for their
// owner alone.
func (w *world) check() {
	w.t.Helper()
	if n := w.gh.Registered(); n != 1 {
		w.t.Errorf("%d Apps are registered", n)
	}
	if n := w.gh.Mutations()["issues/create-label"]; n != 1 {
		w.t.Errorf("%d labels are made", n)
	}
	cfg, err := settings.Server(filepath.Join(w.dir, configFile), func(name string) string {
		return map[string]string{"FORGE_STATE_DIR": "/nowhere"}[name]
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cfg.Ready(); err != nil {
		w.t.Errorf("forge serve lacks %v", err)
	}
	if cfg.AppID != w.gh.AppID || cfg.WebhookSecret.Reveal() != w.gh.WebhookSecret || cfg.ClientID != w.gh.ClientID ||
		cfg.ClientSecret.Reveal() != w.gh.ClientSecret || !cfg.Poll {
		w.t.Errorf("the settings are %+v", cfg)
	}
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		if info, _ := e.Info(); info.Mode().Perm() != 0o600 {
			w.t.Errorf("%s has mode %04o", e.Name(), info.Mode().Perm())
		}
	}
	if want := []string{appKeyFile, clientFile, configFile, webhookFile}; !slices.Equal(names, want) {
		w.t.Errorf("the folder holds %v, want %v", names, want)
	}
}

// Covers D1: from an empty folder to an App that is registered and installed. Wherever
// the set-up is interrupted, it goes on there when it is started again, and nothing is
// made twice.
func TestInterruptedAtEveryStep(t *testing.T) {
	t.Parallel()
	steps := []string{"at the start", "after the answers", "while GitHub shows the App", "with the code", "after the files", "after the installation", "never"}
	for i, name := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			st := w.start(w.options())
			at := func(step int) {
				if step == i {
					st.stop()
					st = w.start(w.options())
				}
			}
			at(0)
			st.get(st.page)
			if code, text := st.settle(); code != http.StatusSeeOther {
				t.Fatalf("the answers are answered %d\n%s", code, text)
			}
			at(1)
			_, page := st.get(st.page)
			back := w.register(page)
			at(2) // the tab leads back to a set-up that was started again, and that was looked at
			if i == 2 {
				st.get(st.page)
			}
			if i == 3 {
				w.gh.AddFault(githubtest.Fault{Operation: "apps/create-from-manifest", Kind: githubtest.FaultErrorBefore, Times: 1})
				if code, text := st.get(back); code != http.StatusBadGateway || strings.Contains(text, "code=") {
					t.Fatalf("GitHub is away: %d\n%s", code, text)
				}
				at(3)
				st.get(st.page)
				if code, text, to := st.post(st.origin()+"/retry", nil); code != http.StatusSeeOther || to != "/" {
					t.Fatalf("the code is exchanged later: %d\n%s", code, text)
				}
			} else if code, text := st.get(back); code != http.StatusOK || !strings.Contains(text, "installations/new") {
				t.Fatalf("back from GitHub: %d\n%s", code, text)
			}
			at(4)
			w.install()
			if i == 5 {
				_ = st.end()
				st = w.start(w.options())
			}
			if err := st.end(); err != nil {
				t.Fatal(err)
			}
			w.check()
		})
	}
}

// Covers D1: with the model's key in the environment, where the help says that it is
// taken from, the set-up ends well, and so does a second start; what looks back at runs is a
// much cheaper model of the provider.
func TestKeyInTheEnvironment(t *testing.T) {
	t.Parallel()
	cfg := setUpWith(t, `"tool_calls":[{"id":"1","function":{"name":"submit","arguments":"{}"}}]`)
	if got := cfg.Run.Models["reflector"]; got != "openai/gpt-6-luna" || len(cfg.ModelLimits) > 0 {
		t.Errorf("what looks back is %q, want the provider's much cheaper model; limits: %v", got, cfg.ModelLimits)
	}
}

// Covers A3: the settings say of a model that calls no tools that it is asked for code alone.
func TestModelWithoutTools(t *testing.T) {
	t.Parallel()
	if cfg := setUpWith(t, `"content":"def add(a, b): return a + b"`); cfg.ModelLimits["openai/gpt-6-sol"].Form != agent.FormPlain {
		t.Errorf("its limits are %v", cfg.ModelLimits)
	}
}

// setUpWith is what a set-up writes with a model that answers so.
func setUpWith(t *testing.T, answer string) settings.Config {
	t.Helper()
	w := newWorld(t)
	model := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(rw, `{"data":[{"id":"gpt-6-sol"},{"id":"gpt-6-luna"}],"id":"x","model":"x","choices":[{"message":{"role":"assistant",`+answer+`}}]}`)
	}))
	t.Cleanup(model.Close)
	o := w.options()
	o.Answers.Model, o.Answers.Base, o.Key = "openai/gpt-6-sol", model.URL+"/v1", "sk-of-the-environment"
	of := o.Getenv
	o.Getenv = func(name string) string {
		if name == "OPENAI_API_KEY" {
			return o.Key
		}
		return of(name)
	}
	st := w.start(o)
	st.get(st.page)
	a := o.Answers
	if code, text, _ := st.post(st.origin()+"/settle", url.Values{"github": {a.GitHub}, "poll": {"yes"}, "model": {a.Model}, "base": {a.Base}, "name": {"forge"}}); code != http.StatusSeeOther {
		t.Fatalf("the answers are answered %d\n%s", code, text)
	}
	_, page := st.get(st.page)
	if code, text := st.get(w.register(page)); code != http.StatusOK || !strings.Contains(text, "installations/new") {
		t.Fatalf("back from GitHub: %d\n%s", code, text)
	}
	st.stop()
	st = w.start(o)
	w.install()
	if err := st.end(); err != nil {
		t.Fatal(err)
	}
	cfg, err := settings.Server(filepath.Join(w.dir, "forge.yml"), o.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// Covers D1: a folder is set up by one process at a time, under whatever name; the second
// is refused, and leaves the first one's work as it is. A state that one took is refused
// by the next.
func TestOneSetupOfAFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st := w.start(w.options())
	st.get(st.page)
	st.settle()
	_, page := st.get(st.page)
	back := w.register(page)
	before, err := os.ReadFile(filepath.Join(w.dir, progressFile))
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(w.dir, other); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{w.dir, other} {
		o := w.options()
		ctx, cancel := context.WithCancel(t.Context())
		o.Dir, o.Ready = dir, func(string, string) { cancel() } // it goes on
		if err := Run(ctx, o); err == nil || !strings.Contains(err.Error(), "another `forge setup` is at work") {
			t.Errorf("a second set-up of %s ends with %v", dir, err)
		}
		cancel()
	}
	if after, err := os.ReadFile(filepath.Join(w.dir, progressFile)); err != nil || !bytes.Equal(before, after) {
		t.Errorf("a second set-up changed how far the first came (%v):\n%s", err, after)
	}
	if code, text := st.get(back); code != http.StatusOK {
		t.Fatalf("back from GitHub: %d\n%s", code, text)
	}
	st.stop()
	st = w.start(w.options())
	u, err := url.Parse(back)
	if err != nil {
		t.Fatal(err)
	}
	if code, _ := st.get(st.origin() + "/callback?" + u.RawQuery); code != http.StatusForbidden {
		t.Errorf("a state that was used is answered %d by the next process", code)
	}
	w.install()
	if err := st.end(); err != nil {
		t.Fatal(err)
	}
	w.check()
}

// GitHub gives an App's secrets out once. What was not written of them is written when the
// set-up is started again.
func TestInterruptedWhileFilesAreWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st := w.start(w.options())
	st.get(st.page)
	st.settle()
	_, page := st.get(st.page)
	blocked := filepath.Join(w.dir, clientFile)
	if err := os.Mkdir(blocked, 0o700); err != nil {
		t.Fatal(err)
	}
	if code, text := st.get(w.register(page)); code != http.StatusBadGateway || !exists(filepath.Join(w.dir, appKeyFile)) {
		t.Fatalf("not all could be written: %d\n%s", code, text)
	}
	st.stop()
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	st = w.start(w.options())
	w.install()
	if err := st.end(); err != nil {
		t.Fatal(err)
	}
	w.check()
}

// Covers D1, S: an answer that does not belong to the registration is refused, as is
// one that was used or is over an hour old.
func TestStatesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st := w.start(w.options())
	callback := func(code, state string) (int, string) {
		return st.get(st.origin() + "/callback?" + url.Values{"code": {code}, "state": {state}}.Encode())
	}
	if code, _ := callback("abc", ""); code != http.StatusForbidden {
		t.Errorf("before anything began: %d", code)
	}
	st.get(st.page)
	st.settle()
	_, page := st.get(st.page)
	back, err := url.Parse(w.register(page))
	if err != nil {
		t.Fatal(err)
	}
	good := back.Query()
	for _, state := range []string{"", "x", good.Get("state") + "x", good.Get("state")[1:], strings.ToUpper(good.Get("state"))} {
		if code, text := callback(good.Get("code"), state); code != http.StatusForbidden || strings.Contains(text, good.Get("state")) {
			t.Errorf("the state %q is answered %d", state, code)
		}
	}
	w.pass(stateLife)
	if code, text := callback(good.Get("code"), good.Get("state")); code == http.StatusOK || !strings.Contains(text, "over an hour ago") {
		t.Errorf("an expired state is answered %d\n%s", code, text)
	}
	if code, _ := callback(good.Get("code"), good.Get("state")); code != http.StatusForbidden {
		t.Errorf("an expired state that comes again is answered %d", code)
	}
	if exists(filepath.Join(w.dir, configFile)) {
		t.Error("settings are written")
	}
	_, page = st.get(st.page)
	next := formTo.FindStringSubmatch(page)
	if next == nil || strings.Contains(next[1], good.Get("state")) {
		t.Errorf("the state is used again: %v", next)
	}
	u, _ := url.Parse(next[1])
	if code, text := callback("guessed", u.Query().Get("state")); code == http.StatusOK || !strings.Contains(text, "delete it there") {
		t.Errorf("a code that GitHub does not know is answered %d\n%s", code, text)
	}
	_, page = st.get(st.page)
	u, _ = url.Parse(formTo.FindStringSubmatch(page)[1])
	if code, text := callback(good.Get("code"), u.Query().Get("state")); code != http.StatusOK {
		t.Fatalf("the right answer is answered %d\n%s", code, text)
	}
	if code, _ := callback(good.Get("code"), u.Query().Get("state")); code != http.StatusForbidden {
		t.Errorf("a replayed answer is answered %d", code)
	}
	w.install()
	if err := st.end(); err != nil {
		t.Fatal(err)
	}
	w.check()
}

// The page is for who was given the link, on this machine.
func TestPageIsClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st := w.start(w.options())
	origin := st.origin()
	for name, change := range map[string]func(*http.Request){
		"no link":      func(*http.Request) {},
		"wrong cookie": func(r *http.Request) { r.AddCookie(&http.Cookie{Name: doorCookie, Value: "x"}) },
		"another name": func(r *http.Request) {
			r.Host = "evil.example:80"
			r.AddCookie(&http.Cookie{Name: doorCookie, Value: st.page[strings.LastIndex(st.page, "/")+1:]})
		},
	} {
		for _, path := range []string{"/", "/settle", "/retry"} {
			method := http.MethodPost
			if path == "/" {
				method = http.MethodGet
			}
			r, _ := http.NewRequest(method, origin+path, nil)
			change(r)
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s, %s: %d", name, path, resp.StatusCode)
			}
		}
	}
	if code, _ := st.get(origin + "/start/guess"); code != http.StatusNotFound {
		t.Errorf("a guessed link is answered %d", code)
	}
	st.get(st.page)
	r, _ := http.NewRequest(http.MethodPost, origin+"/settle", strings.NewReader("model=x"))
	r.Header.Set("Origin", "https://evil.example")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := st.http.Do(r)
	if err != nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("another page's form is answered %v, %v", resp, err)
	}
}

// Answers that are wrong are told, and nothing is kept of them; keys are tried once.
func TestAnswersAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st := w.start(w.options())
	st.get(st.page)
	good := url.Values{"github": {w.gh.URL}, "poll": {"yes"}, "model": {w.tape()}}
	for name, c := range map[string]struct{ field, value, says string }{
		"GitHub in the clear": {"github", "http://github.example.com", "GitHub&#39;s address"},
		"GitHub's page":       {"github", "https://github.com/acme", "GitHub&#39;s address"},
		"organisation":        {"org", "a/b", "no name of an organisation"},
		"long name":           {"name", strings.Repeat("x", 35), "34"},
		"no address":          {"poll", "", "choose to have its deliveries read"},
		"model":               {"model", "sonnet", "anthropic/MODEL"},
		"model without a key": {"model", "anthropic/x", "needs the key"},
		"model that is away":  {"base", "ftp://x", "model&#39;s address"},
	} {
		form := url.Values{}
		for k, v := range good {
			form[k] = v
		}
		form.Set(c.field, c.value)
		if code, text, _ := st.post(st.origin()+"/settle", form); code != http.StatusUnprocessableEntity || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d\n%s", name, code, text)
		}
	}
	refuses := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"invalid api key"}}`, http.StatusUnauthorized)
	})
	model := newLocal(t, refuses)
	form := url.Values{"github": {w.gh.URL}, "poll": {"yes"}, "model": {"openai/some"}, "base": {model + "/v1"}, "key": {"sk-test-0123456789abcdef"}}
	if code, text, _ := st.post(st.origin()+"/settle", form); code != http.StatusUnprocessableEntity ||
		!strings.Contains(text, "tried once") || strings.Contains(text, "sk-test") {
		t.Errorf("a key that is refused: %d\n%s", code, text)
	}
	if exists(filepath.Join(w.dir, modelKeyFile)) {
		t.Error("a key that is refused is kept")
	}
}

func newLocal(t *testing.T, h http.Handler) string {
	t.Helper()
	s := &http.Server{Handler: h}
	l := listen(t)
	go s.Serve(l) //nolint:errcheck // ends with Close
	t.Cleanup(func() { s.Close() })
	return "http://" + l.Addr().String()
}

// Files that are there are not written over.
func TestNothingIsOverwritten(t *testing.T) {
	t.Parallel()
	for _, name := range []string{configFile, appKeyFile, modelKeyFile} {
		w := newWorld(t)
		if err := errors.Join(os.MkdirAll(w.dir, 0o700), os.WriteFile(filepath.Join(w.dir, name), []byte("label: mine\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		o := w.options()
		o.Ready = func(string, string) { cancel() } // it goes on
		if err := Run(ctx, o); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "--replace") {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		if text, _ := os.ReadFile(filepath.Join(w.dir, name)); string(text) != "label: mine\n" {
			t.Errorf("%s is now %q", name, text)
		}
		o = w.options()
		o.Replace = true
		st := w.start(o)
		st.stop()
		if text, _ := os.ReadFile(filepath.Join(w.dir, name+".old")); string(text) != "label: mine\n" {
			t.Errorf("%s.old is %q", name, text)
		}
	}
}

// Covers D1: on a terminal without a browser, the form is a file, and the address at
// which the browser ended is pasted.
func TestTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options()
	r, write := io.Pipe()
	var out safeBuffer
	o.Terminal, o.In, o.Out = true, r, &out
	o.Answers.Name, o.Answers.Poll = "", false
	ready := make(chan string, 9)
	go func() {
		fmt.Fprintln(write, "forge") // the name
		fmt.Fprintln(write, "")      // GitHub cannot reach it
	}()
	ended := make(chan error, 1)
	o.Ready = func(_, manual string) { ready <- manual }
	go func() { ended <- Run(t.Context(), o) }()
	page, err := os.ReadFile(<-ready)
	if err != nil {
		t.Fatal(err)
	}
	back := w.register(string(page))
	fmt.Fprintln(write, "http://127.0.0.1:1/callback?nothing")
	<-ready
	fmt.Fprintln(write, strings.Replace(back, "state=", "state=x", 1))
	<-ready
	fmt.Fprintln(write, back)
	w.install()
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	w.check()
	for _, words := range []string{"holds no code", "does not belong", "All is set up", "forge doctor"} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("it does not say %q:\n%s", words, out.String())
		}
	}
	for _, secret := range []string{w.gh.WebhookSecret, w.gh.ClientSecret, "PRIVATE KEY"} {
		if strings.Contains(out.String(), secret) {
			t.Error("a secret is printed")
		}
	}
}

// Where GitHub reaches the machine, its ping is waited for, and sent again.
func TestPing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options()
	l := listen(t)
	address := l.Addr().String()
	l.Close()
	env := o.Getenv
	o.Getenv = func(name string) string {
		if name == "FORGE_LISTEN" {
			return address
		}
		return env(name)
	}
	o.Answers.Poll, o.Answers.URL, o.Unit = false, "http://"+address, "systemd"
	var out safeBuffer
	o.Out = &out
	st := w.start(o)
	st.get(st.page)
	a := o.Answers
	if code, text, _ := st.post(st.origin()+"/settle",
		url.Values{"github": {a.GitHub}, "url": {a.URL}, "model": {a.Model}, "name": {"forge"}}); code != http.StatusSeeOther {
		t.Fatalf("%d\n%s", code, text)
	}
	_, page := st.get(st.page)
	st.get(w.register(page))
	w.install()
	if err := st.end(); err != nil {
		t.Fatal(err)
	}
	arrived := slices.ContainsFunc(w.gh.Deliveries(), func(d githubtest.Delivery) bool { return d.StatusCode == http.StatusAccepted })
	if !arrived || !strings.Contains(out.String(), "systemctl enable") {
		t.Errorf("no delivery arrived:\n%s", out.String())
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "forge.service"))
	if err != nil || !bytes.Contains(text, []byte("--config "+w.dir+"/forge.yml")) {
		t.Errorf("the unit: %v\n%s", err, text)
	}
}

// A container of the compose file sees the settings, and the keys that they name, where
// they are on the machine, and needs nothing that is not there.
func TestComposeSeesTheFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options()
	o.Unit = unitCompose
	st := w.start(o)
	st.get(st.page)
	st.settle()
	_, page := st.get(st.page)
	st.get(w.register(page))
	w.install()
	if err := st.end(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Build   any
			Command []string
			Volumes []string
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	forge := file.Services["forge"]
	if !slices.Contains(forge.Volumes, ".:"+w.dir+":ro") || !slices.Contains(forge.Command, filepath.Join(w.dir, configFile)) || forge.Build != nil {
		t.Errorf("the container:\n%s", text)
	}
}

// The files that a set-up writes are those that are documented.
func TestUnitsAreTheSame(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"forge.service": serviceText, "compose.yml": composeText} {
		if kept, err := os.ReadFile("../../../.github/deploy/" + name); err != nil || string(kept) != text {
			t.Errorf("cmd/forge/setup/%s differs from .github/deploy/%s: copy it over (%v)", name, name, err)
		}
	}
}

// Covers D1: the page opens on the port that was asked for, or says that it cannot; what is
// no port, and no kind of unit, is refused before anything else.
func TestPort(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	serve := func() (*page, error) {
		s, err := open(Options{Dir: t.TempDir(), Port: port, In: strings.NewReader(""), Out: io.Discard, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		return s.serve(t.Context())
	}
	if _, err := serve(); err == nil {
		t.Errorf("the page opens though port %d is taken", port)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	if p.port != port {
		t.Errorf("the page is on port %d, want %d", p.port, port)
	}
	for _, args := range [][]string{{"--port", "70000"}, {"--port", "-1"}, {"--write", "upstart"}} {
		c := Command()
		c.SetArgs(append(args, "--dir", t.TempDir()))
		c.SilenceUsage, c.SilenceErrors = true, true
		if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), args[1]) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
