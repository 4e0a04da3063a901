package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Registry is one that the gateway may ask.
type Registry struct {
	Kind    Kind
	URL     string   // https://…; http:// for a private one alone
	Match   []string // globs of package names that come from here and from nowhere else; empty: all others
	Private bool     // its own host may have an address that is not public

	Authorization string // header that it wants; sent to its own host alone
}

// Limits bound what is fetched. Zero fields take the defaults of [DefaultLimits].
type Limits struct {
	FileBytes     int64         // of one file
	DocumentBytes int64         // of one list of versions, index or the like
	CacheBytes    int64         // of all that is kept
	Requests      int           // of one session
	SessionBytes  int64         // that one session is answered with
	Fetch         time.Duration // of one file, from asking to its last byte
	Fresh         time.Duration // how long a document that can change is answered from the cache
	AtOnce        int           // connections to registries
}

// DefaultLimits are 512 MiB a file, 64 MiB a document, a cache of 10 GiB, 50,000
// requests and 8 GiB a session, 5 minutes a file, 10 minutes for documents, 16 at once.
func DefaultLimits() Limits {
	return Limits{FileBytes: 512 << 20, DocumentBytes: 64 << 20, CacheBytes: 10 << 30, Requests: 50_000, SessionBytes: 8 << 30,
		Fetch: 5 * time.Minute, Fresh: 10 * time.Minute, AtOnce: 16}
}

// Options make a gateway.
type Options struct {
	Dir        string // of the cache; the server's alone
	Registries []Registry
	Limits     Limits
	Now        func() time.Time // nil: the clock
	Log        *slog.Logger

	// Tests: where names lead to, and whose certificates are good.
	Resolver  *net.Resolver
	Transport func(*http.Transport)
}

// Gateway asks registries, and keeps what they answered. It is safe for concurrent use.
type Gateway struct {
	registries []*upstream
	cache      *cache
	limits     Limits
	now        func() time.Time
	log        *slog.Logger
	flights    singleflight.Group
	slots      chan struct{}
	pause      time.Duration // before a registry is asked again

	mu     sync.Mutex
	tidied time.Time
}

// upstream is a registry, and how to talk to it.
type upstream struct {
	Registry
	base   *url.URL // without a slash at the end
	client *http.Client
}

// New checks the registries and opens the cache. It connects to nothing.
func New(o Options) (*Gateway, error) {
	g := &Gateway{limits: o.Limits.fill(), now: o.Now, log: o.Log, pause: 300 * time.Millisecond}
	if g.now == nil {
		g.now = time.Now
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	g.slots = make(chan struct{}, g.limits.AtOnce)
	public := transport(o, "")
	for _, r := range o.Registries {
		u, err := newUpstream(r)
		if err != nil {
			return nil, err
		}
		t := public
		if r.Private {
			t = transport(o, hostPort(u.base))
		}
		u.client = &http.Client{Transport: t, CheckRedirect: u.redirected}
		g.registries = append(g.registries, u)
	}
	var err error
	if g.cache, err = openCache(o.Dir, g.limits.CacheBytes); err != nil {
		return nil, err
	}
	return g, g.tidy()
}

// tidyEvery is how often a session's begin looks for what is not needed any more.
const tidyEvery = 6 * time.Hour

// tidy removes what is over the cache's limit, and what killed processes left.
func (g *Gateway) tidy() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if !g.tidied.IsZero() && now.Sub(g.tidied) < tidyEvery {
		return nil
	}
	g.tidied = now
	sweepSessions()
	return errors.Join(g.cache.prune(), g.cache.pruneNames(now.Add(-keepNames)))
}

func (l Limits) fill() Limits {
	d := DefaultLimits()
	set := func(field *int64, value int64) {
		if *field <= 0 {
			*field = value
		}
	}
	set(&l.FileBytes, d.FileBytes)
	set(&l.DocumentBytes, d.DocumentBytes)
	set(&l.CacheBytes, d.CacheBytes)
	set(&l.SessionBytes, d.SessionBytes)
	set((*int64)(&l.Fetch), int64(d.Fetch))
	set((*int64)(&l.Fresh), int64(d.Fresh))
	if l.Requests <= 0 {
		l.Requests = d.Requests
	}
	if l.AtOnce <= 0 {
		l.AtOnce = d.AtOnce
	}
	return l
}

