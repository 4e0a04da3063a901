package access

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/github"
	"forge/pipeline"
)

const (
	publicURL  = "https://forge.example.com"
	testSecret = "0123456789abcdef0123456789abcdef01234567"
)

// fakeGitHub is a GitHub in a struct: people by the code they come back with, what they
// can read by their token, what they may do by their id.
type fakeGitHub struct {
	mu       sync.Mutex
	users    map[string]github.User
	repos    map[string][]pipeline.Repo
	may      map[int64]string
	exchange error
	who      error
	read     error
	asked    error
	expires  time.Time
	verifier string
	revoked  []string
	reads    int
}

func (h *fakeGitHub) AuthorizeURL(callback, state, challenge string) string {
	return "https://github.example/authorize?" + url.Values{"redirect_uri": {callback}, "state": {state}, "code_challenge": {challenge}}.Encode()
}

func (h *fakeGitHub) Exchange(_ context.Context, code, verifier, callback string) (github.UserToken, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if callback != publicURL+"/login/callback" {
		return github.UserToken{}, fmt.Errorf("callback %q", callback)
	}
	h.verifier = verifier
	if _, ok := h.users["token-of-"+code]; !ok && h.exchange == nil {
		return github.UserToken{}, fmt.Errorf("no code %q", code)
	}
	return github.UserToken{Token: "token-of-" + code, Expires: h.expires}, h.exchange
}

func (h *fakeGitHub) User(_ context.Context, token string) (github.User, error) {
	return h.users[token], h.who
}

func (h *fakeGitHub) Readable(_ context.Context, token string) ([]pipeline.Repo, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reads++
	if h.read != nil {
		return nil, h.read
	}
	for _, t := range h.revoked {
		if t == token {
			return nil, fmt.Errorf("read: %w", github.ErrSignedOut)
		}
	}
	return h.repos[token], nil
}

func (h *fakeGitHub) Revoke(_ context.Context, token string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.revoked = append(h.revoked, token)
	return nil
}

func (h *fakeGitHub) permission(_ context.Context, _ pipeline.Repo, who pipeline.Actor) (string, error) {
	return h.may[who.ID], h.asked
}

var (
	shop = pipeline.Repo{ID: 7, Owner: "acme", Name: "Shop", Installation: 1}
	cart = pipeline.Repo{ID: 8, Owner: "acme", Name: "cart", Installation: 1}
)

// testAccess is an Access with mode github in front of small pages.
type testAccess struct {
	t      *testing.T
	github *fakeGitHub
	a      *Access
	h      http.Handler
	now    time.Time
	hits   int // requests that reached the pages
}

func newTestAccess(t *testing.T, change ...func(*Options)) *testAccess {
	t.Helper()
	d := &testAccess{t: t, now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), github: &fakeGitHub{
		users: map[string]github.User{
			"token-of-alice": {Actor: pipeline.Actor{ID: 11, Login: "alice"}, AvatarURL: "https://avatars.githubusercontent.com/u/11"},
			"token-of-bob":   {Actor: pipeline.Actor{ID: 12, Login: "bob"}, AvatarURL: "javascript:alert(1)"},
			"token-of-robot": {Actor: pipeline.Actor{ID: 13, Login: "robot[bot]", Bot: true}},
		},
		repos: map[string][]pipeline.Repo{"token-of-alice": {shop, cart}},
		may:   map[int64]string{11: "write", 12: "read"},
	}}
	o := Options{Mode: GitHub, PublicURL: publicURL, Secret: []byte(testSecret), SignIn: d.github, Permission: d.github.permission,
		Clock: func() time.Time { return d.now }, User: pipeline.Actor{Login: "root"}}
	for _, f := range change {
		f(&o)
	}
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	d.a, d.h = a, a.Wrap(http.HandlerFunc(d.pages))
	return d
}

// pages says who looks at what.
func (d *testAccess) pages(w http.ResponseWriter, r *http.Request) {
	d.hits++
	v := From(r.Context())
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/static/") {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	list, all := v.Repos()
	fmt.Fprintf(w, "%s %d local=%t stale=%t all=%t %v body=%d %s", v.Actor.Login, v.Actor.ID, v.Local, v.Stale, all, list, len(body), v.AvatarURL)
}

// send makes a request of a browser that is at publicURL; header lines are "Name: value".
func (d *testAccess) send(method, target, body string, header ...string) *http.Response {
	d.t.Helper()
	r := httptest.NewRequestWithContext(d.t.Context(), method, target, strings.NewReader(body))
	r.Host, r.RemoteAddr = "forge.example.com", "127.0.0.1:4711"
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "Host":
			r.Host = value
		case "From":
			r.RemoteAddr = value
		case "Proto":
			r.Proto, r.ProtoMajor, r.ProtoMinor = value, 1, 0
		default:
			r.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	d.h.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// cookieOf returns the cookie of that name that an answer sets, or nil.
func cookieOf(r *http.Response, name string) *http.Cookie {
	for _, c := range r.Cookies() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// begin goes to GitHub and returns the cookie and the state.
func (d *testAccess) begin(to string) (cookie, state string) {
	d.t.Helper()
	r := d.send("GET", "/login?"+url.Values{"to": {to}}.Encode(), "")
	at, err := r.Location()
	c := cookieOf(r, "__Host-forge_signin")
	if err != nil || c == nil || r.StatusCode != http.StatusSeeOther {
		d.t.Fatalf("/login: %d, %v, %v", r.StatusCode, err, r.Cookies())
	}
	return "Cookie: " + c.Name + "=" + c.Value, at.Query().Get("state")
}

// signIn returns the header line of somebody's session.
func (d *testAccess) signIn(code string) string {
	d.t.Helper()
	cookie, state := d.begin("/")
	r := d.send("GET", "/login/callback?code="+code+"&state="+state, "", cookie)
	c := cookieOf(r, "__Host-forge_session")
	if c == nil || r.StatusCode != http.StatusSeeOther {
		d.t.Fatalf("sign in: %d %s", r.StatusCode, text(d.t, r))
	}
	return "Cookie: " + c.Name + "=" + c.Value
}
