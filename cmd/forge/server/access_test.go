package server

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"forge/cmd/forge/dashboard/access"
	"forge/cmd/forge/demo"
	"forge/cmd/forge/settings"
	"forge/github"
	"forge/github/githubtest"
	"forge/pipeline"
)

// doorway is a real Access in front of small pages, with a local GitHub behind it.
type doorway struct {
	t    *testing.T
	gh   *githubtest.Server
	url  string
	make func() http.Handler // another server of the same App
	log  *strings.Builder
	repo map[string]pipeline.Repo
}

func newDoorway(t *testing.T) *doorway {
	t.Helper()
	d := &doorway{t: t, log: &strings.Builder{}, repo: map[string]pipeline.Repo{}}
	gh, err := githubtest.New(githubtest.Options{Dir: t.TempDir(), Manifest: demo.Manifest()})
	d.must(err)
	t.Cleanup(func() { gh.Close() })
	d.gh = gh
	for _, full := range []string{"acme/open", "acme/hidden", "beta/secret"} {
		owner, name, _ := strings.Cut(full, "/")
		_, err := gh.AddRepo(owner, name, nil)
		d.must(err)
		in, err := gh.Install(full)
		d.must(err)
		d.repo[full] = pipeline.Repo{ID: d.idOf(full), Owner: owner, Name: name, Installation: in.ID}
	}
	d.must(gh.SetPrivate("acme/hidden", true))
	d.must(gh.SetPrivate("beta/secret", true))
	for who, roles := range map[string]map[string]string{
		"alice": {"acme/open": "write", "acme/hidden": "write"}, "bob": {"acme/open": "read", "beta/secret": "admin"},
	} {
		for full, role := range roles {
			d.must(gh.SetPermission(full, who, role))
		}
	}

	srv := httptest.NewUnstartedServer(nil)
	d.url = "http://" + srv.Listener.Addr().String()
	d.must(gh.SetCallbacks(d.url + "/login/callback"))
	env := map[string]string{
		"HOME": t.TempDir(), "FORGE_GITHUB_URL": gh.URL, "FORGE_DASHBOARD": "github", "FORGE_PUBLIC_URL": d.url + "/",
		"FORGE_CLIENT_ID": gh.ClientID, "FORGE_CLIENT_SECRET": gh.ClientSecret, "FORGE_STATE_DIR": filepath.Join(t.TempDir(), "state"),
	}
	cfg, err := settings.Server("", func(name string) string { return env[name] })
	d.must(err)
	app, err := github.New(github.Options{BaseURL: gh.URL, AppID: gh.AppID, PrivateKey: gh.PrivateKey})
	d.must(err)
	d.make = func() http.Handler {
		a, err := newAccess(cfg, app, slog.New(slog.NewTextHandler(d.log, nil)))
		d.must(err)
		return a.Wrap(http.HandlerFunc(d.pages))
	}
	srv.Config.Handler = d.make()
	srv.Start()
	t.Cleanup(srv.Close)
	return d
}

func (d *doorway) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *doorway) idOf(full string) int64 {
	d.t.Helper()
	owner, _, _ := strings.Cut(full, "/")
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, d.gh.APIURL()+"repos/"+full, nil)
	d.must(err)
	req.Header.Set("Authorization", "Bearer "+d.gh.As(owner).Token)
	resp, err := http.DefaultClient.Do(req)
	d.must(err)
	defer resp.Body.Close()
	var repo struct{ ID int64 }
	d.must(json.NewDecoder(resp.Body).Decode(&repo))
	return repo.ID
}

// pages shows what a viewer sees, and changes what they may.
func (d *doorway) pages(w http.ResponseWriter, r *http.Request) {
	v := access.From(r.Context())
	if r.Method == http.MethodPost {
		may, err := v.MayWrite(r.Context(), d.repo[r.PostFormValue("repo")])
		if err != nil || !may {
			http.Error(w, fmt.Sprint("no: ", err), http.StatusForbidden)
			return
		}
		fmt.Fprint(w, "done")
		return
	}
	list, _ := v.Repos()
	fmt.Fprintf(w, "%s %s sees %s at %s", v.Actor.Login, v.AvatarURL, strings.Join(list, " "), r.URL.RequestURI())
}

