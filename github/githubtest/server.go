package githubtest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"forge/github/githubtest/exchange"
)

// Options say how a Server is made. Only Manifest is needed.
type Options struct {
	Dir         string           // where the repositories' folder is made; empty for the system's temporary folder
	Addr        string           // loopback address to listen on; empty for 127.0.0.1:0
	Manifest    []byte           // the App's manifest (app.yml): its permissions and events are enforced
	Permissions []byte           // JSON table of what each operation needs; nil for the one built in
	Clock       func() time.Time // nil for time.Now; decides the end of tokens and every time shown
	Log         *slog.Logger     // nil for none
	WriteLog    io.Writer        // if set, gets one JSON line for every request that writes
	HookURL     string           // where webhooks go; may be set later with SetHook
	Seed        uint64           // of the randomness of Fault.Probability and DeliveryFaults
	Contract    exchange.Checker // if set, everything is checked against GitHub's descriptions
	Empty       bool             // there is no App until somebody registers one by the manifest flow; Manifest gives its name until then
	OldAPI      bool             // knows the older version of the REST API alone, as GitHub Enterprise Server
}

// Server is the GitHub. Its methods may be used from any goroutine.
type Server struct {
	URL           string // http://127.0.0.1:PORT
	AppID         int64
	AppSlug       string // "forge", from the manifest's name
	PrivateKey    []byte // PEM, PKCS#1, of the App
	WebhookSecret string
	ClientID      string // of the App, for signing people in
	ClientSecret  string

	opts   Options
	log    *slog.Logger
	app    appManifest
	table  *permissionTable
	routes *router
	key    *rsa.PrivateKey
	dir    string
	http   *http.Server
	hooks  *deliverer
	stop   context.CancelFunc
	ctx    context.Context // ends with Close: what a held-back request waits for
	wg     sync.WaitGroup
	writes sync.Mutex // of opts.WriteLog
	asked  asked
	limit  atomic.Int64 // calls of an installation in an hour

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change
	lastID   int64
	random   *mrand.Rand
	accounts map[string]*account // by login in lower case
	order    []*account
	owner    *account // of the App
	bot      *account
	repos    map[string]*repository // by full name in lower case
	former   map[string]*repository // by full names that they had, which nobody has taken
	installs []*installation
	tokens   map[string]*token
	grants   map[string]*userToken // by token
	codes    map[string]*signInCode
	made     map[string]time.Time // codes of the manifest flow that buy the App, until when
	absent   bool                 // nobody has registered the App yet
	apps     int                  // how often somebody registered one
	nodes    map[string]any
	faults   []*Fault
	gate     func(operation string, done bool) bool
	hanging  int               // calls that get no answer
	ci       map[string]*ciApp // other Apps, by slug
	logs     map[string]jobLog // what a redirect leads to, by its key
	calls    []Call
	history  history // for Violations
	created  time.Time
}

// sharedKey is made once for the process, and shorter than GitHub's: making one, and each
// signature, takes long.
var sharedKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 1024) })

// New starts a GitHub with an App on it, which is not installed anywhere yet.
func New(opts Options) (*Server, error) {
	app, err := readManifest(opts.Manifest)
	if err != nil {
		return nil, err
	}
	table, err := readPermissions(opts.Permissions)
	if err != nil {
		return nil, err
	}
	key, err := sharedKey()
	if err != nil {
		return nil, fmt.Errorf("make the App's key: %w", err)
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	dir, err := os.MkdirTemp(opts.Dir, "githubtest-")
	if err != nil {
		return nil, fmt.Errorf("make the repositories' folder: %w", err)
	}
	s := &Server{
		AppID: 4242, AppSlug: slugOf(app.Name), opts: opts, log: opts.Log, app: app, table: table, key: key, dir: dir,
		PrivateKey:    pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		WebhookSecret: randomHex(20), ClientID: "Iv1.0000000000000001", ClientSecret: randomHex(20), changed: make(chan struct{}), lastID: 1000,
		random:   mrand.New(mrand.NewPCG(opts.Seed, 0x666f726765)),
		accounts: map[string]*account{}, repos: map[string]*repository{}, former: map[string]*repository{}, tokens: map[string]*token{}, grants: map[string]*userToken{},
		codes: map[string]*signInCode{}, made: map[string]time.Time{}, absent: opts.Empty, nodes: map[string]any{},
		ci: map[string]*ciApp{}, logs: map[string]jobLog{},
	}
	s.limit.Store(hourlyLimit)
	s.created = s.now()
	if err := s.start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func (s *Server) start() error {
	addr := s.opts.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen on %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("listen on %q: only a loopback address is allowed, for example 127.0.0.1:0", addr)
	}
	if err := prepareGit(s.dir); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %q: %w", addr, err)
	}
	s.URL = "http://" + ln.Addr().String()
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.owner = s.account("forge-owner", "User")
	s.bot = s.account(s.AppSlug+"[bot]", "Bot")
	s.routes = s.newRouter()
	s.hooks = newDeliverer(s)
	s.hooks.setURL(s.opts.HookURL)
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return s.ctx }}
	s.wg.Go(func() { s.hooks.run(s.ctx) })
	s.wg.Go(func() {
		if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("serve", "error", err)
		}
	})
	return nil
}

// Close ends the server, its deliveries and its git processes, and removes its
// folder.
func (s *Server) Close() error {
	s.stop()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	s.wg.Wait()
	s.hooks.client.CloseIdleConnections()
	return errors.Join(err, os.RemoveAll(s.dir))
}

// APIURL is the base of the REST API, with a slash at its end.
func (s *Server) APIURL() string { return s.URL + "/api/v3/" }

