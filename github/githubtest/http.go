package githubtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"forge/github/githubtest/exchange"
)

// maxBody is what the API takes in one request; a blob may be 40 MB on GitHub.
const maxBody = 64 << 20

// call is one request to the API or to git.
type call struct {
	s        *Server
	r        *http.Request
	w        http.ResponseWriter
	id       identity
	op       string
	mutation bool
	vars     map[string]string
	body     []byte
	repo     *repository
	actor    *account
	effect   bool // the handler ran and was not refused
}

// answer is what a handler wants to say.
type answer struct {
	status int
	body   any    // JSON, unless raw is set
	raw    []byte // with its own content type
	header http.Header
}

func ok(body any) answer      { return answer{status: http.StatusOK, body: body} }
func created(body any) answer { return answer{status: http.StatusCreated, body: body} }
func noContent() answer       { return answer{status: http.StatusNoContent} }

const docsURL = "https://docs.github.com/rest"

func fail(status int, message string) answer {
	return answer{status: status, body: obj{"message": message, "documentation_url": docsURL, "status": strconv.Itoa(status)}}
}

func notFound() answer { return fail(http.StatusNotFound, "Not Found") }

// invalid is GitHub's 422 with a list of plain texts, as its newer operations send it.
func invalid(texts ...string) answer {
	a := fail(http.StatusUnprocessableEntity, "Unprocessable Entity")
	a.body.(obj)["errors"] = texts
	return a
}

// invalidField is GitHub's 422 that names a field.
func invalidField(resource, field, code, message string) answer {
	a := fail(http.StatusUnprocessableEntity, "Validation Failed")
	e := obj{"resource": resource, "code": code}
	if field != "" {
		e["field"] = field
	}
	if message != "" {
		e["message"] = message
	}
	a.body.(obj)["errors"] = []obj{e}
	return a
}

// recorder keeps an answer back.
type recorder struct {
	status int
	header http.Header
	bytes.Buffer
}

func newRecorder() *recorder                      { return &recorder{status: http.StatusOK, header: http.Header{}} }
func (r *recorder) Header() http.Header           { return r.header }
func (r *recorder) WriteHeader(status int)        { r.status = status }
func (r *recorder) flushTo(w http.ResponseWriter) { r.copyTo(w, r.status) }
func (r *recorder) copyTo(w http.ResponseWriter, status int) {
	for k, v := range r.header {
		w.Header()[k] = v
	}
	w.WriteHeader(status)
	_, _ = w.Write(r.Bytes()) // the client may be gone
}

// restRoots are the first segments that belong to the API when it is called
// without /api/v3.
var restRoots = map[string]bool{
	"repos": true, "app": true, "apps": true, "installation": true, "users": true, "user": true, "rate_limit": true,
	"app-manifests": true, "search": true, "meta": true, "repositories": true, "applications": true,
}

func (s *Server) handler() http.Handler {
	pages := s.pages()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.loopbackHost(r.Host) {
			http.Error(w, "this GitHub answers on its loopback address only", http.StatusForbidden)
			return
		}
		path := r.URL.EscapedPath()
		first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		_, _, isGit := gitPath(r.URL.Path)
		switch {
		case isGit:
			s.serve(w, r, s.serveGit)
		case path == "/login/oauth/access_token":
			s.serve(w, r, s.serveAccessToken)
		case path == "/api/graphql" || path == "/graphql":
			s.serve(w, r, s.serveGraphQL)
		case first == "apps" && strings.HasSuffix(path, "/installations/new"):
			pages.ServeHTTP(w, r)
		case strings.HasPrefix(path, "/api/v3/"), restRoots[first]:
			s.serve(w, r, s.serveREST)
		default:
			pages.ServeHTTP(w, r)
		}
	})
}

// loopbackHost guards against names that somebody points at 127.0.0.1.
func (s *Server) loopbackHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

type serveFunc func(http.ResponseWriter, *http.Request, *call)

// serve reads a request, lets a fault interfere, and keeps the record.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, next serveFunc) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "read the request: "+err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength, r.TransferEncoding = int64(len(body)), nil
	c := &call{s: s, r: r, body: body, vars: map[string]string{}}
	method, path := r.Method, r.URL.Path
	s.mu.Lock()
	c.id = s.identify(r)
	c.actor = c.id.actor(s)
	s.name(c)
	fault := s.faultFor(c)
	s.mu.Unlock()

	rec := newRecorder()
	kind := FaultNone
	if fault != nil {
		kind = fault.Kind
	}
	status := s.interfere(w, rec, c, kind, fault, next)
	s.record(c, method, path, status, kind)
	if status == 0 {
		panic(http.ErrAbortHandler) // how net/http is told to break a connection
	}
}

// name finds which operation a request is, before anything is decided. s.mu is held.
func (s *Server) name(c *call) {
	c.r = s.byID(c.r)
	if _, rest, isGit := gitPath(c.r.URL.Path); isGit {
		c.op = map[string]string{"info/refs": "git/refs", "git-upload-pack": "git/fetch", "git-receive-pack": "git/push"}[rest]
	} else if strings.HasSuffix(c.r.URL.Path, "/graphql") {
		c.op = "graphql/" + graphQLName(c.body)
	} else if c.r.URL.Path == "/login/oauth/access_token" {
		c.op = opAccessToken
	} else if rt, _ := s.routes.find(c.r); rt != nil {
		c.op = rt.op.id
	}
	c.mutation = c.r.Method != http.MethodGet && c.r.Method != http.MethodHead &&
		c.op != "git/fetch" && c.op != "graphql/query" && c.op != opAccessToken
}