func newUpstream(r Registry) (*upstream, error) {
	if _, ok := shapes[r.Kind]; !ok {
		return nil, fmt.Errorf("registry %s: unknown kind %q: use one of %v", r.URL, r.Kind, Kinds())
	}
	base, err := url.Parse(r.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s registry: its address cannot be read: must be like https://HOST/PATH", r.Kind) // url.Error repeats a password
	case base.User != nil:
		return nil, fmt.Errorf("%s registry %s: no password in an address: use token_file", r.Kind, base.Redacted())
	case base.Host == "" || base.RawQuery != "" || base.Fragment != "":
		return nil, fmt.Errorf("%s registry %q: must be like https://HOST/PATH", r.Kind, r.URL)
	case base.Scheme != "https" && !(base.Scheme == "http" && r.Private):
		return nil, fmt.Errorf("%s registry %s: must be https, or `private: true`", r.Kind, r.URL)
	}
	for _, m := range r.Match {
		if _, err := path.Match(m, ""); err != nil {
			return nil, fmt.Errorf("%s registry %s: match %q: %w", r.Kind, r.URL, m, err)
		}
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	if r.Kind == PyPI {
		base.Path = strings.TrimSuffix(base.Path, "/simple")
	}
	return &upstream{Registry: r, base: base}, nil
}

func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	if u.Scheme == "http" {
		return net.JoinHostPort(u.Hostname(), "80")
	}
	return net.JoinHostPort(u.Hostname(), "443")
}

// transport connects to public addresses, and to one host wherever it is. It has
// its own connections, so that what one registry may reach no other does.
func transport(o Options, private string) *http.Transport {
	guarded, free := PublicDialer(o.Resolver), &net.Dialer{Timeout: 15 * time.Second, Resolver: o.Resolver}
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if private != "" && address == private {
				return free.DialContext(ctx, network, address)
			}
			return guarded.DialContext(ctx, network, address)
		},
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 15 * time.Second, ResponseHeaderTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
	}
	if o.Transport != nil {
		o.Transport(t)
	}
	return t
}

// redirected allows a few steps that stay encrypted.
func (u *upstream) redirected(r *http.Request, via []*http.Request) error {
	switch {
	case len(via) > 5:
		return errors.New("more than 5 redirections")
	case r.URL.Scheme != "https" && !(u.Private && r.URL.Host == u.base.Host):
		return fmt.Errorf("redirected to %s, which is not encrypted", r.URL.Scheme)
	case r.URL.Host != u.base.Host:
		r.Header.Del("Authorization")
	}
	return nil
}

// of returns the registries to ask for a package, in order: those that the operator
// gave it to, else those for all.
func (g *Gateway) of(k Kind, pkg string) []*upstream {
	var own, all []*upstream
	for _, u := range g.registries {
		switch {
		case u.Kind != k:
		case len(u.Match) == 0:
			all = append(all, u)
		case u.matches(pkg):
			own = append(own, u)
		}
	}
	if len(own) > 0 {
		return own
	}
	return all
}

// Lists reports whether a registry is listed for a package by its name, and not for all.
func (g *Gateway) Lists(k Kind, pkg string) bool {
	return slices.ContainsFunc(g.registries, func(u *upstream) bool { return u.Kind == k && u.matches(pkg) })
}

// matches reports whether one of the globs matches the name, or what stands before
// one of its slashes: "@acme" and "git.acme.dev/*" cover what is below.
func (u *upstream) matches(pkg string) bool {
	for _, m := range u.Match {
		for name := pkg; name != "." && name != "/" && name != ""; name = path.Dir(name) {
			if ok, _ := path.Match(m, name); ok {
				return true
			}
		}
	}
	return false
}

// Has reports whether there is a registry of a kind.
func (g *Gateway) Has(k Kind) bool {
	for _, u := range g.registries {
		if u.Kind == k {
			return true
		}
	}
	return false
}