// visitor is a person with a browser.
type visitor struct {
	d     *doorway
	login string
	http  *http.Client
}

func (d *doorway) visitor(login string) *visitor {
	jar, err := cookiejar.New(nil)
	d.must(err)
	return &visitor{d, login, &http.Client{Jar: jar}}
}

func (v *visitor) read(resp *http.Response, err error) (int, string) {
	v.d.t.Helper()
	v.d.must(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	v.d.must(err)
	return resp.StatusCode, string(body)
}

func (v *visitor) get(address string) (int, string) {
	v.d.t.Helper()
	return v.read(v.http.Get(address))
}

func (v *visitor) post(path string, kv ...string) (int, string) {
	v.d.t.Helper()
	form := url.Values{}
	for i := 0; i < len(kv); i += 2 {
		form.Set(kv[i], kv[i+1])
	}
	req, err := http.NewRequestWithContext(v.d.t.Context(), http.MethodPost, v.d.url+path, strings.NewReader(form.Encode()))
	v.d.must(err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", v.d.url)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	return v.read(v.http.Do(req))
}

var (
	signInLink  = regexp.MustCompile(`href="(/login[^"]*)"`)
	hiddenInput = regexp.MustCompile(`<input type="hidden" name="([a-z_]+)" value="([^"]*)">`)
)

// signIn clicks from a page of Forge to GitHub and back, and returns where it ends.
func (v *visitor) signIn(path string) (int, string) {
	v.d.t.Helper()
	code, page := v.get(v.d.url + path)
	link := signInLink.FindStringSubmatch(page)
	if code != http.StatusUnauthorized || link == nil {
		v.d.t.Fatalf("%s without a sign-in: %d %s", path, code, page)
	}
	code, page = v.get(v.d.url + html.UnescapeString(link[1]))
	if code != http.StatusOK || !strings.Contains(page, "Authorize as "+v.login) {
		v.d.t.Fatalf("on GitHub: %d %s", code, page)
	}
	form := url.Values{"login": {v.login}}
	_, rest, _ := strings.Cut(page, `action="/login/oauth/authorize"`)
	for _, m := range hiddenInput.FindAllStringSubmatch(rest, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	return v.read(v.http.PostForm(v.d.gh.URL+"/login/oauth/authorize", form))
}

// People sign in with GitHub, see what they can read there, and may change what they
// can write to at that moment. Covers S19 for the web pages.
func TestSignInWithGitHub(t *testing.T) {
	d := newDoorway(t)
	alice, bob := d.visitor("alice"), d.visitor("bob")
	code, page := alice.signIn("/runs?state=open")
	if want := "alice " + d.gh.URL + "/avatars/alice sees acme/hidden acme/open at /runs?state=open"; code != http.StatusOK || page != want {
		t.Fatalf("signed in: %d %q, want %q", code, page, want)
	}
	if code, page = bob.signIn("/"); code != http.StatusOK || page != "bob "+d.gh.URL+"/avatars/bob sees acme/open beta/secret at /" {
		t.Errorf("bob: %d %q", code, page)
	}
	change := func(v *visitor, full string, want int) {
		t.Helper()
		if code, page := v.post("/runs/7/stop", "repo", full); code != want {
			t.Errorf("%s changes %s: %d %s, want %d", v.login, full, code, page, want)
		}
	}
	change(alice, "acme/open", 200)
	change(alice, "acme/hidden", 200)
	change(alice, "beta/secret", 403)
	change(bob, "acme/open", 403)
	change(bob, "beta/secret", 200)
	change(d.visitor("nobody"), "acme/open", 401)

	d.must(d.gh.SetPermission("acme/open", "alice", "read")) // between the page and the change
	change(alice, "acme/open", 403)
	d.must(d.gh.SetPermission("acme/open", "alice", "maintain"))
	change(alice, "acme/open", 200)

	d.gh.AddFault(githubtest.Fault{Operation: "repos/get-collaborator-permission-level", Kind: githubtest.FaultErrorBefore})
	change(alice, "acme/open", 403) // no answer: no
	d.gh.ClearFaults()
	change(alice, "acme/open", 200)

	if code, _ := alice.post("/logout"); code != http.StatusOK {
		t.Errorf("sign out: %d", code)
	}
	if code, _ := alice.get(d.url + "/"); code != http.StatusUnauthorized {
		t.Errorf("after signing out: %d", code)
	}
	for _, c := range d.gh.Calls() {
		if strings.Contains(c.Path, "code") || strings.Contains(c.Path, d.gh.ClientSecret) {
			t.Errorf("a secret is in the address %s", c.Path)
		}
	}
	if strings.Contains(d.log.String(), "ghu_") || strings.Contains(d.log.String(), d.gh.ClientSecret) {
		t.Errorf("a secret is in the log: %s", d.log)
	}
}

// A copy of the cookie is worth nothing once its owner has signed out, or has taken
// back on GitHub what they had allowed (on a server that has just asked: within five
// minutes; see the tests of package access).
func TestSessionReplayed(t *testing.T) {
	d := newDoorway(t)
	at, err := url.Parse(d.url)
	d.must(err)
	for login, end := range map[string]func(*visitor){
		"alice": func(v *visitor) { v.post("/logout") },
		"bob":   func(v *visitor) { d.gh.Revoke(v.login) },
	} {
		v := d.visitor(login)
		v.signIn("/")
		cookies := v.http.Jar.Cookies(at)
		replay := func() (int, string) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			for _, c := range cookies {
				r.AddCookie(c)
			}
			w := httptest.NewRecorder()
			d.make().ServeHTTP(w, r)
			return w.Code, w.Body.String()
		}
		if code, page := replay(); code != http.StatusOK || !strings.HasPrefix(page, login+" ") {
			t.Fatalf("%s on another server: %d %s", login, code, page)
		}
		end(v)
		if code, page := replay(); code != http.StatusUnauthorized || !strings.Contains(page, "no longer accepts your sign-in") {
			t.Errorf("%s, replayed: %d %s", login, code, page)
		}
	}
}

// GitHub breaks down in the middle of a sign-in.
func TestSignInWhileGitHubIsDown(t *testing.T) {
	d := newDoorway(t)
	for _, op := range []string{"oauth/access_token", "users/get-authenticated"} {
		d.gh.AddFault(githubtest.Fault{Operation: op, Kind: githubtest.FaultErrorBefore, Times: 1})
		v := d.visitor("alice")
		if code, page := v.signIn("/"); code != http.StatusBadGateway || !strings.Contains(page, "did not confirm the sign-in") {
			t.Errorf("%s fails: %d %s", op, code, page)
		}
		if code, page := v.signIn("/"); code != http.StatusOK {
			t.Errorf("%s, once more: %d %s", op, code, page)
		}
	}
	d.gh.AddFault(githubtest.Fault{Operation: "apps/list-installation", Kind: githubtest.FaultErrorBefore})
	if code, page := d.visitor("alice").signIn("/"); code != http.StatusServiceUnavailable || !strings.Contains(page, "GitHub does not answer") {
		t.Errorf("the list of repositories fails: %d %s", code, page)
	}
}

// By default the pages are for whoever sits at this machine.
func TestAccessByDefault(t *testing.T) {
	cfg, err := settings.Server("", func(name string) string { return map[string]string{"HOME": t.TempDir()}[name] })
	if err != nil {
		t.Fatal(err)
	}
	a, err := newAccess(cfg, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(a.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := access.From(r.Context())
		fmt.Fprint(w, v.Actor.Login, v.Local)
	})))
	defer srv.Close()
	key, err := os.ReadFile(filepath.Join(cfg.StateDir, "dashboard.key"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if want := OSUser().Login + "true"; resp.StatusCode != http.StatusOK || string(body) != want {
		t.Errorf("%d %s, want %s", resp.StatusCode, body, want)
	}
}
