package githubtest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v62/github"
)

const callbackURL = "https://forge.example.net/login/callback"

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// noFollow stops at redirects.
func noFollow(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// grant clicks through the page of authorisation and returns where it leads.
func (w *world) grant(v url.Values, kv ...string) (*url.URL, int) {
	w.t.Helper()
	client := &http.Client{CheckRedirect: noFollow}
	page, err := client.Get(w.s.URL + "/login/oauth/authorize?" + v.Encode())
	w.must(err)
	page.Body.Close()
	if page.StatusCode != http.StatusOK {
		return nil, page.StatusCode
	}
	form := url.Values{}
	for name := range v {
		form.Set(name, v.Get(name))
	}
	for i := 0; i < len(kv); i += 2 {
		form.Set(kv[i], kv[i+1])
	}
	resp, err := client.PostForm(w.s.URL+"/login/oauth/authorize", form)
	w.must(err)
	resp.Body.Close()
	to, err := resp.Location()
	if err != nil {
		return nil, resp.StatusCode
	}
	return to, resp.StatusCode
}

func (w *world) exchange(accept string, v url.Values) url.Values {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, w.s.URL+"/login/oauth/access_token", strings.NewReader(v.Encode()))
	w.must(err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(req)
	w.must(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	w.must(err)
	if resp.StatusCode != http.StatusOK {
		w.t.Errorf("exchange: %d %s", resp.StatusCode, body)
	}
	if accept == "" {
		out, err := url.ParseQuery(string(body))
		w.must(err)
		return out
	}
	var fields map[string]any
	w.must(json.Unmarshal(body, &fields))
	out := url.Values{}
	for name, value := range fields {
		text, _ := json.Marshal(value)
		out.Set(name, strings.Trim(string(text), `"`))
	}
	return out
}

// signIn returns a client of the API that acts for somebody.
func (w *world) signIn(login string) (*github.Client, string) {
	w.t.Helper()
	w.must(w.s.SetCallbacks(callbackURL))
	to, code := w.grant(url.Values{"client_id": {w.s.ClientID}, "redirect_uri": {callbackURL}, "state": {"st"},
		"code_challenge": {challengeOf("v")}, "code_challenge_method": {"S256"}}, "login", login)
	if code != http.StatusFound || to.Query().Get("state") != "st" || !strings.HasPrefix(to.String(), callbackURL+"?") {
		w.t.Fatalf("authorize: %d %v", code, to)
	}
	got := w.exchange("application/json", url.Values{"client_id": {w.s.ClientID}, "client_secret": {w.s.ClientSecret},
		"code": {to.Query().Get("code")}, "code_verifier": {"v"}, "redirect_uri": {callbackURL}})
	token := got.Get("access_token")
	if !strings.HasPrefix(token, "ghu_") || got.Get("expires_in") != "28800" || got.Get("token_type") != "bearer" || got.Get("scope") != "" {
		w.t.Fatalf("exchange: %v", got)
	}
	gh, err := github.NewClient(nil).WithAuthToken(token).WithEnterpriseURLs(w.s.URL, w.s.URL)
	w.must(err)
	return gh, token
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.s.SetCallbacks("https://first.example.net/cb", callbackURL))
	good := func(change ...string) url.Values {
		v := url.Values{"client_id": {w.s.ClientID}, "redirect_uri": {callbackURL}, "state": {"a b"}}
		for i := 0; i < len(change); i += 2 {
			v.Set(change[i], change[i+1])
		}
		return v
	}
	for _, c := range []struct {
		name string
		ask  url.Values
		want int
	}{
		{"another App", good("client_id", "Iv1.other"), http.StatusBadRequest},
		{"another address", good("redirect_uri", "https://evil.example.net/login/callback"), http.StatusBadRequest},
		{"nearly the address", good("redirect_uri", callbackURL+"/"), http.StatusBadRequest},
		{"the address and more", good("redirect_uri", callbackURL+"?x=1"), http.StatusBadRequest},
		{"plain PKCE", good("code_challenge", challengeOf("v"), "code_challenge_method", "plain"), http.StatusBadRequest},
		{"short PKCE", good("code_challenge", "v", "code_challenge_method", "S256"), http.StatusBadRequest},
		{"all right", good(), http.StatusFound},
	} {
		if to, code := w.grant(c.ask, "login", "alice"); code != c.want || code == http.StatusFound && to.Query().Get("state") != "a b" {
			t.Errorf("%s: %d to %v, want %d", c.name, code, to, c.want)
		}
	}
	if to, _ := w.grant(url.Values{"client_id": {w.s.ClientID}}, "login", "alice"); to == nil || to.Host != "first.example.net" {
		t.Errorf("without a redirect_uri: %v, want the first callback URL", to)
	}
	if to, _ := w.grant(good(), "cancel", "yes"); to == nil || to.Query().Get("error") != "access_denied" || to.Query().Has("code") {
		t.Errorf("cancelled: %v", to)
	}
	if _, code := w.grant(good(), "login", "nobody"); code != http.StatusBadRequest {
		t.Errorf("as nobody: %d", code)
	}
	for _, urls := range [][]string{{"ftp://x.example"}, {"/relative"}, make([]string, 11)} {
		if err := w.s.SetCallbacks(urls...); err == nil {
			t.Errorf("SetCallbacks(%q): no error", urls)
		}
	}
}

func TestExchange(t *testing.T) {
	t.Parallel()
	clock := newTestClock(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))
	w := newWorld(t, func(o *Options) { o.Clock = clock.Now })
	w.must(w.s.SetCallbacks(callbackURL, "https://second.example.net/cb"))
	code := func() string {
		to, _ := w.grant(url.Values{"client_id": {w.s.ClientID}, "redirect_uri": {callbackURL}, "code_challenge": {challengeOf("v")},
			"code_challenge_method": {"S256"}}, "login", "alice")
		return to.Query().Get("code")
	}
	used := code()
	with := func(change ...string) url.Values {
		v := url.Values{"client_id": {w.s.ClientID}, "client_secret": {w.s.ClientSecret}, "code": {code()}, "code_verifier": {"v"}, "redirect_uri": {callbackURL}}
		for i := 0; i < len(change); i += 2 {
			v.Set(change[i], change[i+1])
		}
		return v
	}
	old := with()
	clock.Advance(codeLife)
	for _, c := range []struct {
		name string
		ask  url.Values
		want string
	}{
		{"good", with("code", code()), ""},
		{"too late", old, "bad_verification_code"},
		{"secret", with("client_secret", "x"), "incorrect_client_credentials"},
		{"client", with("client_id", "x"), "incorrect_client_credentials"},
		{"code", with("code", "x"), "bad_verification_code"},
		{"verifier", with("code_verifier", "w"), "bad_verification_code"},
		{"no verifier", with("code_verifier", ""), "bad_verification_code"},
		{"address", with("redirect_uri", "https://second.example.net/cb"), "redirect_uri_mismatch"},
		{"grant type", with("grant_type", "password"), "unsupported_grant_type"},
	} {
		for _, accept := range []string{"", "application/json"} {
			if c.want == "" {
				c.ask.Set("code", code())
			}
			got := w.exchange(accept, c.ask)
			if got.Get("error") != c.want || got.Has("access_token") != (c.want == "") || (c.want != "") != got.Has("error_description") {
				t.Errorf("%s (%q): %v, want error %q", c.name, accept, got, c.want)
			}
		}
	}
	first, second := w.exchange("", with("code", used)), w.exchange("", with("code", used))
	if first.Get("error") != "bad_verification_code" || second.Get("error") != "bad_verification_code" { // it is over 10 minutes old
		t.Errorf("an old code: %v, %v", first, second)
	}
	once := with()
	if first, second = w.exchange("", once), w.exchange("", once); first.Has("error") || second.Get("error") != "bad_verification_code" {
		t.Errorf("a code used twice: %v, %v", first, second)
	}
}