// SetHook sets the address that webhooks are sent to and sends a ping there.
// Events that happen while there is none are not delivered to anybody.
func (s *Server) SetHook(url string) {
	s.hooks.setURL(url)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emitPing()
}

// Wait returns as soon as cond holds. It is asked now and after every change of
// the server's state: an effect, a call, a delivery. cond may use the server.
func (s *Server) Wait(ctx context.Context, cond func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if cond() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for a state of the GitHub on this machine: %w", ctx.Err())
		}
	}
}

// Settle waits until every webhook has been delivered or given up.
func (s *Server) Settle(ctx context.Context) error { return s.Wait(ctx, s.hooks.idle) }

// touch wakes the waiters. s.mu is held.
func (s *Server) touch() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) now() time.Time { return s.opts.Clock().UTC().Truncate(time.Second) }

func (s *Server) id() int64 { s.lastID++; return s.lastID }

// register gives a thing its node id. s.mu is held.
func (s *Server) register(prefix string, id int64, thing any) string {
	node := fmt.Sprintf("%s_kwDO%08x", prefix, id)
	s.nodes[node] = thing
	return node
}

// account finds or makes an account. s.mu is held, or nobody else knows s yet.
func (s *Server) account(login, kind string) *account {
	if a := s.accounts[strings.ToLower(login)]; a != nil {
		return a
	}
	a := &account{id: s.id(), login: login, kind: kind, created: s.now()}
	a.node = s.register("U", a.id, a)
	if kind == "User" {
		a.token = "ghp_" + randomHex(18)
	}
	s.accounts[strings.ToLower(login)] = a
	s.order = append(s.order, a)
	return a
}

// Installation is a place where the App is installed.
type Installation struct {
	ID      int64
	Account string
	Repos   []string // full names
}

// Install installs the App on repositories, which belong to one account, or adds
// them to its installation there.
func (s *Server) Install(repos ...string) (Installation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*repository
	for _, name := range repos {
		r, err := s.repo(name)
		if err != nil {
			return Installation{}, fmt.Errorf("install the App: %w", err)
		}
		if len(list) > 0 && list[0].owner != r.owner {
			return Installation{}, fmt.Errorf("install the App: %s and %s have different owners; an installation has one: call Install for each",
				list[0].fullName(), name)
		}
		list = append(list, r)
	}
	if len(list) == 0 {
		return Installation{}, errors.New("install the App: name at least one repository")
	}
	in := s.installationOf(list[0].owner)
	if in == nil {
		in = &installation{id: s.id(), account: list[0].owner, repos: map[int64]*repository{}, created: s.now(), updated: s.now()}
		in.node = s.register("I", in.id, in)
		s.installs = append(s.installs, in)
		for _, r := range list {
			in.repos[r.id] = r
		}
		s.emitInstallation(in, "created", list[0].owner)
	} else {
		in.updated = s.now()
		for _, r := range list {
			in.repos[r.id] = r
		}
		s.emitInstallationRepos(in, "added", list)
	}
	s.touch()
	return in.view(), nil
}

// Suspend suspends the App's installation on an account, or lifts that.
func (s *Server) Suspend(owner string, suspended bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[strings.ToLower(owner)]
	in := s.installationOf(a)
	if a == nil || in == nil {
		return fmt.Errorf("suspend the App on %q: it is not installed there", owner)
	}
	in.updated = s.now()
	if suspended {
		in.suspended, in.by = s.now(), a
		s.emitInstallation(in, "suspend", a)
	} else {
		in.suspended, in.by = time.Time{}, nil
		s.emitInstallation(in, "unsuspend", a)
	}
	s.touch()
	return nil
}

// Archive makes a repository read-only for REST's operations, or writable again.
func (s *Server) Archive(full string, archived bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.repos[strings.ToLower(full)]
	if r == nil {
		return fmt.Errorf("archive %s: there is no such repository", full)
	}
	r.archived = archived
	s.touch()
	return nil
}

// Uninstall removes the App from an account; its tokens end at once.
func (s *Server) Uninstall(owner string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, in := range s.installs {
		if strings.EqualFold(in.account.login, owner) {
			s.installs = append(s.installs[:i:i], s.installs[i+1:]...)
			for t, tok := range s.tokens {
				if tok.inst == in {
					delete(s.tokens, t)
				}
			}
			s.emitInstallation(in, "deleted", in.account)
			s.touch()
			return nil
		}
	}
	return fmt.Errorf("uninstall the App from %q: it is not installed there", owner)
}

func (in *installation) view() Installation {
	v := Installation{ID: in.id, Account: in.account.login}
	for _, r := range in.list() {
		v.Repos = append(v.Repos, r.fullName())
	}
	return v
}

func (s *Server) installationOf(a *account) *installation {
	for _, in := range s.installs {
		if in.account == a {
			return in
		}
	}
	return nil
}

// installationFor finds the installation that covers a repository.
func (s *Server) installationFor(r *repository) *installation {
	if in := s.installationOf(r.owner); in != nil && in.repos[r.id] != nil {
		return in
	}
	return nil
}

// repo finds a repository by its full name. s.mu is held.
func (s *Server) repo(full string) (*repository, error) {
	if r := s.repos[strings.ToLower(full)]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("no repository %q here; make it with AddRepo", full)
}

// repoDir is where a repository stays, whatever it is called later.
func (s *Server) repoDir(r *repository) string {
	return filepath.Join(s.dir, "repos", strings.ToLower(r.owner.login), fmt.Sprintf("%s-%d.git", strings.ToLower(r.name), r.id))
}

func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) //nolint:errcheck // never fails
	return hex.EncodeToString(b)
}
