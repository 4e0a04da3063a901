package github

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/github/githubtest"
)

const signInCallback = "https://forge.example.net/login/callback"

func signInWorld(t *testing.T) (*githubtest.Server, *SignIn) {
	t.Helper()
	manifest, err := os.ReadFile("../app.yml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := githubtest.New(githubtest.Options{Dir: t.TempDir(), Manifest: manifest})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.SetCallbacks(signInCallback); err != nil {
		t.Fatal(err)
	}
	in, err := NewSignIn(SignInOptions{BaseURL: s.URL, ClientID: s.ClientID, ClientSecret: s.ClientSecret})
	if err != nil {
		t.Fatal(err)
	}
	return s, in
}

// codeFor signs somebody in on GitHub's page and returns the code.
func codeFor(t *testing.T, address, login string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	form := u.Query()
	form.Set("login", login)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.PostForm(u.Scheme+"://"+u.Host+u.Path, form)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	to, err := resp.Location()
	if err != nil || to.Query().Get("state") != u.Query().Get("state") {
		t.Fatalf("sign in as %s: %d, %v to %v", login, resp.StatusCode, err, to)
	}
	return to.Query().Get("code")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	s, in := signInWorld(t)
	var all []string
	for i := range 101 { // two pages
		full, err := s.AddRepo("acme", fmt.Sprintf("r%03d", i), nil)
		must(t, err)
		must(t, s.SetPermission(full, "alice", "read"))
		all = append(all, full)
	}
	_, err := s.Install(all...)
	must(t, err)
	for _, owner := range []string{"beta", "gone"} {
		full, err := s.AddRepo(owner, "lib", nil)
		must(t, err)
		must(t, s.SetPrivate(full, true))
		must(t, s.SetPermission(full, "alice", "write"))
		_, err = s.Install(full)
		must(t, err)
	}
	must(t, s.Suspend("gone", true))
	s.As("bob")

	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	signIn := func(login string) string {
		t.Helper()
		address := in.AuthorizeURL(signInCallback, "the state", base64.RawURLEncoding.EncodeToString(sum[:]))
		if strings.Contains(address, s.ClientSecret) {
			t.Fatalf("the secret is in %s", address)
		}
		tok, err := in.Exchange(t.Context(), codeFor(t, address, login), verifier, signInCallback)
		must(t, err)
		if left := time.Until(tok.Expires); left > 8*time.Hour || left < 7*time.Hour {
			t.Errorf("the token ends in %s, want 8 h", left)
		}
		return tok.Token
	}
	alice, bob := signIn("alice"), signIn("bob")
	u, err := in.User(t.Context(), alice)
	must(t, err)
	if want := s.As("alice"); u.ID != want.ID || u.Login != "alice" || u.Bot || !strings.HasPrefix(u.AvatarURL, s.URL+"/avatars/") {
		t.Errorf("User = %+v", u)
	}
	list, err := in.Readable(t.Context(), alice)
	must(t, err)
	var got []string
	for _, r := range list {
		if r.ID == 0 || r.Installation == 0 {
			t.Errorf("%s has no id or no installation: %+v", r.FullName(), r)
		}
		got = append(got, r.FullName())
	}
	if want := append(slices.Clone(all), "beta/lib"); !slices.Equal(got, want) {
		t.Errorf("alice reads %d repositories: %q, want %d", len(got), got, len(want))
	}
	list, err = in.Readable(t.Context(), bob)
	if err != nil || len(list) != 0 {
		t.Errorf("bob reads %v, %v; he has no role anywhere", list, err)
	}

	must(t, in.Revoke(t.Context(), alice))
	must(t, in.Revoke(t.Context(), alice)) // twice is the same
	_, err = in.User(t.Context(), alice)
	_, err2 := in.Readable(t.Context(), alice)
	if !errors.Is(err, ErrSignedOut) || !errors.Is(err2, ErrSignedOut) {
		t.Errorf("with a token that ended: %v, %v", err, err2)
	}
	if _, err := in.User(t.Context(), bob); err != nil {
		t.Errorf("bob's token ended, too: %v", err)
	}
}

