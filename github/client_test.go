package github

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"forge/github/render/rendertest"
	"forge/pipeline"
	"forge/pipeline/text"
)

// roundTrip is a GitHub without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath = byName(r.URL.Path), byName(r.URL.RawPath)
	if strings.HasSuffix(r.URL.Path, "/access_tokens") {
		return answer(201, `{"token":"ghs_`+strings.Repeat("t", 36)+`","expires_at":"2999-01-01T00:00:00Z"}`), nil
	}
	return f(r)
}

func answer(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

func testApp(t *testing.T, rt http.RoundTripper, change ...func(*Options)) *App {
	t.Helper()
	o := Options{AppID: 1, PrivateKey: testKey(), Base: rt}
	for _, c := range change {
		c(&o)
	}
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{PrivateKey: testKey()}, "App id"},
		{Options{AppID: 1}, "private key"},
		{Options{AppID: 1, PrivateKey: []byte("ghs_" + strings.Repeat("s", 36))}, "private key"},
		{Options{AppID: 1, PrivateKey: testKey(), BaseURL: "http://github.example.com"}, "https://"},
		{Options{AppID: 1, PrivateKey: testKey(), BaseURL: "github.example.com"}, "https://HOST"},
		{Options{AppID: 1, PrivateKey: testKey(), BaseURL: "https://user:pw@github.example.com"}, "https://HOST"},
	} {
		_, err := New(c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "ssss") {
			t.Errorf("New(%q, %d): error %v, want %q in it", c.o.BaseURL, c.o.AppID, err, c.want)
		}
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ base, rest, gql, web string }{
		{"", "https://api.github.com/", "https://api.github.com/graphql", "https://github.com"},
		{"https://github.com/", "https://api.github.com/", "https://api.github.com/graphql", "https://github.com"},
		{"https://ghes.example.com", "https://ghes.example.com/api/v3/", "https://ghes.example.com/api/graphql", "https://ghes.example.com"},
		{"https://octo.ghe.com", "https://api.octo.ghe.com/", "https://api.octo.ghe.com/graphql", "https://octo.ghe.com"},
		{"http://127.0.0.1:8080", "http://127.0.0.1:8080/api/v3/", "http://127.0.0.1:8080/api/graphql", "http://127.0.0.1:8080"},
	} {
		a := testApp(t, nil, func(o *Options) { o.BaseURL = c.base })
		if a.rest.String() != c.rest || a.gql != c.gql || a.web.String() != c.web {
			t.Errorf("addresses of %q: %s %s %s, want %s %s %s", c.base, a.rest, a.gql, a.web, c.rest, c.gql, c.web)
		}
	}
}

// Writes of one installation come one at a time, with a pause; reads do not wait.
func TestWritesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Duration
		busy, start := 0, time.Now()
		a := testApp(t, roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet {
				return answer(200, `{"object":{"sha":"x"}}`), nil
			}
			mu.Lock()
			busy++
			if busy > 1 {
				t.Errorf("%d writes at a time", busy)
			}
			at = append(at, time.Since(start))
			mu.Unlock()
			time.Sleep(300 * time.Millisecond)
			mu.Lock()
			busy--
			mu.Unlock()
			return answer(201, `{"id":1}`), nil
		}), func(o *Options) { o.MinWriteInterval = time.Second })
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				s := rendertest.New(t)
				if _, _, err := a.Publish(context.Background(), s.Run, PublishOptions{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(at) != 3 || at[1]-at[0] != 1300*time.Millisecond || at[2]-at[1] != 1300*time.Millisecond {
			t.Errorf("writes at %v, want 1.3 s between them", at)
		}
		before := time.Now()
		if _, err := a.BranchHead(context.Background(), rendertest.Repo(), "main"); err != nil || time.Since(before) != 0 {
			t.Errorf("a read waited %s: %v", time.Since(before), err)
		}
	})
}

// Covers reliability 4 and 5: no call before Retry-After has passed.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		name   string
		status int
		body   string
		header []string
		want   time.Duration
	}{
		{"429", 429, `{}`, []string{"Retry-After", "30"}, 30 * time.Second},
		{"primary", 403, `{"message":"API rate limit exceeded"}`,
			[]string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(now.Unix() + 600)}, 601 * time.Second},
		{"secondary without a time", 403, `{"message":"You have exceeded a secondary rate limit"}`, nil, time.Minute},
		{"GraphQL", 200, `{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded"}]}`, nil, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, calls := now, 0
			a := testApp(t, roundTrip(func(r *http.Request) (*http.Response, error) {
				calls++
				return answer(c.status, c.body, c.header...), nil
			}), func(o *Options) { o.Clock = func() time.Time { return at } })
			call := func() error {
				if c.name == "GraphQL" {
					s, err := a.session(rendertest.Repo())
					if err != nil {
						return err
					}
					_, err = s.pullState(context.Background(), rendertest.Repo(), 8)
					return err
				}
				_, err := a.BranchHead(context.Background(), rendertest.Repo(), "main")
				return err
			}
			var e *apiError
			if err := call(); !errors.As(err, &e) || e.RetryAfter() != c.want || e.Ambiguous() {
				t.Fatalf("limited call: %v, want %s to wait", err, c.want)
			}
			at = at.Add(c.want - time.Second)
			if err := call(); !errors.As(err, &e) || e.RetryAfter() != time.Second || calls != 1 {
				t.Errorf("call a second early: %v, %d calls, want 1", err, calls)
			}
			at = at.Add(time.Second)
			if call(); calls != 2 {
				t.Errorf("call in time: %d calls, want 2", calls)
			}
		})
	}
}

