package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"forge/pipeline/text"
)

// Refusal is a request that was not carried out.
type Refusal struct {
	Kind   Kind   `json:"kind"`
	Method string `json:"method"`
	Path   string `json:"path"`
	Why    string `json:"why"`
}

// Report is what a session did.
type Report struct {
	Requests int       `json:"requests"`          // that were allowed
	Asked    int       `json:"asked"`             // of them, how many went to a registry
	Bytes    int64     `json:"bytes"`             // that registries sent
	By       []Fetched `json:"by,omitempty"`      // both by kind, of those that were asked
	Absent   []string  `json:"absent,omitempty"`  // what no registry has, "kind path"; 20 at most
	Failed   []string  `json:"failed,omitempty"`  // why a registry did not answer; 20 at most
	Refused  []Refusal `json:"refused,omitempty"` // 20 at most
}

// Fetched is what came from the registries of a kind.
type Fetched struct {
	Kind  Kind  `json:"kind"`
	Asked int   `json:"asked"`
	Bytes int64 `json:"bytes"`
}

// String is for people.
func (f Fetched) String() string {
	return fmt.Sprintf("%s %s, %s", f.Kind, text.Plural(f.Asked, "request", "requests"), text.Size(f.Bytes))
}

// Fetched says what was fetched, by kind; "" when that was nothing.
func (r *Report) Fetched() string {
	var list []string
	for _, f := range r.By {
		list = append(list, f.String())
	}
	return strings.Join(list, "; ")
}

// Session is one setup's way to the registries.
type Session struct {
	g       *Gateway
	dir     string
	log     *slog.Logger
	servers []*http.Server
	stop    context.CancelFunc
	done    sync.WaitGroup

	mu     sync.Mutex
	report Report
	sent   int64
	hosts  map[string]bool // whose Go modules may be asked for; nil: any
}

// sessionPrefix begins the names of sessions' directories.
const sessionPrefix = "forge-registry-"

// sweepSessions removes the directories of sessions whose process was killed: nothing
// listens at any of their sockets. Those of the last hour, by the clock that files have, are
// perhaps still being made.
func sweepSessions() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), sessionPrefix+"*")) // the pattern is well formed
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < time.Hour {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			continue
		}
		sockets, _ := filepath.Glob(filepath.Join(dir, "*.sock"))
		if !slices.ContainsFunc(sockets, listensAt) {
			_ = os.RemoveAll(dir) // the next start tries again
		}
	}
}

func listensAt(socket string) bool {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, os.ErrNotExist)
	}
	c.Close()
	return true
}

// SocketFile is the name of a kind's socket in a session's directory.
func (k Kind) SocketFile() string { return string(k) + ".sock" }

// Open begins a session: a directory with one socket for each kind that has a
// registry. Every user of this machine who learns the directory's name may connect;
// only its owner can list where it is.
func (g *Gateway) Open(log *slog.Logger) (*Session, error) {
	if err := g.tidy(); err != nil {
		g.log.Warn("tidy the registries' cache", "error", err)
	}
	dir, err := os.MkdirTemp("", sessionPrefix)
	if err != nil {
		return nil, fmt.Errorf("open the way to registries: %w", err)
	}
	if log == nil {
		log = g.log
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Session{g: g, dir: dir, log: log, stop: stop}
	if err := s.listen(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("open the way to registries: %w", err)
	}
	return s, nil
}

func (s *Session) listen(ctx context.Context) error {
	if err := os.Chmod(s.dir, 0o711); err != nil {
		return err
	}
	for _, k := range Kinds() {
		if !s.g.Has(k) {
			continue
		}
		name := filepath.Join(s.dir, k.SocketFile())
		l, err := net.Listen("unix", name)
		if err != nil {
			return err
		}
		if err := os.Chmod(name, 0o666); err != nil {
			l.Close()
			return err
		}
		server := &http.Server{
			Handler: s.handler(k), ReadHeaderTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, DisableGeneralOptionsHandler: true,
			BaseContext: func(net.Listener) context.Context { return ctx },
			ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		}
		s.servers = append(s.servers, server)
		s.done.Go(func() { _ = server.Serve(netutil.LimitListener(l, 128)) })
	}
	return nil
}

// Kinds are those that have a socket.
func (s *Session) Kinds() []Kind {
	return slices.DeleteFunc(Kinds(), func(k Kind) bool { return !s.g.Has(k) })
}

// Dir holds the sockets, and nothing else.
func (s *Session) Dir() string { return s.dir }

// Report is what was done until now.
func (s *Session) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.report
	r.By = slices.Clone(r.By)
	r.Absent, r.Failed, r.Refused = slices.Clone(r.Absent), slices.Clone(r.Failed), slices.Clone(r.Refused)
	return r
}

// Close ends the session: whoever still has a connection loses it.
func (s *Session) Close() Report {
	s.stop()
	for _, server := range s.servers {
		_ = server.Close()
	}
	s.done.Wait()
	_ = os.RemoveAll(s.dir)
	return s.Report()
}

// maxListed caps what a report lists of one sort.
const maxListed = 20

