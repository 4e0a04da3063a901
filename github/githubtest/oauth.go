package githubtest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// opAccessToken is what Call and Fault name the exchange of a code.
const opAccessToken = "oauth/access_token"

// How long things of the sign-in live; the figures are GitHub's documented ones.
const (
	codeLife    = 10 * time.Minute
	grantLife   = 8 * time.Hour
	refreshLife = 15_897_600 * time.Second
)

// userToken is what lets the App act for somebody.
type userToken struct {
	text    string
	user    *account
	expires time.Time
}

// signInCode is what somebody who has authorised the App comes back to it with.
type signInCode struct {
	user      *account
	redirect  string
	challenge string // of PKCE; "" when the App sent none
	expires   time.Time
}

// SetCallbacks replaces the callback URLs in the App's settings. Somebody who signs
// in can be sent back to these addresses alone, letter by letter.
func (s *Server) SetCallbacks(urls ...string) error {
	if err := checkCallbacks(urls); err != nil {
		return fmt.Errorf("set the App's callback URLs: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.app.Callbacks = slices.Clone(urls)
	return nil
}

func checkCallbacks(urls []string) error {
	if len(urls) > 10 {
		return fmt.Errorf("%d are too many; GitHub takes 10", len(urls))
	}
	for _, text := range urls {
		if u, err := url.Parse(text); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("%q is no web address", text)
		}
	}
	return nil
}

// Revoke takes back what somebody allowed the App, as their settings page does: its
// tokens for them end at once.
func (s *Server) Revoke(login string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for text, t := range s.grants {
		if strings.EqualFold(t.user.login, login) {
			delete(s.grants, text)
		}
	}
	s.touch()
}

// reaches reports whether somebody can know of a repository: a private one is for
// those with a role in it, and of these through the App only where it is installed.
// s.mu is held.
func (s *Server) reaches(id identity, r *repository) bool {
	switch id.kind {
	case identInstallation:
		return id.tok.covers(r)
	case identUser:
		return r.shownTo(id.user) && (!r.private || id.on == nil || s.installationFor(r) != nil)
	case identApp:
		return true
	}
	return !r.private
}

// authorization is a request for a sign-in that can be shown.
type authorization struct {
	ClientID, Redirect, State, Challenge, Method string
	App                                          string
	People                                       []string
	To                                           string // the host that it leads back to
}

// readAuthorization holds a request against the App's settings. Someone who is not
// the App must not get a code, so that a wrong address is told to the person and
// never redirected to.
func (s *Server) readAuthorization(v url.Values) (authorization, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := authorization{ClientID: v.Get("client_id"), Redirect: v.Get("redirect_uri"), State: v.Get("state"), Challenge: v.Get("code_challenge"),
		Method: v.Get("code_challenge_method"), App: s.app.Name}
	if a.ClientID != s.ClientID {
		return a, errors.New("there is no App with this client_id")
	}
	if len(s.app.Callbacks) == 0 {
		return a, errors.New("the App has no callback URL in its settings")
	}
	if a.Redirect == "" {
		a.Redirect = s.app.Callbacks[0]
	}
	if !slices.Contains(s.app.Callbacks, a.Redirect) {
		return a, errors.New("the redirect_uri is not associated with this application: it must be one of the callback URLs in the App's settings, letter by letter")
	}
	if a.Challenge != "" && (a.Method != "S256" || len(a.Challenge) != 43) {
		return a, errors.New("code_challenge must be 43 characters, and code_challenge_method S256")
	}
	u, err := url.Parse(a.Redirect)
	if err != nil {
		return a, err // unreachable: the settings hold no such address
	}
	a.To = u.Scheme + "://" + u.Host
	for _, p := range s.order {
		if p.kind == "User" {
			a.People = append(a.People, p.login)
		}
	}
	return a, nil
}

// pageAuthorize asks as whom to sign in, and whether the App may know.
func (s *Server) pageAuthorize(w http.ResponseWriter, r *http.Request) {
	a, err := s.readAuthorization(r.URL.Query())
	if err != nil {
		http.Error(w, "Sign in: "+err.Error(), http.StatusBadRequest)
		return
	}
	// Browsers hold the redirect that follows a form against form-action, too.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self' "+a.To+"; frame-ancestors 'none'; base-uri 'none'")
	s.render(w, r, "authorize.html", frame{Title: "Authorize " + a.App, Body: a})
}

// authorize sends somebody back to the App, with a code or with their refusal.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, "Sign in: "+err.Error(), http.StatusBadRequest)
		return
	}
	a, err := s.readAuthorization(r.PostForm)
	if err != nil {
		http.Error(w, "Sign in: "+err.Error(), http.StatusBadRequest)
		return
	}
	q := url.Values{}
	if a.State != "" {
		q.Set("state", a.State)
	}
	s.mu.Lock()
	user := s.accounts[strings.ToLower(r.PostForm.Get("login"))]
	switch {
	case r.PostForm.Get("cancel") != "":
		q.Set("error", "access_denied")
		q.Set("error_description", "The user has denied your application access.")
	case user == nil || user.bot():
		s.mu.Unlock()
		http.Error(w, "Sign in: nobody here has that name", http.StatusBadRequest)
		return
	default:
		code := randomHex(10)
		s.codes[code] = &signInCode{user: user, redirect: a.Redirect, challenge: a.Challenge, expires: s.now().Add(codeLife)}
		q.Set("code", code)
	}
	s.mu.Unlock()
	http.Redirect(w, r, a.Redirect+"?"+q.Encode(), http.StatusFound)
}