// A call that the library does not make, because an earlier answer had said that none is left,
// is as limited as one that GitHub refused; so it is for the App's own calls.
func TestRateLimitOfTheLibrary(t *testing.T) {
	t.Parallel()
	calls, reset := 0, time.Now().Add(10*time.Minute)
	a := testApp(t, roundTrip(func(r *http.Request) (*http.Response, error) {
		calls++
		return answer(200, `{"slug":"forge"}`, "X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(reset.Unix())), nil
	}))
	for n := range 2 {
		_, err := a.Facts(context.Background())
		var e *apiError
		if !errors.As(err, &e) || !e.Limited() || e.RetryAfter() < 9*time.Minute || e.RetryAfter() > 11*time.Minute {
			t.Errorf("call %d: %v, after %d requests", n+1, err, calls)
		}
	}
	if calls != 1 {
		t.Errorf("%d requests, want 1", calls)
	}
}

// A wait that no limit of GitHub's lasts for is not kept to.
func TestAbsurdLimit(t *testing.T) {
	t.Parallel()
	for _, h := range []http.Header{{"Retry-After": {"99999999999"}}, {"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"99999999999"}}} {
		if d := newLimiter().strike(h, time.Unix(1_700_000_000, 0)); d != limitMost {
			t.Errorf("%v: waits %s", h, d)
		}
	}
}

// Limits that name no time last longer each time, up to a bound.
func TestStrikes(t *testing.T) {
	t.Parallel()
	l, now := newLimiter(), time.Unix(0, 0)
	var got []time.Duration
	for range 6 {
		got = append(got, l.strike(http.Header{}, now))
	}
	if fmt.Sprint(got) != "[1m0s 2m0s 4m0s 8m0s 15m0s 15m0s]" {
		t.Errorf("strikes %v", got)
	}
	l.clear()
	if d := l.strike(http.Header{}, now); d != time.Minute {
		t.Errorf("after a success: %s", d)
	}
}

// A read is tried again, a write never is: it may have had its effect.
func TestRetries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		write     bool
		fail      func() (*http.Response, error)
		calls     int
		ambiguous bool
	}{
		{"read, 502", false, func() (*http.Response, error) { return answer(502, ""), nil }, 3, false},
		{"read, no connection", false, func() (*http.Response, error) { return nil, errors.New("reset") }, 3, false},
		{"write, 502", true, func() (*http.Response, error) { return answer(502, ""), nil }, 1, true},
		{"write, never sent", true, func() (*http.Response, error) { return nil, errors.New("refused") }, 1, false},
	} {
		calls := 0
		a := testApp(t, roundTrip(func(r *http.Request) (*http.Response, error) { calls++; return c.fail() }),
			func(o *Options) { o.Sleep = func(context.Context, time.Duration) error { return nil } })
		var err error
		if c.write {
			_, _, err = a.Publish(context.Background(), rendertest.New(t).Run, PublishOptions{})
		} else {
			_, err = a.BranchHead(context.Background(), rendertest.Repo(), "main")
		}
		var e *apiError
		if !errors.As(err, &e) || calls != c.calls || e.Ambiguous() != c.ambiguous {
			t.Errorf("%s: %d calls, ambiguous %v, error %v; want %d, %v", c.name, calls, e != nil && e.Ambiguous(), err, c.calls, c.ambiguous)
		}
	}
}

// A call that GitHub took but did not answer in time is ambiguous.
func TestTimeout(t *testing.T) {
	t.Parallel()
	a := testApp(t, roundTrip(func(r *http.Request) (*http.Response, error) {
		httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{}) // it is on its way
		<-r.Context().Done()
		return nil, r.Context().Err()
	}), func(o *Options) { o.Timeout = 50 * time.Millisecond })
	_, _, err := a.Publish(context.Background(), rendertest.New(t).Run, PublishOptions{})
	var e *apiError
	if !errors.As(err, &e) || !e.Ambiguous() || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("publish with a server that does not answer: %v", err)
	}
}

