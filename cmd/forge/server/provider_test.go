package server_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/pipeline"
	"forge/pipeline/agent/agenttest"
)

// provider is a model's provider that plays the greeter's tape, behind a door that may
// turn calls away.
type provider struct {
	url string

	mu    sync.Mutex
	calls int
	door  func(call int, w http.ResponseWriter) (refused bool) // with the lock
}

const providerKey = "sk-test-0123456789abcdef"

func newProvider(t *testing.T, door func(call int, w http.ResponseWriter) bool) *provider {
	t.Helper()
	tape, err := agenttest.NewServer([]byte(servertest.GreeterTape))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tape.Close() })
	to, err := url.Parse(tape.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{door: door}
	behind := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.calls++
		refused := p.door(p.calls, w)
		p.mu.Unlock()
		if refused {
			io.Copy(io.Discard, r.Body)
			return
		}
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	p.url = front.URL
	return p
}

// env is the environment of a server that uses the provider.
func (p *provider) env() map[string]string {
	return map[string]string{"FORGE_MODEL": "openai/tape", "OPENAI_BASE_URL": p.url + "/v1", "OPENAI_API_KEY": providerKey}
}

// lines keeps what a server logs.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Covers T5, S29: a wrong key is told to the operator, once, however many runs meet it,
// and to nobody else; the runs wait. The key is not in what anybody reads. Once it is
// right, the runs go on by themselves.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	right := false
	p := newProvider(t, func(_ int, w http.ResponseWriter) bool {
		if right {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"error":{"message":"Incorrect API key provided: `+providerKey+`","code":"invalid_api_key"}}`)
		return true
	})
	var mu sync.Mutex
	var ahead time.Duration
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(ahead)
	}
	log := &lines{}
	ts := servertest.New(t, servertest.Options{Env: p.env(), Now: clock, Wire: func(o *server.Options) { o.Log = slog.New(slog.NewTextHandler(log, nil)) }})
	for range 2 {
		ts.Label("acme")
		n := ts.Issue
		ts.Until("waits for the key", func(r *pipeline.Run) bool { return r.Task.Issue == n && r.Await != nil && r.Gate() == nil })
		var err error
		ts.Issue, err = ts.GitHub.As("acme").OpenIssue(servertest.Repo, "The greeting lacks its comma", "Still.")
		ts.Must(err)
	}
	if n := strings.Count(log.String(), "needs the operator"); n != 1 {
		t.Errorf("the operator is told %d times, want once:\n%s", n, log)
	}
	if text := log.String() + ts.Comments(); strings.Contains(text, providerKey) {
		t.Errorf("the key is told:\n%s", text)
	}
	p.mu.Lock()
	right = true
	p.mu.Unlock()
	mu.Lock()
	ahead = time.Hour
	mu.Unlock()
	ts.Until("is verified by itself", func(r *pipeline.Run) bool { return r.State == pipeline.StateVerified && len(r.Gates) == 0 })
}

// The demo's tape says what it is when it is asked to work on another issue.
func TestDemoKnowsOneIssue(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{Tape: string(demo.Loop.Tape())})
	ts.Label("acme")
	ts.UntilState(pipeline.StateWaiting)
	ts.Says("it is a tape written by hand, and it knows the issue about the discount alone")
	if pulls, _ := ts.GitHub.Pulls(servertest.Repo); len(pulls) != 0 {
		t.Errorf("it made a pull request all the same: %+v", pulls)
	}
}
