package access

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"forge/github"
	"forge/pipeline"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	d := newTestAccess(t)
	r := d.send("GET", "/login?to=/runs/7%3Ftab=events", "")
	at, err := r.Location()
	c := cookieOf(r, "__Host-forge_signin")
	if err != nil || c == nil {
		t.Fatalf("/login: %v, %v", err, r.Cookies())
	}
	if c.MaxAge != 600 || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode {
		t.Errorf("the cookie is %v", c)
	}
	q := at.Query()
	if q.Get("redirect_uri") != publicURL+"/login/callback" || len(q.Get("state")) != 43 {
		t.Errorf("to GitHub: %v", q)
	}
	r = d.send("GET", "/login/callback?code=alice&state="+q.Get("state"), "", "Cookie: "+c.Name+"="+c.Value)
	if to := r.Header.Get("Location"); r.StatusCode != http.StatusSeeOther || to != "/runs/7?tab=events" {
		t.Errorf("back: %d to %q: %s", r.StatusCode, to, text(t, r))
	}
	if gone := cookieOf(r, "__Host-forge_signin"); gone == nil || gone.MaxAge >= 0 {
		t.Errorf("what began the sign-in stays: %v", gone)
	}
	sum := sha256.Sum256([]byte(d.github.verifier))
	if base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") {
		t.Errorf("the verifier %q does not answer the challenge %q", d.github.verifier, q.Get("code_challenge"))
	}
	s := cookieOf(r, "__Host-forge_session")
	if s == nil || s.MaxAge != 8*3600 {
		t.Fatalf("session %v", s)
	}
	for _, secret := range []string{"alice", "token", testSecret} {
		if strings.Contains(s.Value, secret) {
			t.Errorf("%q can be read in the cookie", secret)
		}
	}
	alice := "Cookie: " + s.Name + "=" + s.Value
	if got := text(t, d.send("GET", "/", "", alice)); got != "alice 11 local=false stale=false all=false [acme/Shop acme/cart] body=0 https://avatars.githubusercontent.com/u/11" {
		t.Errorf("the page: %s", got)
	}
	if got := text(t, d.send("GET", "/", "", d.signIn("bob"))); got != "bob 12 local=false stale=false all=false [] body=0 " {
		t.Errorf("bob's page: %s", got)
	}
	d.now = d.now.Add(8*time.Hour - time.Second)
	if r := d.send("GET", "/", "", alice); r.StatusCode != 200 {
		t.Errorf("within 8 hours: %d", r.StatusCode)
	}
	d.now = d.now.Add(time.Second)
	if r := d.send("GET", "/", "", alice); r.StatusCode != 401 {
		t.Errorf("after 8 hours: %d", r.StatusCode)
	}
}

// A session ends with the token that it stands on.
func TestSessionEndsWithToken(t *testing.T) {
	t.Parallel()
	d := newTestAccess(t)
	d.github.expires = d.now.Add(time.Hour)
	alice := d.signIn("alice")
	d.now = d.now.Add(time.Hour)
	if r := d.send("GET", "/", "", alice); r.StatusCode != 401 {
		t.Errorf("after the token's end: %d", r.StatusCode)
	}
}

func TestCallbackRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		query  string // STATE is the right one
		cookie bool
		github func(*testAccess)
		want   int
		says   string
	}{
		{"no cookie", "code=alice&state=STATE", false, nil, 400, "did not begin in this browser"},
		{"another state", "code=alice&state=" + strings.Repeat("A", 43), true, nil, 400, "did not begin in this browser"},
		{"no state", "code=alice", true, nil, 400, "did not begin in this browser"},
		{"nothing", "", true, nil, 400, "did not begin in this browser"},
		{"too late", "code=alice&state=STATE", true, func(d *testAccess) { d.now = d.now.Add(10 * time.Minute) }, 400, "longer than 10 minutes"},
		{"denied", "error=access_denied&state=STATE", true, nil, 403, "You did not let Forge know"},
		{"denied, forged", "error=access_denied&state=x", true, nil, 400, "did not begin"},
		{"refused", "error=application_suspended&state=STATE", true, nil, 502, "GitHub refused"},
		{"no code", "state=STATE", true, nil, 502, "GitHub refused"},
		{"long code", "state=STATE&code=" + strings.Repeat("x", 256), true, nil, 502, "GitHub refused"},
		{"a code that GitHub does not know", "code=mallory&state=STATE", true, nil, 502, "did not confirm"},
		{"GitHub down", "code=alice&state=STATE", true, func(d *testAccess) { d.github.exchange = errors.New("down") }, 502, "did not confirm"},
		{"GitHub half down", "code=alice&state=STATE", true, func(d *testAccess) { d.github.who = errors.New("down") }, 502, "did not confirm"},
		{"a bot", "code=robot&state=STATE", true, nil, 403, "for people"},
		{"a long name", "code=alice&state=STATE", true, func(d *testAccess) {
			d.github.users["token-of-alice"] = github.User{Actor: pipeline.Actor{ID: 1, Login: strings.Repeat("x", 5000)}}
		}, 500, "could not be kept"},
		{"all busy", "code=alice&state=STATE", true, func(d *testAccess) {
			for range mostExchanges {
				d.a.slots <- struct{}{}
			}
		}, 503, "Try again"},
	} {
		d := newTestAccess(t)
		cookie, state := d.begin("/")
		if c.github != nil {
			c.github(d)
		}
		if !c.cookie {
			cookie = "X-Nothing: 1"
		}
		r := d.send("GET", "/login/callback?"+strings.Replace(c.query, "STATE", state, 1), "", cookie)
		body := text(t, r)
		if r.StatusCode != c.want || !strings.Contains(body, c.says) || cookieOf(r, "__Host-forge_session") != nil || d.hits > 0 {
			t.Errorf("%s: %d, want %d with %q: %s", c.name, r.StatusCode, c.want, c.says, body)
		}
		if gone := cookieOf(r, "__Host-forge_signin"); gone == nil || gone.MaxAge >= 0 {
			t.Errorf("%s: what began the sign-in stays: %v", c.name, gone)
		}
	}
}

// The session's cookie does not serve for a sign-in, nor the other way round; an
// old answer is worth nothing with a newer beginning.
func TestCallbackReplayed(t *testing.T) {
	t.Parallel()
	d := newTestAccess(t)
	first, state := d.begin("/")
	second, _ := d.begin("/")
	if r := d.send("GET", "/login/callback?code=alice&state="+state, "", second); r.StatusCode != 400 {
		t.Errorf("an older state: %d", r.StatusCode)
	}
	alice := d.signIn("alice")
	asBeginning := strings.Replace(alice, "forge_session", "forge_signin", 1)
	if r := d.send("GET", "/login/callback?code=alice&state=", "", asBeginning); r.StatusCode != 400 {
		t.Errorf("a session as the beginning of a sign-in: %d", r.StatusCode)
	}
	if r := d.send("GET", "/", "", strings.Replace(first, "forge_signin", "forge_session", 1)); r.StatusCode != 401 {
		t.Errorf("the beginning of a sign-in as a session: %d", r.StatusCode)
	}
}

func TestLogout(t *testing.T) {
	t.Parallel()
	d := newTestAccess(t)
	alice := d.signIn("alice")
	if r := d.send("GET", "/", "", alice); r.StatusCode != 200 {
		t.Fatalf("before: %d", r.StatusCode)
	}
	if r := d.send("GET", "/logout", "", alice); r.StatusCode != 405 || r.Header.Get("Allow") != "POST" {
		t.Errorf("GET /logout: %d", r.StatusCode)
	}
	if r := d.send("POST", "/logout", "", alice, "Sec-Fetch-Site: cross-site"); r.StatusCode != 403 || len(d.github.revoked) > 0 {
		t.Errorf("signed out by another site: %d", r.StatusCode)
	}
	r := d.send("POST", "/logout", "", alice, "Sec-Fetch-Site: same-origin")
	if c := cookieOf(r, "__Host-forge_session"); r.StatusCode != 200 || c == nil || c.MaxAge >= 0 || !slices.Equal(d.github.revoked, []string{"token-of-alice"}) {
		t.Errorf("sign out: %d, %v, revoked %v", r.StatusCode, c, d.github.revoked)
	}
	if r := d.send("GET", "/", "", alice); r.StatusCode != 401 { // a copy of the cookie
		t.Errorf("replayed after signing out: %d", r.StatusCode)
	}
	if r := d.send("POST", "/logout", ""); r.StatusCode != 200 || len(d.github.revoked) != 1 {
		t.Errorf("nobody signs out: %d, revoked %v", r.StatusCode, d.github.revoked)
	}
}

