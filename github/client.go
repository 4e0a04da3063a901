package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"forge/pipeline"
	"forge/pipeline/text"

	"github.com/bradleyfalzon/ghinstallation/v2"
	gh "github.com/google/go-github/v62/github"
	"github.com/shurcooL/githubv4"
)

// Options says who the App is and how it calls.
type Options struct {
	BaseURL          string        // "" is github.com; else the server's root, https://HOST
	AppID            int64         //
	PrivateKey       []byte        // PEM; never logged
	Slug             string        // the word after the slash in commands and the check run's name; default "forge"
	Label            string        // the label that starts a run, as texts name it; default "forge"
	Log              *slog.Logger  // default: nothing is logged
	MinWriteInterval time.Duration // between two writes of one installation; GitHub asks for 1 s. Negative: 1 s
	Timeout          time.Duration // of one call; default 30 s
	UserAgent        string        // default "forge"
	LogHosts         []string      // where job logs may be fetched from besides GitHub's own stores: "logs.example.com", ".example.com" for all below it

	Secrets Secrets // takes secrets out of all that is posted; nil: nothing is looked through

	Gaps bool // also take what people remark on pull requests that are not Forge's (H5)

	Reads bool // a model reads what people answer to findings, before a phrase counts

	Clock func() time.Time                                 // default time.Now
	Sleep func(ctx context.Context, d time.Duration) error // default: a timer
	Base  http.RoundTripper                                // default: http.DefaultTransport's settings
}

// App is Forge as a GitHub App. Its methods are safe for concurrent use.
type App struct {
	opts  Options
	log   *slog.Logger
	web   *url.URL // what people see: https://github.com
	rest  *url.URL // with a slash at its end
	gql   string
	base  http.RoundTripper
	jwt   *gh.Client // acts as the App itself
	calls atomic.Int64

	mu    sync.Mutex
	insts map[int64]*installation
	who   selfCache
}

// installation is the App on one account: its limits, and a signing transport for
// each repository, whose tokens reach that repository alone.
type installation struct {
	app *App
	id  int64
	lim *limiter

	mu    sync.Mutex
	signs map[string]*ghinstallation.Transport
}

// New returns the App. It makes no call.
func New(o Options) (*App, error) {
	a := &App{opts: o, insts: map[int64]*installation{}}
	if err := a.setURLs(o.BaseURL); err != nil {
		return nil, err
	}
	if o.AppID <= 0 {
		return nil, fmt.Errorf("GitHub App: the App id must be a positive number, got %d: it stands on the App's settings page", o.AppID)
	}
	a.defaults()
	a.base = newVersioned(timeout{next: a.opts.Base, d: a.opts.Timeout})
	sign, err := ghinstallation.NewAppsTransport(a.base, o.AppID, o.PrivateKey)
	if err != nil {
		return nil, errors.New("GitHub App: the private key cannot be read: it must be the whole PEM file that GitHub let you download (-----BEGIN RSA PRIVATE KEY-----)")
	}
	sign.BaseURL = strings.TrimSuffix(a.rest.String(), "/")
	a.jwt = a.client(&transport{app: a, next: sign, lim: newLimiter()})
	return a, nil
}