func TestExchangeRefused(t *testing.T) {
	t.Parallel()
	s, in := signInWorld(t)
	s.As("alice")
	wrong, err := NewSignIn(SignInOptions{BaseURL: s.URL, ClientID: s.ClientID, ClientSecret: "not-the-secret-of-the-app"})
	must(t, err)
	sum := sha256.Sum256([]byte("v"))
	code := func() string {
		return codeFor(t, in.AuthorizeURL(signInCallback, "x", base64.RawURLEncoding.EncodeToString(sum[:])), "alice")
	}
	for _, c := range []struct {
		name, code, verifier, callback string
		in                             *SignIn
		want                           string
	}{
		{"wrong secret", code(), "v", signInCallback, wrong, "compare both with the App's settings page"},
		{"wrong code", "nope", "v", signInCallback, in, "sign in again"},
		{"another's verifier", code(), "w", signInCallback, in, "sign in again"},
		{"another address", code(), "v", "https://evil.example/cb", in, "https://evil.example/cb is not a callback URL of the App"},
	} {
		_, err := c.in.Exchange(t.Context(), c.code, c.verifier, c.callback)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
		}
		for _, secret := range []string{s.ClientSecret, "not-the-secret-of-the-app", c.code} {
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%s: a secret is in %v", c.name, err)
			}
		}
	}
}

// Whatever GitHub says, or does not say, no secret gets into an error, and none is
// sent to another address. Covers S17, S29.
func TestSignInStrangeAnswers(t *testing.T) {
	t.Parallel()
	const secret, token = "0123456789abcdef0123456789abcdef01234567", "ghu_0123456789abcdef0123456789abcdef0123"
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	for _, c := range []struct {
		name   string
		status int
		body   string
		header string
	}{
		{"down", 502, "upstream " + secret, ""},
		{"unknown client", 404, `{"error":"Not Found"}`, ""},
		{"redirect", 307, "", other.URL},
		{"no JSON", 200, "access_token=" + token, ""},
		{"no token", 200, `{"token_type":"bearer"}`, ""},
		{"MAC", 200, `{"access_token":"` + token + `","token_type":"mac"}`, ""},
		{"echo", 200, `{"error":"` + secret + `"}`, ""},
		{"null", 200, `null`, ""},
		{"refused", 403, `{"message":"` + token + `"}`, ""},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.String(), secret) || strings.Contains(r.URL.String(), token) {
				t.Errorf("%s: a secret is in the address %s", c.name, r.URL)
			}
			if c.header != "" {
				w.Header().Set("Location", c.header)
			}
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		in, err := NewSignIn(SignInOptions{BaseURL: s.URL, ClientID: "Iv1.x", ClientSecret: secret})
		must(t, err)
		_, err1 := in.Exchange(t.Context(), "the-code", "v", signInCallback)
		_, err2 := in.User(t.Context(), token)
		for what, err := range map[string]error{"Exchange": err1, "User": err2} {
			if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), token) || strings.Contains(err.Error(), "the-code") {
				t.Errorf("%s: %s: %v", c.name, what, err)
			}
		}
		if list, err := in.Readable(t.Context(), token); err == nil && len(list) > 0 {
			t.Errorf("%s: Readable = %v", c.name, list)
		}
		s.Close()
		if _, err := in.Exchange(t.Context(), "the-code", "v", signInCallback); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: nobody listens: %v", c.name, err)
		}
	}
	if elsewhere > 0 {
		t.Errorf("%d calls were sent to another address", elsewhere)
	}
}

func TestNewSignIn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		base, id, secret string
		want             string // the beginning of the page, or of the error
	}{
		{"", "Iv1.x", "s", "https://github.com/login/oauth/authorize?"},
		{"https://ghe.example.com/", "Iv1.x", "s", "https://ghe.example.com/login/oauth/authorize?"},
		{"http://ghe.example.com", "Iv1.x", "s", "GitHub's address"},
		{"", "", "s", "sign-in with GitHub: the client id"},
		{"", "Iv1.x", "", "sign-in with GitHub: the client id"},
	} {
		in, err := NewSignIn(SignInOptions{BaseURL: c.base, ClientID: c.id, ClientSecret: c.secret})
		got := fmt.Sprint(err)
		if err == nil {
			got = in.AuthorizeURL("https://f.example/cb", "a&b", "c")
			if u, err := url.Parse(got); err != nil || u.Query().Get("state") != "a&b" || u.Query().Get("code_challenge_method") != "S256" ||
				u.Query().Get("redirect_uri") != "https://f.example/cb" {
				t.Errorf("%s", got)
			}
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("NewSignIn(%q, %q, %q): %s, want %s", c.base, c.id, c.secret, got, c.want)
		}
	}
}
