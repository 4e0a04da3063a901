package access

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

func testSealer(t testing.TB, secret, purpose, public string) sealer {
	t.Helper()
	u, err := url.Parse(public)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSealer([]byte(secret), purpose, u, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// otherEnd is another text that stands for the same bytes, where there is one: the
// last character has bits to spare.
func otherEnd(text string) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	if len(text)%4 == 0 {
		return text + "\x00"
	}
	return text[:len(text)-1] + string(digits[strings.IndexByte(digits, text[len(text)-1])^1])
}

// A session is only what this server made, for this use, and is not over.
func TestSessionCookie(t *testing.T) {
	t.Parallel()
	d := newTestAccess(t)
	now := d.now.Unix()
	good := session{ID: 11, Login: "alice", Token: "token-of-alice", Since: now, Until: now + 3600}
	seal := func(s sealer, v any) string {
		t.Helper()
		text, err := s.seal(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	with := func(change func(*session)) string {
		s := good
		change(&s)
		return seal(d.a.sessions, s)
	}
	whole := seal(d.a.sessions, good)
	flip := func(i int) string { // one bit of the i-th byte
		raw, err := cookieText.DecodeString(whole)
		if err != nil {
			t.Fatal(err)
		}
		raw[(i+len(raw))%len(raw)] ^= 1
		return cookieText.EncodeToString(raw)
	}
	const name = "__Host-forge_session"
	for _, c := range []struct {
		what, cookie string
		want         int
	}{
		{"good", name + "=" + whole, 200},
		{"made by a server whose clock is ahead", name + "=" + with(func(s *session) { s.Since += 50 }), 200},
		{"none", "", 401},
		{"empty", name + "=", 401},
		{"plain", name + `={"id":11,"login":"alice","token":"token-of-alice"}`, 401},
		{"truncated", name + "=" + whole[:len(whole)-1], 401},
		{"half", name + "=" + whole[:len(whole)/2], 401},
		{"short", name + "=AQ", 401},
		{"longer", name + "=" + whole + "AA", 401},
		{"of another writing", name + "=" + otherEnd(whole), 401},
		{"padded", name + "=" + whole + "=", 401},
		{"long", name + "=" + strings.Repeat("A", 100_000), 401},
		{"another version", name + "=" + flip(0), 401},
		{"another nonce", name + "=" + flip(1), 401},
		{"another text", name + "=" + flip(20), 401},
		{"another tag", name + "=" + flip(-1), 401},
		{"without its prefix", "forge_session=" + whole, 401},
		{"twice", name + "=" + whole + "; " + name + "=" + with(func(s *session) { s.Login = "mallory" }), 401},
		{"of another secret", name + "=" + seal(testSealer(t, strings.Repeat("x", 40), "session", publicURL), good), 401},
		{"of another server of the App", name + "=" + seal(testSealer(t, testSecret, "session", "https://staging.example.com"), good), 401},
		{"one for another use", name + "=" + seal(d.a.begun, good), 401},
		{"over", name + "=" + with(func(s *session) { s.Since, s.Until = now-3600, now }), 401},
		{"not begun", name + "=" + with(func(s *session) { s.Since += 3000 }), 401},
		{"too long a life", name + "=" + with(func(s *session) { s.Until = now + 8*3600 + 1 }), 401},
		{"of nobody", name + "=" + with(func(s *session) { s.ID = 0 }), 401},
		{"without a token", name + "=" + with(func(s *session) { s.Token = "" }), 401},
		{"without a name", name + "=" + with(func(s *session) { s.Login = "" }), 401},
		{"no session at all", name + "=" + seal(d.a.sessions, []int{1}), 401},
	} {
		r := d.send("GET", "/", "", "Cookie: "+c.cookie)
		if body := text(t, r); r.StatusCode != c.want || (c.want == 200) != strings.HasPrefix(body, "alice 11 ") {
			t.Errorf("%s: %d, want %d: %s", c.what, r.StatusCode, c.want, body)
		}
	}
}

func TestSeal(t *testing.T) {
	t.Parallel()
	s := testSealer(t, testSecret, "session", publicURL)
	if _, err := s.seal(session{Token: strings.Repeat("x", 4000)}); err == nil {
		t.Error("a cookie that no browser takes is sealed")
	}
	one, _ := s.seal(session{ID: 1})
	two, _ := s.seal(session{ID: 1})
	if one == two {
		t.Error("the same nonce twice")
	}
	s.random = bytes.NewReader(nil)
	if _, err := s.seal(session{}); err == nil {
		t.Error("sealed without randomness")
	}
	var got session
	if err := s.open(one, &got); err != nil || got.ID != 1 {
		t.Errorf("open: %v, %+v", err, got)
	}
	if strings.Contains(one, "token") {
		t.Error("a sealed text can be read")
	}
}

// A cookie's attributes; without TLS, on this machine alone, it has no prefix.
func TestSetCookie(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{
		"https://forge.example.com": "__Host-forge_session=v; Path=/; Max-Age=60; HttpOnly; Secure; SameSite=Lax",
		"http://localhost:8080":     "forge_session=v; Path=/; Max-Age=60; HttpOnly; SameSite=Lax",
	} {
		d := newTestAccess(t, func(o *Options) { o.PublicURL = public })
		w := httptest.NewRecorder()
		d.a.setCookie(w, sessionCookie, "v", time.Minute)
		if got := w.Header().Get("Set-Cookie"); got != want {
			t.Errorf("%s: %s, want %s", public, got, want)
		}
		w = httptest.NewRecorder()
		d.a.clear(w, sessionCookie)
		if got := w.Header().Get("Set-Cookie"); !strings.Contains(got, "Max-Age=0") {
			t.Errorf("%s: cleared with %s", public, got)
		}
	}
}

// Whatever a browser sends, nothing but what was sealed opens.
func FuzzOpen(f *testing.F) {
	s := testSealer(f, testSecret, "session", publicURL)
	s.random = strings.NewReader("a nonce, 12 b") // the same in every process of the fuzzer
	made, err := s.seal(session{ID: 11, Login: "alice", Token: "t"})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "AQ", made, made[:30], made + "A", made[:9] + "\n" + made[9:], made[:len(made)-1] + "B", "=",
		strings.Repeat("A", 60), "AQ" + strings.Repeat("A", 100)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var v session
		if err := s.open(text, &v); err == nil && text != made {
			t.Fatalf("open(%q) = %+v", text, v)
		}
		a := &Access{public: &url.URL{Scheme: "https"}, sessions: s}
		r := &http.Request{Header: http.Header{"Cookie": {"__Host-forge_session=" + text}}}
		var w session
		if a.read(r, sessionCookie, s, &w) && w != (session{ID: 11, Login: "alice", Token: "t"}) {
			t.Fatalf("read(%q) = %+v", text, w)
		}
	})
}
