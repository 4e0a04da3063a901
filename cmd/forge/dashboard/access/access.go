// Package access says who may see Forge's web pages, and what they may do there.
// It stands in front of the pages: [Access.Wrap] admits a request or refuses it, and
// puts who asks into its context, where the pages find it with [From].
//
// There are three modes. Off: there are no pages. Local, the default: the pages are
// for whoever runs the server, who sees and may do everything; a request must
// come from loopback, through no proxy, must call the server by a name that only
// this machine has, and must bring the key, which is in a file of theirs. GitHub: people
// sign in with GitHub, see what they can read there, and may change what they may write
// to, which is asked at the moment of the change.
//
// Reading order: access.go (the way of a request), local.go, cookie.go, signin.go
// (the way to GitHub and back), people.go (what a person can read), viewer.go, then
// guard.go and refuse.go.
//
// It stores nothing. A session is a sealed cookie that holds the person's own token,
// so that servers share no state and the database holds no secret; what GitHub said
// about a person is kept in memory for minutes.
package access

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"forge/github"
	"forge/pipeline"
)

// Modes are the values of the setting `dashboard`.
const (
	Off    = "off"
	Local  = "local"
	GitHub = "github"
)

// signIn is the App as people sign in with it; see github.SignIn.
type signIn interface {
	AuthorizeURL(callback, state, challenge string) string
	Exchange(ctx context.Context, code, verifier, callback string) (github.UserToken, error)
	User(ctx context.Context, token string) (github.User, error)
	Readable(ctx context.Context, token string) ([]pipeline.Repo, error)
	Revoke(ctx context.Context, token string) error
}

// Options say who is admitted.
type Options struct {
	Mode      string // Off, Local or GitHub; "": Local
	GitHubURL string // as in github.Options: where pictures of people come from; "": github.com

	// Of mode Local:
	User    pipeline.Actor // who runs the server
	Key     string         // that they show
	KeyFile string         // where they find it

	// Of mode GitHub:
	PublicURL string // where people reach the server: https://HOST, or http://localhost
	Secret    []byte // the App's client secret; the cookies' keys are derived from it
	SignIn    signIn // a *github.SignIn

	// Permission asks GitHub what somebody may do, now; see github.App.Permission.
	Permission func(ctx context.Context, repo pipeline.Repo, who pipeline.Actor) (string, error)

	Log    *slog.Logger     // default: nothing is logged
	Clock  func() time.Time // default time.Now
	Random io.Reader        // default crypto/rand
}

// Access admits requests. Its methods are safe for concurrent use.
type Access struct {
	opts     Options
	log      *slog.Logger
	guard    guard
	public   *url.URL // of mode GitHub
	sessions sealer
	begun    sealer // of sign-ins that are under way
	people   *people
	slots    chan struct{} // exchanges with GitHub that may be under way
}

// mostExchanges bounds the sign-ins that are confirmed at the same time: everybody
// can begin one.
const mostExchanges = 8