// Trial is an attempt to reach a registry.
type Trial struct {
	Kind Kind
	URL  string
	Err  error // nil: something answered
}

// Try reaches for each registry, all at once. Whatever it answers counts, but that it is
// out of order.
func (g *Gateway) Try(ctx context.Context) []Trial {
	out := make([]Trial, len(g.registries))
	var all sync.WaitGroup
	for i, u := range g.registries {
		all.Go(func() {
			out[i] = Trial{Kind: u.Kind, URL: u.base.Redacted()}
			req, err := http.NewRequestWithContext(ctx, http.MethodHead, u.base.String()+"/", nil)
			if err == nil {
				var res *http.Response
				if res, err = u.client.Do(req); err == nil {
					res.Body.Close()
					if res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented {
						err = fmt.Errorf("it answered %s", res.Status)
					}
				}
			}
			if err != nil {
				out[i].Err = plain(err)
			}
		})
	}
	all.Wait()
	return out
}

// errUnlisted is for a kind without a registry.
var errUnlisted = errors.New("the server lists no registry of this kind")

// found is what there is for a path.
type found struct {
	entry
	from  *upstream // whose answer it is; nil when none was asked
	asked int       // registries that had to be asked: the cache did not have it
	bytes int64     // that they sent
}

// find answers a path that is valid.
func (g *Gateway) find(ctx context.Context, k Kind, p, accept string) (found, error) {
	if rest, ok := strings.CutPrefix(p, "/-/file/"); ok {
		return g.findFile(ctx, k, rest)
	}
	list := g.of(k, k.pkg(p))
	if len(list) == 0 {
		return found{}, errUnlisted
	}
	var all found
	for _, u := range list {
		target, err := g.target(ctx, u, k, p)
		if errors.Is(err, errNoDist) {
			all.Status = http.StatusNotFound
			continue
		}
		if err != nil {
			return all, err
		}
		one, err := g.get(ctx, u, target, accept, k.immutable(p))
		one.asked, one.bytes = one.asked+all.asked, one.bytes+all.bytes
		if all = one; err != nil || one.Status == http.StatusOK {
			return all, err
		}
	}
	return all, nil
}

// target is where a registry has what a path is about.
func (g *Gateway) target(ctx context.Context, u *upstream, k Kind, p string) (string, error) {
	switch {
	case k == Cargo && strings.HasPrefix(p, "/-/crates/"):
		return g.crate(ctx, u, p)
	case k == Composer && strings.HasPrefix(p, distPath):
		return g.dist(ctx, u, p)
	case k == Composer && p != "/packages.json":
		return g.metadata(ctx, u, p)
	}
	return u.base.String() + p, nil
}

// findFile answers a file that a document named, or what stands beside it.
func (g *Gateway) findFile(ctx context.Context, k Kind, rest string) (found, error) {
	absent := found{entry: entry{Status: http.StatusNotFound}}
	key, name, _ := strings.Cut(rest, "/")
	n, ok := g.cache.recall(key)
	if !ok {
		return absent, nil
	}
	target, err := url.Parse(n.URL)
	if err != nil {
		return found{}, err
	}
	switch base := path.Base(target.Path); {
	case name == base:
	case k == PyPI && name == base+".metadata":
		target.Path += ".metadata"
		target.RawPath = ""
	default:
		return absent, nil
	}
	for _, u := range g.registries {
		if u.Kind == k && u.base.String() == n.Registry {
			return g.get(ctx, u, target.String(), "", true)
		}
	}
	return found{}, errUnlisted // it was listed when the document was read
}

// freshAbsent is how long the cache answers that something is not there: what was
// published a moment ago should be found.
const freshAbsent = time.Minute