// What the App may do for somebody is at most what both may.
func TestUserTokens(t *testing.T) {
	t.Parallel()
	clock := newTestClock(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))
	w := newWorld(t, func(o *Options) { o.Clock = clock.Now })
	hidden, err := w.s.AddRepo("acme", "hidden", nil)
	w.must(err)
	apart, err := w.s.AddRepo("acme", "apart", nil) // the App is not installed there
	w.must(err)
	for _, full := range []string{hidden, apart} {
		w.must(w.s.SetPrivate(full, true))
		w.must(w.s.SetPermission(full, "alice", "read"))
	}
	_, err = w.s.Install(hidden)
	w.must(err)
	w.s.As("bob")
	w.must(w.s.SetPermission(w.repo, "carol", "triage"))

	names := func(gh *github.Client) string {
		t.Helper()
		ins, _, err := gh.Apps.ListUserInstallations(w.ctx, nil)
		w.must(err)
		var out []string
		for _, in := range ins {
			list, _, err := gh.Apps.ListUserRepos(w.ctx, in.GetID(), nil)
			w.must(err)
			for _, r := range list.Repositories {
				out = append(out, r.GetFullName())
			}
		}
		return strings.Join(out, " ")
	}
	alice, token := w.signIn("alice")
	bob, _ := w.signIn("bob")
	carol, _ := w.signIn("carol")
	for gh, want := range map[*github.Client]string{alice: "acme/shop acme/hidden", bob: "", carol: "acme/shop"} {
		if got := names(gh); got != want {
			t.Errorf("repositories %q, want %q", got, want)
		}
	}
	me, _, err := alice.Users.Get(w.ctx, "")
	w.must(err)
	if me.GetLogin() != "alice" || me.GetID() != w.al.ID || me.GetAvatarURL() == "" {
		t.Errorf("who am I: %v", me)
	}
	status := func(what string, resp *github.Response, want int) {
		t.Helper()
		if resp == nil || resp.StatusCode != want {
			t.Errorf("%s: %v, want %d", what, resp, want)
		}
	}
	get := func(gh *github.Client, name string, want int) {
		t.Helper()
		_, resp, _ := gh.Repositories.Get(w.ctx, "acme", name)
		status(name, resp, want)
	}
	get(alice, "hidden", 200)
	get(alice, "apart", 404) // hers, but not the App's
	get(bob, "hidden", 404)
	get(bob, "shop", 200)
	_, resp, _ := bob.Apps.ListUserRepos(w.ctx, w.inst, nil)
	status("another's installation", resp, 404)
	_, resp, _ = alice.Issues.Create(w.ctx, "acme", "hidden", &github.IssueRequest{Title: github.String("t")})
	status("an issue for her", resp, 201)
	own, err := github.NewClient(nil).WithAuthToken(w.al.Token).WithEnterpriseURLs(w.s.URL, w.s.URL)
	w.must(err)
	get(own, "apart", 200)
	_, resp, _ = own.Apps.ListUserInstallations(w.ctx, nil)
	status("installations with a personal token", resp, 403)

	basicAuth := &github.BasicAuthTransport{Username: w.s.ClientID, Password: w.s.ClientSecret}
	app, err := github.NewClient(basicAuth.Client()).WithEnterpriseURLs(w.s.URL, w.s.URL)
	w.must(err)
	_, resp, _ = app.Users.Get(w.ctx, "")
	status("client credentials elsewhere", resp, 401)
	_, err = app.Authorizations.Revoke(w.ctx, w.s.ClientID, token)
	w.must(err)
	_, resp, _ = alice.Users.Get(w.ctx, "")
	status("revoked by the App", resp, 401)
	w.s.Revoke("carol")
	_, resp, _ = carol.Users.Get(w.ctx, "")
	status("revoked by herself", resp, 401)
	clock.Advance(grantLife)
	_, resp, _ = bob.Users.Get(w.ctx, "")
	status("after 8 hours", resp, 401)
}