// Covers S17: what GitHub or a proxy echoes does not get into errors or logs.
func TestRedaction(t *testing.T) {
	t.Parallel()
	secret := "ghs_" + strings.Repeat("A1b-._", 10)
	var log bytes.Buffer
	a := testApp(t, roundTrip(func(r *http.Request) (*http.Response, error) {
		return answer(500, `{"message":"bad token `+secret+`"}`), nil
	}), func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Sleep = func(context.Context, time.Duration) error { return nil }
	})
	_, err := a.BranchHead(context.Background(), rendertest.Repo(), "main")
	_, _, err2 := a.Publish(context.Background(), rendertest.New(t).Run, PublishOptions{})
	for _, words := range []string{err.Error(), err2.Error(), log.String()} {
		if strings.Contains(words, "A1b") || !strings.Contains(words, "[secret]") {
			t.Errorf("a token is shown, or nothing: %s", words)
		}
	}
	for _, s := range []string{secret, "ghp_" + strings.Repeat("x", 36), "github_pat_" + strings.Repeat("x", 30),
		"eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxIn0.c2lnbmF0dXJl"} {
		if got := text.Scrub("a " + s + " b"); got != "a [secret] b" {
			t.Errorf("Scrub(%q) = %q", s, got)
		}
	}
}

// A redirect to another host does not carry the credentials there.
func TestRedirectElsewhere(t *testing.T) {
	t.Parallel()
	hosts := map[string]int{}
	a := testApp(t, roundTrip(func(r *http.Request) (*http.Response, error) {
		hosts[r.URL.Host]++
		return answer(302, "", "Location", "https://evil.example.com/x"), nil
	}))
	if _, err := a.BranchHead(context.Background(), rendertest.Repo(), "main"); err == nil || !strings.Contains(err.Error(), "evil.example.com") {
		t.Errorf("redirected call: %v", err)
	}
	if hosts["evil.example.com"] != 0 {
		t.Errorf("calls: %v", hosts)
	}
}

// Suspended and uninstalled are states, not errors to try again.
func TestTokenRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		body   string
		header []string
		want   string
		final  bool
	}{
		{403, `{"message":"This installation has been suspended"}`, nil, "suspended", true},
		{404, `{"message":"Not Found"}`, nil, "uninstalled", true},
		{401, `{"message":"A JSON web token could not be decoded"}`, nil, "private key", true},
		{422, `{"message":"The permissions requested are not granted to this installation."}`, nil, "contents: write", true},
		{429, `{"message":"slow down"}`, []string{"Retry-After", "20"}, "20s", false},
		{502, `oops`, nil, "502", false},
	} {
		f := newFake(t)
		a := f.app(t)
		f.fault = func(_ int, _, path string, _ bool) (int, map[string]string, string) {
			if !strings.HasSuffix(path, "/access_tokens") {
				t.Errorf("a call without a token: %s", path)
			}
			h := map[string]string{}
			for i := 0; i+1 < len(c.header); i += 2 {
				h[c.header[i]] = c.header[i+1]
			}
			return c.status, h, c.body
		}
		_, err := a.Token(context.Background(), rendertest.Repo())
		_, err2 := a.BranchHead(context.Background(), rendertest.Repo(), "main")
		for _, err := range []error{err, err2} {
			var fault *pipeline.Fault
			if err == nil || errors.As(err, &fault) != c.final || (c.final && !fault.Final) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("token answered with %d: %v, want %q, final %v", c.status, err, c.want, c.final)
			}
		}
	}
}

// Covers S23: a git token reaches one repository and its contents alone, and is kept.
func TestToken(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	a := f.app(t)
	for range 2 {
		tok, err := a.Token(context.Background(), rendertest.Repo())
		if err != nil || !strings.HasPrefix(tok, "ghs_") {
			t.Fatalf("token %q, %v", tok, err)
		}
	}
	if len(f.tokens) != 1 {
		t.Fatalf("token requests: %d, want 1", len(f.tokens))
	}
	var got struct {
		RepositoryIDs []int64           `json:"repository_ids"`
		Permissions   map[string]string `json:"permissions"`
	}
	if err := json.Unmarshal([]byte(f.tokens[0]), &got); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != "{[99] map[contents:write metadata:read]}" {
		t.Errorf("token request %v", got)
	}
	other := rendertest.Repo()
	other.ID = 100
	if _, err := a.Token(context.Background(), other); err != nil || len(f.tokens) != 2 {
		t.Errorf("another repository's token: %d requests, %v", len(f.tokens), err)
	}
	other.Installation = 0
	if _, err := a.Token(context.Background(), other); err == nil {
		t.Error("a repository without an installation got a token")
	}
}