func (a *App) defaults() {
	o := &a.opts
	o.Slug, o.Label = cmp.Or(o.Slug, "forge"), cmp.Or(o.Label, "forge")
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a.log = o.Log
	if o.MinWriteInterval < 0 {
		o.MinWriteInterval = time.Second
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.UserAgent == "" {
		o.UserAgent = "forge"
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Base == nil {
		o.Base = http.DefaultTransport.(*http.Transport).Clone()
	}
}

func (a *App) setURLs(base string) error {
	to, err := addressesOf(base)
	a.web, a.rest, a.gql = to.web, to.rest, to.gql
	return err
}

// addresses are where a GitHub is reached.
type addresses struct {
	web, rest *url.URL // rest with a slash at its end
	gql       string
}

// addressesOf finds the addresses of a server's interfaces: github.com and ghe.com
// have a host of their own for them, GitHub Enterprise Server has paths.
func addressesOf(base string) (addresses, error) {
	if base == "" {
		base = "https://github.com"
	}
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return addresses{}, fmt.Errorf("GitHub's address %q is not like https://HOST", text.Scrub(base))
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())) {
		return addresses{}, fmt.Errorf("GitHub's address %q must begin with https://: tokens would travel in the clear", base)
	}
	rest, gql := u.String()+"/api/v3/", u.String()+"/api/graphql"
	if u.Host == "github.com" || strings.HasSuffix(u.Host, ".ghe.com") {
		rest, gql = "https://api."+u.Host+"/", "https://api."+u.Host+"/graphql"
	}
	r, err := url.Parse(rest)
	return addresses{web: u, rest: r, gql: gql}, err
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *App) client(rt http.RoundTripper) *gh.Client {
	c := gh.NewClient(&http.Client{Transport: rt})
	c.BaseURL, c.UserAgent = a.rest, a.opts.UserAgent
	return c
}

// Calls returns how many calls the App has made, tokens not counted.
func (a *App) Calls() int64 { return a.calls.Load() }

func (a *App) installation(id int64) *installation {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.insts[id]
	if i == nil {
		i = &installation{app: a, id: id, lim: newLimiter(), signs: map[string]*ghinstallation.Transport{}}
		a.insts[id] = i
	}
	return i
}

// scope is what a token may do.
type scope struct {
	name  string
	words string
	perms *gh.InstallationPermissions
}

var (
	// What publishing needs. Contents is for resolving threads and leaving draft.
	scopeAPI = scope{"api", "contents: write, issues: write, pull_requests: write, checks: write and metadata: read",
		&gh.InstallationPermissions{Contents: gh.String("write"), Issues: gh.String("write"), PullRequests: gh.String("write"),
			Checks: gh.String("write"), Metadata: gh.String("read")}}
	// What the results of the repository's own CI need; each is asked for alone, so
	// that one that was not granted takes nothing else away.
	scopeStatuses = scope{"statuses", "statuses: read and metadata: read",
		&gh.InstallationPermissions{Statuses: gh.String("read"), Metadata: gh.String("read")}}
	scopeActions = scope{"actions", "actions: read and metadata: read",
		&gh.InstallationPermissions{Actions: gh.String("read"), Metadata: gh.String("read")}}
	// What roll-backs and shipping need, which are all that deploys.
	scopeDeploy = scope{"deployments", "deployments: write and metadata: read",
		&gh.InstallationPermissions{Deployments: gh.String("write"), Metadata: gh.String("read")}}
	// What git needs.
	scopeGit = scope{"git", "contents: write and metadata: read",
		&gh.InstallationPermissions{Contents: gh.String("write"), Metadata: gh.String("read")}}
)

// signer signs with the installation's token for one repository.
type signer struct {
	inst  *installation
	repo  pipeline.Repo
	scope scope
}

// RoundTrip implements http.RoundTripper. A token that has ended before its time was up,
// or that somebody revoked, is replaced once: a call that GitHub answers with 401 did
// nothing.
func (s signer) RoundTrip(req *http.Request) (*http.Response, error) {
	sign, err := s.inst.sign(s.repo, s.scope)
	if err != nil {
		return nil, err
	}
	resp, err := sign.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || req.Body != nil && req.GetBody == nil {
		return resp, err
	}
	s.inst.forget(sign)
	if sign, err = s.inst.sign(s.repo, s.scope); err != nil {
		return nil, err
	}
	again := req.Clone(req.Context())
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err // unreachable: the body is a buffer
		}
	}
	s.inst.app.log.Info("GitHub accepts a token no more: a new one is taken", "installation", s.inst.id, "repo", s.repo.FullName())
	resp.Body.Close()
	return sign.RoundTrip(again)
}