// get returns what an address holds, from the cache where that may be.
func (g *Gateway) get(ctx context.Context, u *upstream, target, accept string, immutable bool) (found, error) {
	key := digestOf(target, accept)
	known, fresh := g.cached(key, immutable)
	if fresh {
		return found{entry: known, from: u}, nil
	}
	// Whoever asks first does not take the answer away from others by leaving.
	done := g.flights.DoChan(key, func() (any, error) {
		// Another request may have ended between the look above and here.
		if e, fresh := g.cached(key, immutable); fresh {
			return e, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.limits.Fetch)
		defer cancel()
		return g.fetch(ctx, u, key, target, accept, immutable)
	})
	select {
	case <-ctx.Done():
		return found{}, ctx.Err()
	case r := <-done:
		if r.Err != nil && known.Status == http.StatusOK { // an old list is better than none
			g.log.Warn("a registry did not answer; an older answer is used", "registry", u.base.Redacted(), "age", g.now().Sub(known.At), "error", r.Err)
			return found{entry: known, from: u, asked: 1}, nil
		}
		e, _ := r.Val.(entry)
		return found{entry: e, from: u, asked: 1, bytes: e.Size}, r.Err
	}
}

// cached returns what the cache has, or nothing, and whether that may be handed out
// without asking the registry.
func (g *Gateway) cached(key string, immutable bool) (e entry, fresh bool) {
	e, ok := g.cache.find(key)
	if !ok {
		return entry{}, false
	}
	age := g.now().Sub(e.At)
	return e, e.Status == http.StatusOK && (immutable || age < g.limits.Fresh) || age < freshAbsent
}

// fetch asks a registry, and twice more when it was too busy or broke off.
func (g *Gateway) fetch(ctx context.Context, u *upstream, key, target, accept string, file bool) (e entry, err error) {
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	case <-ctx.Done():
		return entry{}, ctx.Err()
	}
	for attempt := 1; ; attempt++ {
		var again bool
		if e, again, err = g.try(ctx, u, key, target, accept, file); err == nil || !again || attempt == 3 {
			return e, err
		}
		select {
		case <-time.After(time.Duration(attempt) * g.pause):
		case <-ctx.Done():
			return e, err
		}
	}
}

func (g *Gateway) try(ctx context.Context, u *upstream, key, target, accept string, file bool) (e entry, again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return entry{}, false, err
	}
	req.Header.Set("User-Agent", "forge-registry-gateway")
	max := g.limits.DocumentBytes
	if file {
		req.Header.Set("Accept-Encoding", "identity")
		max = g.limits.FileBytes
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if u.Authorization != "" && req.URL.Host == u.base.Host {
		req.Header.Set("Authorization", u.Authorization)
	}
	res, err := u.client.Do(req)
	if err != nil {
		var closed *NotPublicError
		return entry{}, !errors.As(err, &closed) && ctx.Err() == nil, fmt.Errorf("ask %s: %w", u.base.Host, plain(err))
	}
	defer res.Body.Close()
	e = entry{URL: target, Status: res.StatusCode, Type: res.Header.Get("Content-Type"), At: g.now()}
	switch {
	case res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusGone:
		e, err = g.cache.keep(key, e, nil, 0)
		return e, false, err
	case res.StatusCode != http.StatusOK:
		return entry{}, res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests, fmt.Errorf("%s answered %s", u.base.Host, res.Status)
	case res.ContentLength > max:
		return entry{}, false, fmt.Errorf("%s: %d bytes are over the limit of %d", u.base.Host, res.ContentLength, max)
	}
	e, err = g.cache.keep(key, e, whole{ctx, res.Body}, max)
	if err != nil {
		return entry{}, ctx.Err() == nil && e.Size <= max, fmt.Errorf("read from %s: %w", u.base.Host, plain(err))
	}
	return e, false, nil
}

// whole reads a body to its end. A server that sees the client give up may end the
// body as if that were all: then it is not.
type whole struct {
	ctx  context.Context
	body io.Reader
}

func (w whole) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	if err == io.EOF && w.ctx.Err() != nil {
		err = w.ctx.Err()
	}
	return n, err
}

// plain leaves the address out of an error of net/http: it is said elsewhere.
func plain(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// read returns a small document.
func (g *Gateway) read(e entry) ([]byte, error) {
	f, err := g.cache.open(e)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// Close ends idle connections.
func (g *Gateway) Close() {
	for _, u := range g.registries {
		u.client.CloseIdleConnections()
	}
}
