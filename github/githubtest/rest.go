package githubtest

import (
	"fmt"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"

	"forge/github/githubtest/exchange"
)

type handler func(*call) answer

type route struct {
	op       *operation
	segments []string
	run      handler
}

type router struct{ routes []*route }

// wide parameters may hold slashes.
var wide = map[string]bool{"{ref}": true, "{path}": true, "{branch}": true, "{basehead}": true, "{tree_sha}": true}

// newRouter makes a route of every operation in the table; what has no handler
// answers so.
func (s *Server) newRouter() *router {
	handlers := map[string]handler{}
	for _, part := range []map[string]handler{appOps, userOps, repoOps, gitOps, issueOps, labelOps, pullOps, reviewOps, checkOps, actionsOps, deploymentOps} {
		for id, h := range part {
			handlers[id] = h
		}
	}
	rt := &router{}
	for id, op := range s.table.REST {
		if strings.Contains(op.Path, "}...{") {
			continue // the same as the one with {basehead}
		}
		rt.routes = append(rt.routes, &route{op: op, segments: strings.Split(strings.Trim(op.Path, "/"), "/"), run: handlers[id]})
	}
	sort.Slice(rt.routes, func(i, j int) bool {
		a, b := rt.routes[i], rt.routes[j]
		if x, y := literals(a.segments), literals(b.segments); x != y {
			return x > y
		}
		return a.op.id < b.op.id
	})
	return rt
}

func literals(segments []string) int {
	n := 0
	for _, s := range segments {
		if s[0] != '{' {
			n++
		}
	}
	return n
}

// find returns the route of a request and its path parameters.
func (rt *router) find(r *http.Request) (*route, map[string]string) {
	path := strings.TrimPrefix(strings.Trim(r.URL.EscapedPath(), "/"), "api/v3/")
	var segments []string
	for _, s := range strings.Split(path, "/") {
		text, err := url.PathUnescape(s)
		if err != nil {
			return nil, nil
		}
		segments = append(segments, text)
	}
	for _, c := range rt.routes {
		vars := map[string]string{}
		if c.op.Method == r.Method && match(c.segments, segments, vars) {
			return c, vars
		}
	}
	return nil, nil
}

func match(pattern, path []string, vars map[string]string) bool {
	if len(pattern) == 0 || len(path) == 0 {
		return len(pattern) == len(path) || len(pattern) == 1 && pattern[0] == "{path}"
	}
	p := pattern[0]
	if p[0] != '{' {
		return p == path[0] && match(pattern[1:], path[1:], vars)
	}
	most := 1
	if wide[p] {
		most = len(path)
	}
	for n := 1; n <= most; n++ {
		if match(pattern[1:], path[n:], vars) {
			vars[strings.Trim(p, "{}")] = strings.Join(path[:n], "/")
			return true
		}
	}
	return false
}

// serveREST answers a call to the REST API.
func (s *Server) serveREST(w http.ResponseWriter, r *http.Request, c *call) {
	c.w = w
	rt, vars := s.routes.find(r)
	if rt == nil {
		s.write(w, c, notFound())
		return
	}
	c.vars = vars
	s.mu.Lock()
	a := s.admit(c, rt)
	if a == nil {
		result := rt.run(c)
		a = &result
		if c.mutation {
			s.touch()
		}
	}
	s.mu.Unlock()
	rec := newRecorder()
	s.write(rec, c, *a)
	if k := s.opts.Contract; k != nil && rec.status != http.StatusTemporaryRedirect { // every operation has it, few descriptions do
		k.REST(exchange.Exchange{Op: rt.op.id, Request: c.r, Body: c.body, Status: rec.status, Header: rec.header, Answer: rec.Bytes()})
	}
	rec.flushTo(w)
}