// Another server of the same App takes the session; one that is not, does not.
func TestSeveralServers(t *testing.T) {
	t.Parallel()
	one, two := newTestAccess(t), newTestAccess(t)
	alice := one.signIn("alice")
	if r := two.send("GET", "/", "", alice); r.StatusCode != 200 {
		t.Errorf("on a second server: %d", r.StatusCode)
	}
	other := newTestAccess(t, func(o *Options) { o.Secret = []byte(strings.Repeat("y", 40)) })
	if r := other.send("GET", "/", "", alice); r.StatusCode != 401 {
		t.Errorf("on a server with another secret: %d", r.StatusCode)
	}
}

func TestWithoutRandomness(t *testing.T) {
	t.Parallel()
	d := newTestAccess(t, func(o *Options) { o.Random = strings.NewReader("few") })
	if r := d.send("GET", "/login", ""); r.StatusCode != 500 || len(r.Cookies()) > 0 {
		t.Errorf("%d, %v", r.StatusCode, r.Cookies())
	}
}

var relativeCases = map[string]string{
	"":                              "/",
	"/":                             "/",
	"/runs/7":                       "/runs/7",
	"/runs?repo=a%2Fb&x=1":          "/runs?repo=a%2Fb&x=1",
	"/runs/7#top":                   "/runs/7",
	"//evil.example":                "/",
	"//evil.example/runs":           "/",
	"///evil.example":               "/",
	`/\evil.example`:                "/",
	`\\evil.example`:                "/",
	`/a\b`:                          "/",
	"/%5cevil.example":              "/",
	"/\t/evil.example":              "/",
	"/%09/evil.example":             "/",
	"/\r\nSet-Cookie: a=b":          "/",
	"/%0d%0aSet-Cookie:a=b":         "/",
	"https://evil.example":          "/",
	"https:evil.example":            "/",
	"javascript:alert(1)":           "/",
	"runs":                          "/",
	" /runs":                        "/",
	"/login":                        "/",
	"/login/callback?code=x":        "/",
	"/logout":                       "/",
	"/x/../logout":                  "/",
	"/logouts":                      "/logouts",
	"/%zz":                          "/",
	"/" + strings.Repeat("a", 2000): "/",
}

// Nobody is led elsewhere.
func TestRelative(t *testing.T) {
	t.Parallel()
	for to, want := range relativeCases {
		if got := relative(to); got != want {
			t.Errorf("relative(%q) = %q, want %q", to, got, want)
		}
	}
	d := newTestAccess(t)
	for to := range relativeCases {
		cookie, state := d.begin(to)
		r := d.send("GET", "/login/callback?code=alice&state="+state, "", cookie)
		if at, err := r.Location(); err != nil || at.Host != "" && at.Host != "forge.example.com" {
			t.Errorf("to=%q leads to %v, %v", to, at, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		to := rapid.OneOf(rapid.String(), rapid.StringMatching(`[/\\]{0,3}[a-z.:@%/\\?#\t]{0,12}`)).Draw(t, "to")
		got := relative(to)
		// As browsers read it: tabs and line ends are dropped, backslashes are slashes.
		read := strings.NewReplacer("\t", "", "\r", "", "\n", "", `\`, "/").Replace(got)
		base, _ := url.Parse("https://forge.example.com/login")
		at, err := base.Parse(read)
		if err != nil || at.Host != base.Host || at.Scheme != "https" || !strings.HasPrefix(read, "/") || strings.HasPrefix(read, "//") {
			t.Fatalf("relative(%q) = %q, which leads to %v, %v", to, got, at, err)
		}
		if again := relative(got); again != got {
			t.Fatalf("relative(%q) = %q, and of that %q", to, got, again)
		}
	})
}

// Covers S29: neither a token nor the secret is in the log, whatever happens.
func TestLogHoldsNoSecret(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	d := newTestAccess(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	alice := d.signIn("alice")
	d.send("GET", "/", "", alice)
	d.github.read = errors.New("down")
	d.now = d.now.Add(time.Hour)
	d.send("GET", "/", "", alice)
	d.github.exchange = errors.New("refused")
	cookie, state := d.begin("/")
	d.send("GET", "/login/callback?code=c0de&state="+state, "", cookie)
	d.send("POST", "/x", "", alice, "Origin: https://evil.example")
	d.send("POST", "/logout", "", alice)
	for _, secret := range []string{"token-of", testSecret, "c0de", state, d.github.verifier, strings.TrimPrefix(alice, "Cookie: __Host-forge_session=")} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%q is in the log:\n%s", secret, log.String())
		}
	}
	for _, want := range []string{"signed in", "signed out", "actor=alice", "another site", "ask what a person can read", "confirm a sign-in"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
}