// oauthError is an answer of the exchange that is none; its status is 200 all the
// same. Names and texts are GitHub's.
func oauthError(name, text string) url.Values {
	return url.Values{"error": {name}, "error_description": {text},
		"error_uri": {"/apps/managing-oauth-apps/troubleshooting-oauth-app-access-token-request-errors/#" + strings.ReplaceAll(name, "_", "-")}}
}

// serveAccessToken exchanges a code for a user token.
func (s *Server) serveAccessToken(w http.ResponseWriter, r *http.Request, c *call) {
	if r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	v := r.URL.Query()
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		var body map[string]string
		if json.Unmarshal(c.body, &body) == nil {
			for name, value := range body {
				v.Set(name, value)
			}
		}
	} else if r.ParseForm() == nil {
		v = r.Form
	}
	s.mu.Lock()
	out := s.exchange(v)
	s.mu.Unlock()
	if !strings.Contains(r.Header.Get("Accept"), "json") {
		w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		_, _ = w.Write([]byte(out.Encode()))
		return
	}
	body := obj{}
	for name := range out {
		body[name] = out.Get(name)
	}
	for _, name := range []string{"expires_in", "refresh_token_expires_in"} {
		if out.Has(name) {
			body[name] = json.Number(out.Get(name))
		}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}

// exchange takes a code once. s.mu is held.
func (s *Server) exchange(v url.Values) url.Values {
	if v.Get("client_id") != s.ClientID || v.Get("client_secret") != s.ClientSecret {
		return oauthError("incorrect_client_credentials", "The client_id and/or client_secret passed are incorrect.")
	}
	if g := v.Get("grant_type"); g != "" && g != "authorization_code" {
		return oauthError("unsupported_grant_type", "The grant type is not supported on this machine.")
	}
	code := s.codes[v.Get("code")]
	bad := oauthError("bad_verification_code", "The code passed is incorrect or expired.")
	if code == nil {
		return bad
	}
	if given := v.Get("redirect_uri"); given != "" && given != code.redirect {
		return oauthError("redirect_uri_mismatch", "The redirect_uri MUST match the registered callback URL for this application.")
	}
	delete(s.codes, v.Get("code"))
	sum := sha256.Sum256([]byte(v.Get("code_verifier")))
	if !s.now().Before(code.expires) || code.challenge != "" && base64.RawURLEncoding.EncodeToString(sum[:]) != code.challenge {
		return bad
	}
	t := &userToken{text: "ghu_" + randomHex(18), user: code.user, expires: s.now().Add(grantLife)}
	s.grants[t.text] = t
	return url.Values{
		"access_token": {t.text}, "expires_in": {fmt.Sprint(int(grantLife.Seconds()))}, "refresh_token": {"ghr_" + randomHex(38)},
		"refresh_token_expires_in": {fmt.Sprint(int(refreshLife.Seconds()))}, "scope": {""}, "token_type": {"bearer"},
	}
}

// userOps are the operations on whoever calls.
var userOps = map[string]handler{
	"users/get-authenticated":                             getMe,
	"apps/list-installations-for-authenticated-user":      withUserToken(listMyInstallations),
	"apps/list-installation-repos-for-authenticated-user": withUserToken(withInstallation(listMyRepos)),
	"apps/delete-token":                                   deleteGrant,
}

func getMe(c *call) answer {
	switch c.id.kind {
	case identUser:
		return ok(c.s.shapeProfile(c.id.user))
	case identAnonymous:
		return fail(http.StatusUnauthorized, "Requires authentication")
	}
	return fail(http.StatusForbidden, "Resource not accessible by integration")
}

func withUserToken(next handler) handler {
	return func(c *call) answer {
		if c.id.on == nil {
			return fail(http.StatusForbidden, "You must authenticate with an access token authorized to a GitHub App in order to list installations")
		}
		return next(c)
	}
}

// invited reports whether somebody was given the right to read: what everybody
// may read does not count in the lists of installations.
func (r *repository) invited(a *account) bool {
	return a == r.owner || roleRank[r.roles[strings.ToLower(a.login)]] >= roleRank["read"]
}

func (in *installation) listFor(a *account) []*repository {
	return slices.DeleteFunc(in.list(), func(r *repository) bool { return !r.invited(a) })
}

func listMyInstallations(c *call) answer {
	mine := slices.DeleteFunc(slices.Clone(c.s.installs), func(in *installation) bool {
		return in.account != c.id.user && len(in.listFor(c.id.user)) == 0
	})
	return counted(c, "installations", mine, c.s.listedInstallation)
}

func listMyRepos(c *call, in *installation) answer {
	list := in.listFor(c.id.user)
	switch {
	case in.account != c.id.user && len(list) == 0:
		return notFound()
	case !in.suspended.IsZero():
		return fail(http.StatusForbidden, "This installation has been suspended")
	}
	a := counted(c, "repositories", list, func(r *repository) any {
		o := c.s.shapeRepo(r)
		o["permissions"] = obj{
			"pull": true, "triage": r.can(c.id.user, "triage"), "push": r.can(c.id.user, "write"),
			"maintain": r.can(c.id.user, "maintain"), "admin": r.can(c.id.user, "admin"),
		}
		return o
	})
	a.body.(obj)["repository_selection"] = "selected"
	return a
}

// deleteGrant ends one user token, as the App does when somebody signs out.
func deleteGrant(c *call) answer {
	var req struct {
		AccessToken string `json:"access_token"`
	}
	if a := c.decode(&req); a != nil {
		return *a
	}
	if c.vars["client_id"] != c.s.ClientID || c.s.grants[req.AccessToken] == nil {
		return notFound()
	}
	delete(c.s.grants, req.AccessToken)
	return noContent()
}