// admit says why a call must be refused; nil to let it pass. s.mu is held.
func (s *Server) admit(c *call, rt *route) *answer {
	refuse := func(a answer) *answer { return &a }
	if a := c.refuseVersion(); a != nil {
		return a
	}
	if c.id.bad {
		return refuse(fail(http.StatusUnauthorized, c.id.why))
	}
	if (rt.op.Auth == "client id and secret") != (c.id.kind == identClient) {
		return refuse(fail(http.StatusUnauthorized, "Bad credentials"))
	}
	if rt.op.Auth == "app JWT" && c.id.kind != identApp {
		return refuse(fail(http.StatusUnauthorized, "A JSON web token could not be decoded"))
	}
	if rt.op.Auth == "" && c.id.kind == identApp && rt.op.id != "apps/get-by-slug" && rt.op.id != "rate-limit/get" {
		return refuse(fail(http.StatusForbidden, "You must authenticate with an installation access token in order to access this endpoint."))
	}
	if owner := c.vars["owner"]; owner != "" {
		full := owner + "/" + c.vars["repo"]
		if a := c.movedTo(full); a != nil {
			return a
		}
		c.repo = s.repos[strings.ToLower(full)]
		if c.repo == nil || !s.reaches(c.id, c.repo) {
			return refuse(notFound())
		}
	}
	if a := s.permit(c, rt); a != nil {
		return a
	}
	if rt.run == nil {
		s.log.Error("an operation that is not implemented here", "operation", rt.op.id)
		return refuse(fail(http.StatusNotImplemented, "The GitHub on this machine does not implement "+rt.op.id))
	}
	return nil
}

func (s *Server) permit(c *call, rt *route) *answer {
	var a answer
	if c.mutation && c.repo != nil && c.repo.archived {
		a = fail(http.StatusForbidden, "Repository was archived so is read-only.")
		return &a
	}
	switch c.id.kind {
	case identInstallation:
		if rt.op.allowed(c.id.tok.perms) {
			return nil
		}
		a = fail(http.StatusForbidden, "Resource not accessible by integration")
		a.header = http.Header{"X-Accepted-Github-Permissions": {strings.ReplaceAll(strings.Join(rt.op.Needs, "; "), ":", "=")}}
		return &a
	case identUser:
		role := "read"
		for _, need := range rt.op.Needs {
			if strings.HasSuffix(need, ":write") && !open[rt.op.id] {
				role = "write"
			}
		}
		if c.repo != nil && !c.repo.can(c.id.user, role) {
			a = fail(http.StatusForbidden, "Must have "+role+" access to this repository.")
			return &a
		}
		if c.id.on != nil && c.repo != nil && (c.mutation || c.repo.private) && !(s.installationFor(c.repo) != nil && rt.op.allowed(s.app.Permissions)) {
			a = fail(http.StatusForbidden, "Resource not accessible by integration")
			return &a
		}
	case identAnonymous:
		if c.mutation && !strings.HasPrefix(rt.op.Auth, "none") {
			a = fail(http.StatusUnauthorized, "Requires authentication")
			return &a
		}
	}
	return nil
}

// open operations may be used by everybody who can read.
var open = map[string]bool{
	"issues/create": true, "issues/create-comment": true, "pulls/create-review": true, "pulls/create-review-comment": true,
	"pulls/create-reply-for-review-comment": true, "reactions/create-for-issue": true, "reactions/create-for-issue-comment": true,
	"reactions/create-for-pull-request-review-comment": true,
}

// page cuts a list as ?page= and ?per_page= ask, and says where the next one is.
func page[T any](c *call, list []T, shape func(T) any) (rows []any, header http.Header) {
	rows = []any{}
	per, at := c.queryInt("per_page", 30, 100), c.queryInt("page", 1, 1<<20)
	last := max(1, (len(list)+per-1)/per)
	for i := (at - 1) * per; i < len(list) && i < at*per; i++ {
		rows = append(rows, shape(list[i]))
	}
	var links []string
	link := func(n int, rel string) {
		u := *c.r.URL
		q := u.Query()
		q.Set("page", strconv.Itoa(n))
		u.RawQuery = q.Encode()
		links = append(links, fmt.Sprintf("<%s%s>; rel=%q", c.s.URL, u.RequestURI(), rel))
	}
	if at > 1 {
		link(at-1, "prev")
	}
	if at < last {
		link(at+1, "next")
		link(last, "last")
	}
	if at > 1 {
		link(1, "first")
	}
	if len(links) > 0 {
		header = http.Header{"Link": {strings.Join(links, ", ")}}
	}
	return rows, header
}

// listing answers with one page of a list.
func listing[T any](c *call, list []T, shape func(T) any) answer {
	rows, header := page(c, list, shape)
	return answer{status: http.StatusOK, body: rows, header: header}
}

// counted answers with one page of a list in an object that counts them all.
func counted[T any](c *call, key string, list []T, shape func(T) any) answer {
	rows, header := page(c, list, shape)
	return answer{status: http.StatusOK, body: obj{"total_count": len(list), key: rows}, header: header}
}

func (c *call) queryInt(name string, def, most int) int {
	n, err := strconv.Atoi(c.r.URL.Query().Get(name))
	if err != nil || n < 1 {
		return def
	}
	return min(n, most)
}