// forget drops a transport with its token, so that the next call takes a new one.
func (i *installation) forget(old *ghinstallation.Transport) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for key, t := range i.signs {
		if t == old { // else somebody was quicker
			delete(i.signs, key)
		}
	}
}

// sign returns the transport that signs with a token for this repository alone. A
// ghinstallation transport keeps its token until a minute before it ends.
func (i *installation) sign(repo pipeline.Repo, s scope) (*ghinstallation.Transport, error) {
	opts := &gh.InstallationTokenOptions{Permissions: s.perms}
	key := fmt.Sprintf("%s/%d", s.name, repo.ID)
	switch {
	case repo.ID != 0:
		opts.RepositoryIDs = []int64{repo.ID}
	case repo.Name != "":
		opts.Repositories, key = []string{repo.Name}, s.name+"/"+repo.Name
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if t := i.signs[key]; t != nil {
		return t, nil
	}
	// Each has its own App transport: ghinstallation writes to a shared one without a lock.
	t, err := ghinstallation.New(i.app.base, i.app.opts.AppID, i.id, i.app.opts.PrivateKey)
	if err != nil {
		return nil, err // unreachable: New has parsed this key
	}
	t.BaseURL = strings.TrimSuffix(i.app.rest.String(), "/")
	t.InstallationTokenOptions = opts
	i.signs[key] = t
	return t, nil
}

// session is a set of clients for one repository that counts its calls.
type session struct {
	rest      *gh.Client
	gql       *githubv4.Client
	transport *transport // below both
	calls     atomic.Int64
}

func (a *App) session(repo pipeline.Repo) (*session, error) { return a.sessionFor(repo, scopeAPI) }

func (a *App) sessionFor(repo pipeline.Repo, sc scope) (*session, error) {
	if repo.Installation == 0 {
		return nil, final("%s has no installation of the App: install it on the repository, or give the installation's id.", repo.FullName())
	}
	i := a.installation(repo.Installation)
	s := &session{}
	rt := &transport{app: a, next: signer{i, repo, sc}, lim: i.lim, want: sc.words, calls: &s.calls, repo: repo}
	s.transport = rt
	s.rest = a.client(rt)
	s.gql = githubv4.NewEnterpriseClient(a.gql, &http.Client{Transport: rt})
	return s, nil
}

// Renew returns another token for git than the one that GitHub did not accept.
func (a *App) Renew(ctx context.Context, repo pipeline.Repo, refused string) (string, error) {
	i := a.installation(repo.Installation)
	sign, err := i.sign(repo, scopeGit)
	if err != nil {
		return "", err
	}
	if kept, err := sign.Token(ctx); err == nil && kept == refused {
		i.forget(sign)
	}
	return a.Token(ctx, repo)
}

// Token returns an installation token for git. It reaches this repository alone,
// with contents: write, and lives an hour at most; a kept one is used until a
// minute before its end. It must go neither into a URL nor into an argument.
func (a *App) Token(ctx context.Context, repo pipeline.Repo) (string, error) {
	if repo.Installation == 0 {
		return "", final("%s has no installation of the App, so there is no token for it.", repo.FullName())
	}
	i := a.installation(repo.Installation)
	sign, err := i.sign(repo, scopeGit)
	if err != nil {
		return "", err
	}
	op := "get a git token for " + repo.FullName()
	if d := i.lim.wait(a.opts.Clock()); d > 0 {
		return "", i.lim.held(op, d)
	}
	tok, err := sign.Token(ctx)
	if err != nil {
		var e *ghinstallation.HTTPError
		if errors.As(err, &e) {
			t := &transport{app: a, lim: i.lim, want: scopeGit.words}
			err = t.tokenError(e)
		}
		return "", explain(op, "contents: write", err)
	}
	return tok, nil
}