// Call is one request that the server has seen.
type Call struct {
	Time         time.Time `json:"time"`
	Method       string    `json:"method"`
	Path         string    `json:"path"`
	Operation    string    `json:"operation"` // "pulls/create", "graphql/resolveReviewThread", "git/push"; empty if there is none
	Status       int       `json:"status"`    // 0 when the answer was held back
	Installation int64     `json:"installation,omitempty"`
	Mutation     bool      `json:"mutation"`          // it was meant to change something
	Effect       bool      `json:"effect"`            // it was carried out; with a fault this may differ from what Status says
	Fault        FaultKind `json:"fault,omitempty"`   // the fault that struck it
	Version      string    `json:"version,omitempty"` // of the API, as the request names it
}

func (s *Server) record(c *call, method, path string, status int, kind FaultKind) {
	entry := Call{Time: s.now(), Method: method, Path: path, Operation: c.op, Status: status, Mutation: c.mutation, Effect: c.effect,
		Fault: kind, Version: c.r.Header.Get("X-GitHub-Api-Version")}
	if c.id.tok != nil {
		entry.Installation = c.id.tok.inst.id
	}
	s.mu.Lock()
	s.calls = append(s.calls, entry)
	s.touch()
	s.mu.Unlock()
	s.log.Debug("call", "method", method, "path", path, "operation", c.op, "status", status)
	if s.opts.WriteLog != nil && c.mutation {
		line, err := json.Marshal(entry)
		if err == nil {
			s.writes.Lock()
			_, err = s.opts.WriteLog.Write(append(line, '\n'))
			s.writes.Unlock()
		}
		if err != nil {
			s.log.Warn("keep the log of writes", "error", err)
		}
	}
}

// Calls returns the requests seen so far, in the order of their ends.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// Mutations counts the effects of each operation that changes something.
func (s *Server) Mutations() map[string]int {
	n := map[string]int{}
	for _, c := range s.Calls() {
		if c.Mutation && c.Effect {
			n[c.Operation]++
		}
	}
	return n
}

// write sends an answer with the headers that every answer of the API has.
func (s *Server) write(w http.ResponseWriter, c *call, a answer) {
	h := w.Header()
	for k, v := range a.header {
		h[k] = v
	}
	h.Set("X-GitHub-Request-Id", strings.ToUpper(randomHex(10)))
	h.Set("X-GitHub-Media-Type", "github.v3; format=json")
	h.Set("X-GitHub-Api-Version-Selected", c.version())
	if h.Get("X-RateLimit-Limit") == "" {
		s.limitHeaders(h, s.remaining(c))
	}
	if a.raw != nil {
		w.WriteHeader(a.status)
		_, _ = w.Write(a.raw)
		return
	}
	if a.body == nil {
		w.WriteHeader(a.status)
		return
	}
	text, err := json.Marshal(a.body)
	if err == nil && c.version() != exchange.OldVersion {
		text, err = withoutRemoved(text)
	}
	if err != nil {
		s.log.Error("encode an answer", "operation", c.op, "error", err)
		a.status, text = http.StatusInternalServerError, []byte(`{"message":"Server Error"}`)
	}
	h.Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(a.status)
	_, _ = w.Write(text)
}

const hourlyLimit = 5000

// SetHourlyLimit lets an installation make so many calls an hour, as GitHub Enterprise
// Server's site administrators can.
func (s *Server) SetHourlyLimit(calls int) { s.limit.Store(int64(calls)) }

// remaining counts down from the calls within the running hour.
func (s *Server) remaining(c *call) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	hour, n := s.now().Truncate(time.Hour), 0
	var inst int64
	if c.id.tok != nil {
		inst = c.id.tok.inst.id
	}
	for i := len(s.calls) - 1; i >= 0 && !s.calls[i].Time.Before(hour); i-- {
		if s.calls[i].Installation == inst {
			n++
		}
	}
	return max(0, int(s.limit.Load())-1-n)
}

func (s *Server) limitHeaders(h http.Header, remaining int) {
	limit := int(s.limit.Load())
	h.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(remaining))
	h.Set("X-RateLimit-Used", strconv.Itoa(limit-remaining))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(s.now().Truncate(time.Hour).Add(time.Hour).Unix(), 10))
	h.Set("X-RateLimit-Resource", "core")
}

// decode reads a JSON body into v. An empty body and the JSON null are no fields.
func (c *call) decode(v any) *answer {
	if len(bytes.TrimSpace(c.body)) == 0 {
		return nil
	}
	if err := json.Unmarshal(c.body, v); err != nil {
		a := fail(http.StatusBadRequest, fmt.Sprintf("Problems parsing JSON: %v", err))
		return &a
	}
	return nil
}

// number reads a numeric path parameter; -1 if it is none.
func (c *call) number(name string) int64 {
	n, err := strconv.ParseInt(c.vars[name], 10, 64)
	if err != nil {
		return -1
	}
	return n
}