// A private repository is not there for who has no role in it, on no way.
func TestPrivate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.s.SetPrivate(w.repo, true))
	bob := w.s.As("bob")
	page := func(path, as string) int {
		req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, w.s.URL+path, nil)
		w.must(err)
		req.AddCookie(&http.Cookie{Name: userCookie, Value: as})
		resp, err := http.DefaultClient.Do(req)
		w.must(err)
		resp.Body.Close()
		return resp.StatusCode
	}
	if a, b := page("/acme/shop", "alice"), page("/acme/shop", "bob"); a != 200 || b != 404 {
		t.Errorf("the page: alice %d, bob %d", a, b)
	}
	if _, err := bob.OpenIssue(w.repo, "x", ""); err == nil || !strings.Contains(err.Error(), "private") {
		t.Errorf("bob opens an issue: %v", err)
	}
	for _, c := range []struct {
		name, token string
		want        int
	}{{"alice", w.al.Token, 200}, {"bob", bob.Token, 404}, {"nobody", "", 404}} {
		gh, err := github.NewClient(nil).WithEnterpriseURLs(w.s.URL, w.s.URL)
		w.must(err)
		if c.token != "" {
			gh = gh.WithAuthToken(c.token)
		}
		r, resp, _ := gh.Repositories.Get(w.ctx, "acme", "shop")
		if resp.StatusCode != c.want || c.want == 200 && (!r.GetPrivate() || r.GetVisibility() != "private") {
			t.Errorf("%s: %d, want %d; %v", c.name, resp.StatusCode, c.want, r)
		}
		req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, w.s.URL+"/acme/shop.git/info/refs?service=git-upload-pack", nil)
		w.must(err)
		if c.token != "" {
			req.Header.Set("Authorization", "Basic "+basic(c.token))
		}
		git, err := http.DefaultClient.Do(req)
		w.must(err)
		git.Body.Close()
		if (git.StatusCode == 200) != (c.want == 200) {
			t.Errorf("git for %s: %d", c.name, git.StatusCode)
		}
	}
	perm, _, err := w.gh.Repositories.GetPermissionLevel(w.ctx, "acme", "shop", "bob")
	w.must(err)
	if _, resp, _ := w.gh.Users.Get(w.ctx, ""); resp == nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("an installation asks who it is: %v, want 403", resp)
	}
	if perm.GetPermission() != "none" {
		t.Errorf("bob's permission is %q", perm.GetPermission())
	}
}
