package githubtest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"forge/github/githubtest/exchangetest"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v62/github"
)

// world is a GitHub with one repository and a client of the App for it.
type world struct {
	t    *testing.T
	s    *Server
	repo string
	inst int64
	gh   *github.Client
	http *http.Client
	hook *hookLog
	al   *Person // may write
	ctx  context.Context
}

type event struct {
	name, guid string
	body       map[string]any
}

func (e event) String() string {
	if a, isText := e.body["action"].(string); isText {
		return e.name + "." + a
	}
	return e.name
}

// hookLog is the App's end of the webhook. It checks the signature itself.
type hookLog struct {
	mu     sync.Mutex
	secret string
	events []event
	bad    int
	status int
}

func (h *hookLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	mac := hmac.New(sha256.New, []byte(h.secret))
	mac.Write(body)
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Header.Get("X-Hub-Signature-256") != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
		h.bad++
	}
	e := event{name: r.Header.Get("X-GitHub-Event"), guid: r.Header.Get("X-GitHub-Delivery")}
	if json.Unmarshal(body, &e.body) != nil {
		h.bad++
	}
	h.events = append(h.events, e)
	if h.status != 0 {
		w.WriteHeader(h.status)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// names returns what has come, and forgets it.
func (h *hookLog) names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, e := range h.events {
		out = append(out, e.String())
	}
	h.events = nil
	return out
}

func (h *hookLog) last(name string) map[string]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.events) - 1; i >= 0; i-- {
		if h.events[i].String() == name {
			return h.events[i].body
		}
	}
	return nil
}

func manifest(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../app.yml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

const mainGo = "package shop\n\n// Price is in cents.\nfunc Price(n int) int {\n\treturn n * 100\n}\n\nfunc Zero() int {\n\treturn 0\n}\n"

// testClock is a clock that tests move while the server's goroutines read it.
type testClock struct{ at atomic.Pointer[time.Time] }

func newTestClock(at time.Time) *testClock {
	c := &testClock{}
	c.at.Store(&at)
	return c
}

func (c *testClock) Now() time.Time { return *c.at.Load() }

func (c *testClock) Advance(d time.Duration) {
	at := c.Now().Add(d)
	c.at.Store(&at)
}

func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	opts := Options{Dir: t.TempDir(), Manifest: manifest(t), Seed: 1, Contract: exchangetest.Record(t)}
	for _, f := range change {
		f(&opts)
	}
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, s: s, hook: &hookLog{secret: s.WebhookSecret}, ctx: t.Context()}
	end := httptest.NewServer(w.hook)
	t.Cleanup(func() {
		end.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(opts.Dir); err != nil || len(left) > 0 {
			t.Errorf("Close left %v, %v", left, err)
		}
	})
	w.repo, err = s.AddRepo("acme", "shop", map[string]string{"go.mod": "module shop\n", "shop.go": mainGo, "README.md": "# Shop\n"})
	w.must(err)
	w.al = s.As("alice")
	w.must(s.SetPermission(w.repo, "alice", "write"))
	s.SetHook(end.URL)
	in, err := s.Install(w.repo)
	w.must(err)
	w.inst = in.ID
	w.gh = w.client()
	w.settle()
	w.hook.names()
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// client is what Forge uses: go-github over ghinstallation.
func (w *world) client() *github.Client {
	tr, err := ghinstallation.New(http.DefaultTransport, w.s.AppID, w.inst, w.s.PrivateKey)
	w.must(err)
	tr.BaseURL = w.s.URL + "/api/v3"
	w.http = &http.Client{Transport: tr}
	gh, err := github.NewClient(w.http).WithEnterpriseURLs(w.s.URL, w.s.URL)
	w.must(err)
	return gh
}

func (w *world) appClient() *github.Client {
	tr, err := ghinstallation.NewAppsTransport(http.DefaultTransport, w.s.AppID, w.s.PrivateKey)
	w.must(err)
	gh, err := github.NewClient(&http.Client{Transport: tr}).WithEnterpriseURLs(w.s.URL, w.s.URL)
	w.must(err)
	return gh
}

func (w *world) settle() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
	defer cancel()
	w.must(w.s.Settle(ctx))
}

func basic(token string) string {
	return base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token))
}