// New returns an Access. It makes no call.
func New(o Options) (*Access, error) {
	if o.Mode == "" {
		o.Mode = Local
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	a := &Access{opts: o, log: o.Log, slots: make(chan struct{}, mostExchanges)}
	switch o.Mode {
	case Off:
	case Local:
		if len(o.Key) < 16 {
			return nil, errors.New("dashboard with mode local: a key of 16 characters or more is needed")
		}
	case GitHub:
		if err := a.withGitHub(); err != nil {
			return nil, fmt.Errorf("dashboard with mode github: %w", err)
		}
	default:
		return nil, fmt.Errorf("dashboard: the mode %q is none of off, local, github", o.Mode)
	}
	var err error
	a.guard, err = newGuard(o.GitHubURL, a.public)
	return a, err
}

func (a *Access) withGitHub() error {
	o := a.opts
	if o.SignIn == nil || o.Permission == nil {
		return errors.New("SignIn and Permission are needed")
	}
	u, err := url.Parse(o.PublicURL)
	switch {
	case err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("the public address %q is not like https://HOST", o.PublicURL)
	case u.Scheme != "https" && !(u.Scheme == "http" && localName(u.Host)):
		return fmt.Errorf("the public address %q must begin with https://: sign-ins would travel in the clear", o.PublicURL)
	}
	a.public = &url.URL{Scheme: u.Scheme, Host: u.Host}
	if a.sessions, err = newSealer(o.Secret, "session", a.public, o.Random); err != nil {
		return err
	}
	a.begun, err = newSealer(o.Secret, "sign-in", a.public, o.Random)
	a.people = newPeople(o.SignIn.Readable, o.Clock)
	return err
}

// callback is the address that GitHub leads back to; the App's settings must have it.
func (a *Access) callback() string { return a.public.String() + callbackPath }

// The pages of this package.
const (
	loginPath    = "/login"
	callbackPath = "/login/callback"
	logoutPath   = "/logout"
	staticPath   = "/static/" // the same for everybody, and nothing of anybody
)

// maxBody is what a request that changes something may send.
const maxBody = 64 << 10

// Wrap puts the pages behind the rules. Every request of a page goes through it; the
// pages find out who asks with [From]. With mode Off there are no pages.
func (a *Access) Wrap(next http.Handler) http.Handler {
	if a.opts.Mode == Off {
		return http.NotFoundHandler()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.guard.headers(w.Header())
		if a.opts.Mode == Local {
			if why := whyNotHere(r); why != "" {
				a.Refuse(w, r, http.StatusForbidden, why)
				return
			}
		}
		if why := a.guard.crossSite(r); why != "" {
			a.log.Warn("a change from another site was refused", "path", r.URL.Path, "origin", r.Header.Get("Origin"))
			a.Refuse(w, r, http.StatusForbidden, why)
			return
		}
		if status := limitBody(w, r); status != 0 {
			a.Refuse(w, r, status, fmt.Sprintf("What was sent could not be read, or is longer than %d KiB.", maxBody>>10))
			return
		}
		if a.opts.Mode == GitHub {
			a.serve(w, r, next)
			return
		}
		switch {
		case r.URL.Path == loginPath && r.Method == http.MethodPost:
			a.unlock(w, r)
		case strings.HasPrefix(r.URL.Path, staticPath):
			next.ServeHTTP(w, with(r, &Viewer{}))
		case !a.hasKey(r):
			a.askForKey(w, r, "")
		case r.URL.Path == loginPath, r.URL.Path == callbackPath, r.URL.Path == logoutPath:
			a.Refuse(w, r, http.StatusNotFound, "There is nobody to sign in: these pages are for who runs the server.")
		default:
			next.ServeHTTP(w, with(r, &Viewer{Actor: a.opts.User, Local: true}))
		}
	})
}

// serve admits who has signed in with GitHub.
func (a *Access) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	switch {
	case r.URL.Path == loginPath:
		a.only(http.MethodGet, a.login)(w, r)
	case r.URL.Path == callbackPath:
		a.only(http.MethodGet, a.back)(w, r)
	case r.URL.Path == logoutPath:
		a.only(http.MethodPost, a.logout)(w, r)
	case strings.HasPrefix(r.URL.Path, staticPath):
		next.ServeHTTP(w, with(r, &Viewer{}))
	default:
		if v := a.viewer(w, r); v != nil {
			next.ServeHTTP(w, with(r, v))
		}
	}
}

func (a *Access) only(method string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method {
			w.Header().Set("Allow", method)
			a.Refuse(w, r, http.StatusMethodNotAllowed, "This address is used in another way.")
			return
		}
		next(w, r)
	}
}

// viewer is who asks; nil when they were refused.
func (a *Access) viewer(w http.ResponseWriter, r *http.Request) *Viewer {
	s, ok := a.session(r)
	if !ok {
		a.askToSignIn(w, r, "Sign in to see this page.")
		return nil
	}
	can, stale, err := a.people.of(r.Context(), s.Token)
	switch {
	case errors.Is(err, github.ErrSignedOut):
		a.clear(w, sessionCookie)
		a.askToSignIn(w, r, "GitHub no longer accepts your sign-in: it ended, or was taken back in your settings there.")
		return nil
	case r.Context().Err() != nil: // nobody waits for an answer
		return nil
	case err != nil:
		a.log.Warn("ask what a person can read", "actor", s.Login, "error", err)
		w.Header().Set("Retry-After", fmt.Sprint(int(askAgain.Seconds())))
		a.Refuse(w, r, http.StatusServiceUnavailable, "GitHub does not answer, so it is not known what you may see. Try again in a minute.")
		return nil
	}
	return &Viewer{Actor: pipeline.Actor{ID: s.ID, Login: s.Login}, AvatarURL: s.Avatar, Stale: stale, can: can, ask: a.opts.Permission}
}

// localName reports whether a Host header, or an address, names this machine in a
// way that no name server can give to another page (DNS rebinding).
func localName(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return strings.EqualFold(name, "localhost") || name == "127.0.0.1" || name == "::1"
}
