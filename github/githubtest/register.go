package githubtest

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// codeOfAppLife is how long the code of the manifest flow buys the App.
const codeOfAppLife = time.Hour

// readPosted reads a manifest that a page posts.
func (s *Server) readPosted(text string) (appManifest, *url.URL, error) {
	var m appManifest
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, nil, err
	}
	if hook, ok := m.HookAttributes["url"]; m.HookAttributes != nil && (!ok || hook == "") {
		return m, nil, errors.New("hook_attributes needs a url")
	}
	if err := m.check(); err != nil {
		return m, nil, err
	}
	u, err := url.Parse(m.RedirectURL)
	if err == nil && !s.loopbackHost(u.Host) {
		err = errors.New("redirect_url must be on this machine")
	}
	return m, u, err
}

func invalidManifest(w http.ResponseWriter, err error) {
	http.Error(w, "Invalid GitHub App configuration: "+err.Error(), http.StatusUnprocessableEntity)
}

// takeManifest is the first half of the manifest flow: it shows the App that
// somebody is about to register. The App's name can be changed there, and nothing
// is made yet.
func (s *Server) takeManifest(w http.ResponseWriter, r *http.Request) {
	text := r.PostFormValue("manifest")
	m, u, err := s.readPosted(text)
	if err != nil {
		invalidManifest(w, err)
		return
	}
	// Browsers hold the redirect that follows a form against form-action, too.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self' "+u.Scheme+"://"+u.Host+
		"; frame-ancestors 'none'; base-uri 'none'")
	s.render(w, r, "register.html", frame{Title: "Register a GitHub App",
		Body: obj{"Name": m.Name, "Owner": r.PathValue("org"), "Manifest": text, "State": r.URL.Query().Get("state")}})
}

// registerApp makes the App, and leads back with the code that buys its key. Names are
// unique, so that it can be made once.
func (s *Server) registerApp(w http.ResponseWriter, r *http.Request) {
	m, u, err := s.readPosted(r.PostFormValue("manifest"))
	if err != nil {
		invalidManifest(w, err)
		return
	}
	s.mu.Lock()
	if s.opts.Empty && !s.absent {
		s.mu.Unlock()
		http.Error(w, "Invalid GitHub App configuration: Name has already been taken", http.StatusUnprocessableEntity)
		return
	}
	s.absent, s.apps = false, s.apps+1
	app := s.app
	app.Name, app.URL, app.Description, app.Public = m.Name, m.URL, m.Description, m.Public
	if m.Permissions != nil {
		app.Permissions, app.Events = m.Permissions, m.Events
	}
	app.Callbacks = m.Callbacks
	s.app = app
	code := randomHex(20)
	s.made[code] = s.now().Add(codeOfAppLife)
	s.mu.Unlock()
	if hook, ok := m.HookAttributes["url"].(string); ok {
		s.SetHook(hook)
	}
	q := u.Query()
	q.Set("code", code)
	if state := r.PostFormValue("state"); state != "" {
		q.Set("state", state)
	}
	u.RawQuery = q.Encode()
	http.Redirect(w, r, u.String(), http.StatusSeeOther)
}

// Registered says how often somebody registered the App by the manifest flow.
func (s *Server) Registered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.apps
}

// createFromManifest is the second half: the code works once, for an hour.
func createFromManifest(c *call) answer {
	until, ok := c.s.made[c.vars["code"]]
	if delete(c.s.made, c.vars["code"]); !ok || !c.s.now().Before(until) {
		return notFound()
	}
	o := c.s.shapeApp()
	o["client_id"], o["client_secret"] = c.s.ClientID, c.s.ClientSecret
	o["webhook_secret"], o["pem"] = c.s.WebhookSecret, string(c.s.PrivateKey)
	return created(o)
}

// pageInstall asks on which repositories to install the App.
func (s *Server) pageInstall(w http.ResponseWriter, r *http.Request) {
	var rows []string
	s.mu.Lock()
	me := s.accounts[strings.ToLower(s.me(r))]
	found := r.PathValue("slug") == s.AppSlug && !s.absent
	for _, repo := range s.repos {
		if repo.owner == me {
			rows = append(rows, repo.fullName())
		}
	}
	s.mu.Unlock()
	if !found {
		http.NotFound(w, r)
		return
	}
	slices.Sort(rows)
	s.render(w, r, "install.html", frame{Title: "Install " + s.AppSlug, Body: obj{"App": s.AppSlug, "Repos": rows}})
}

func (s *Server) install(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	in, err := s.Install(r.PostForm["repo"]...)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	s.render(w, r, "install.html", frame{Title: "Installed", Body: obj{"App": s.AppSlug, "Done": in.Repos}})
}
