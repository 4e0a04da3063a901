package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"forge/github"
)

// login sends a browser to GitHub, with a state that only this browser knows and a
// challenge that only this server can answer.
func (a *Access) login(w http.ResponseWriter, r *http.Request) {
	state, err1 := a.word()
	verifier, err2 := a.word()
	sealed, err3 := a.begun.seal(attempt{State: state, Verifier: verifier, To: relative(r.URL.Query().Get("to")), Until: a.opts.Clock().Add(beginFor).Unix()})
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			a.log.Error("begin a sign-in", "error", err)
			a.Refuse(w, r, http.StatusInternalServerError, "The sign-in could not begin; the server's log says why.")
			return
		}
	}
	a.setCookie(w, beginCookie, sealed, beginFor)
	sum := sha256.Sum256([]byte(verifier))
	http.Redirect(w, r, a.opts.SignIn.AuthorizeURL(a.callback(), state, base64.RawURLEncoding.EncodeToString(sum[:])), http.StatusSeeOther)
}

// word is 32 random bytes in 43 characters, as PKCE asks for (RFC 7636).
func (a *Access) word() (string, error) {
	b := make([]byte, 32)
	if _, err := io.ReadFull(a.opts.Random, b); err != nil {
		return "", fmt.Errorf("read randomness: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// back takes who comes back from GitHub in. What began the sign-in is used up,
// whatever comes of it.
func (a *Access) back(w http.ResponseWriter, r *http.Request) {
	var begun attempt
	known := a.read(r, beginCookie, a.begun, &begun) && begun.State != "" && a.opts.Clock().Unix() < begun.Until
	a.clear(w, beginCookie)
	q := r.URL.Query()
	code := q.Get("code")
	switch {
	case !known || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(begun.State)) != 1:
		a.signInFailed(w, r, http.StatusBadRequest, "This sign-in did not begin in this browser, or took longer than 10 minutes. Begin it again.")
		return
	case q.Get("error") == "access_denied":
		a.signInFailed(w, r, http.StatusForbidden, "You did not let Forge know who you are. Without that it cannot tell what you may see.")
		return
	case q.Get("error") != "" || code == "" || len(code) > 255:
		a.log.Warn("GitHub refused a sign-in", "why", fmt.Sprintf("%.60q", q.Get("error")))
		a.signInFailed(w, r, http.StatusBadGateway, "GitHub refused the sign-in; the server's log says why.")
		return
	}
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	default:
		a.signInFailed(w, r, http.StatusServiceUnavailable, "Many people sign in at this moment. Try again.")
		return
	}
	token, user, err := a.confirm(r.Context(), code, begun.Verifier)
	switch {
	case err != nil:
		a.log.Warn("confirm a sign-in", "error", err)
		a.signInFailed(w, r, http.StatusBadGateway, "GitHub did not confirm the sign-in. Begin it again; if that does not help, the server's log says why.")
		return
	case user.Bot:
		a.signInFailed(w, r, http.StatusForbidden, "These pages are for people.")
		return
	}
	if err := a.enter(w, token, user); err != nil {
		a.log.Error("keep a sign-in", "actor", user.Login, "error", err)
		a.signInFailed(w, r, http.StatusInternalServerError, "The sign-in could not be kept; the server's log says why.")
		return
	}
	a.log.Info("signed in", "actor", user.Login, "actor_id", user.ID)
	http.Redirect(w, r, relative(begun.To), http.StatusSeeOther)
}

func (a *Access) signInFailed(w http.ResponseWriter, r *http.Request, status int, text string) {
	say(w, r, status, pageData{Title: "Sign in", Text: text, Link: loginPath, Label: "Sign in with GitHub"})
}

func (a *Access) confirm(ctx context.Context, code, verifier string) (github.UserToken, github.User, error) {
	token, err := a.opts.SignIn.Exchange(ctx, code, verifier, a.callback())
	if err != nil {
		return token, github.User{}, err
	}
	user, err := a.opts.SignIn.User(ctx, token.Token)
	return token, user, err
}

// enter gives the browser its session.
func (a *Access) enter(w http.ResponseWriter, token github.UserToken, user github.User) error {
	now := a.opts.Clock()
	until := now.Add(sessionFor)
	if !token.Expires.IsZero() && token.Expires.Before(until) {
		until = token.Expires
	}
	avatar := user.AvatarURL
	if u, err := url.Parse(avatar); err != nil || u.Scheme != "https" && u.Scheme != "http" || len(avatar) > 300 {
		avatar = ""
	}
	sealed, err := a.sessions.seal(session{ID: user.ID, Login: user.Login, Avatar: avatar, Token: token.Token, Since: now.Unix(), Until: until.Unix()})
	if err == nil {
		a.setCookie(w, sessionCookie, sealed, until.Sub(now))
	}
	return err
}

// logout ends a session: in the browser, in memory, and at GitHub, so that no copy
// of the cookie is worth anything.
func (a *Access) logout(w http.ResponseWriter, r *http.Request) {
	s, ok := a.session(r)
	a.clear(w, sessionCookie)
	if ok {
		a.people.end(s.Token)
		// Who closes the page is signed out all the same.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 10*time.Second)
		defer cancel()
		if err := a.opts.SignIn.Revoke(ctx, s.Token); err != nil {
			a.log.Warn("end a sign-in at GitHub: a copy of its cookie could be used until it ends by itself", "actor", s.Login, "error", err)
		}
		a.log.Info("signed out", "actor", s.Login, "actor_id", s.ID)
	}
	say(w, r, http.StatusOK, pageData{Title: "Signed out", Text: "You are signed out of Forge.", Link: loginPath, Label: "Sign in with GitHub"})
}

// relative returns the path and query of an address on this site, and "/" for
// everything else: nobody is sent elsewhere from here.
func relative(to string) string {
	if len(to) > 1024 || !strings.HasPrefix(to, "/") || strings.ContainsFunc(to, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }) {
		return "/"
	}
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" {
		return "/"
	}
	clean := path.Clean(u.Path)
	if strings.HasPrefix(to, "//") || strings.ContainsAny(clean, "\\\r\n\t") || clean == logoutPath || clean == loginPath ||
		strings.HasPrefix(clean, loginPath+"/") {
		return "/"
	}
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}).String()
}