func (s *Session) handler(k Kind) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, why := s.refuse(k, r); why != "" {
			s.refused(k, r, why)
			http.Error(w, "forge: "+why, status)
			return
		}
		s.answer(w, r, k)
	})
}

// refuse says why a request is not one that a package manager makes.
func (s *Session) refuse(k Kind, r *http.Request) (int, string) {
	asked := r.RequestURI
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return http.StatusMethodNotAllowed, "only GET and HEAD are allowed"
	case !strings.HasPrefix(asked, "/") || strings.HasPrefix(asked, "//"):
		return http.StatusForbidden, "this is no proxy: only the registry's own paths are allowed"
	case r.Host != strings.TrimPrefix(k.URL(), "http://") && r.Host != "localhost:"+strconv.Itoa(k.Port()):
		return http.StatusForbidden, "unknown host"
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0:
		return http.StatusForbidden, "a request with a body is not allowed"
	case strings.ContainsAny(asked, "?#"):
		return http.StatusForbidden, "a query is not allowed"
	case !k.valid(asked):
		return http.StatusForbidden, "no path that a registry of the kind " + string(k) + " has"
	case s.strange(k, asked) != "":
		return http.StatusForbidden, fmt.Sprintf("the base branch needs no module of %s, and what a change names there is not asked for. "+
			"Require one on the base branch, or list `registries` of the kind go with match: [%[1]s/*] in the server's settings", s.strange(k, asked))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report.Requests >= s.g.limits.Requests {
		return http.StatusTooManyRequests, fmt.Sprintf("more than %d requests", s.g.limits.Requests)
	}
	if s.sent >= s.g.limits.SessionBytes {
		return http.StatusTooManyRequests, fmt.Sprintf("more than %d bytes", s.g.limits.SessionBytes)
	}
	s.report.Requests++
	return 0, ""
}

func (s *Session) refused(k Kind, r *http.Request, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := r.RequestURI[:min(len(r.RequestURI), 200)]
	if len(s.report.Refused) < maxListed {
		s.report.Refused = append(s.report.Refused, Refusal{Kind: k, Method: r.Method[:min(len(r.Method), 20)], Path: path, Why: why})
		s.log.Warn("refused a request to a registry", "kind", k, "method", r.Method, "path", path, "why", why)
	}
}

// answer carries an allowed request out.
func (s *Session) answer(w http.ResponseWriter, r *http.Request, k Kind) {
	p := r.RequestURI
	e, err := s.g.find(r.Context(), k, p, accepted(k, p, r.Header.Get("Accept")))
	s.count(k, p, e, err)
	switch {
	case errors.Is(err, errUnlisted):
		http.Error(w, "forge: "+err.Error(), http.StatusForbidden)
		return
	case err != nil:
		http.Error(w, "forge: "+err.Error(), http.StatusBadGateway)
		return
	case e.Status != http.StatusOK:
		http.Error(w, "forge: no registry of the server has it", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", e.Type)
	body, ok, err := s.g.rewritten(k, p, e)
	if err != nil {
		http.Error(w, "forge: "+err.Error(), http.StatusBadGateway)
		return
	}
	if ok {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		n, _ := w.Write(body)
		s.add(int64(n))
		return
	}
	f, err := s.g.cache.open(e.entry)
	if err != nil {
		http.Error(w, "forge: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer f.Close()
	if k == Go && strings.HasSuffix(p, ".mod") && s.limited() {
		s.learn(io.LimitReader(f, 1<<20))
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			http.Error(w, "forge: "+err.Error(), http.StatusBadGateway)
			return
		}
	}
	w.Header().Set("Content-Length", strconv.FormatInt(e.Size, 10))
	if r.Method == http.MethodHead {
		return
	}
	n, _ := io.Copy(w, f) // a client that leaves gets no more
	s.add(n)
}

// accepted is the media type to ask for: one of the few that a kind has.
func accepted(k Kind, p, header string) string {
	list := shapes[k].accept
	if len(list) == 0 || k.immutable(p) {
		return ""
	}
	for _, t := range list {
		if strings.Contains(header, t) {
			return t
		}
	}
	return list[len(list)-1]
}

func (s *Session) count(k Kind, p string, e found, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		if line := string(k) + " " + p + ": " + err.Error(); len(s.report.Failed) < maxListed {
			s.report.Failed = append(s.report.Failed, line)
		}
	case e.Status != http.StatusOK:
		if line := string(k) + " " + p; len(s.report.Absent) < maxListed && !slices.Contains(s.report.Absent, line) {
			s.report.Absent = append(s.report.Absent, line)
		}
	}
	if e.asked == 0 {
		return
	}
	s.report.Asked += e.asked
	s.report.Bytes += e.bytes
	i := slices.IndexFunc(s.report.By, func(f Fetched) bool { return f.Kind == k })
	if i < 0 {
		i = len(s.report.By)
		s.report.By = append(s.report.By, Fetched{Kind: k})
	}
	s.report.By[i].Asked += e.asked
	s.report.By[i].Bytes += e.bytes
}

func (s *Session) add(n int64) {
	s.mu.Lock()
	s.sent += n
	s.mu.Unlock()
}
