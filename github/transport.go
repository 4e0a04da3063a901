package github

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"

	"forge/pipeline"
	"forge/pipeline/fence"
	"forge/pipeline/text"
)

const (
	maxBody   = 32 << 20                // of one answer; the largest is a file of 1 MB in base64
	reads     = 3                       // attempts at a call that changes nothing
	limitWait = time.Minute             // after a limit without a time: GitHub asks for a minute at least
	limitMax  = 15 * time.Minute        // and for more each time
	limitMost = time.Hour + time.Minute // that an answer may ask for: GitHub's limits are of an hour
)

// limiter holds what all calls of one installation share.
type limiter struct {
	slot chan struct{} // held by the one write that is under way

	mu      sync.Mutex
	blocked time.Time        // no call before this
	strikes int              // limits in a row without a time
	refused string           // why it is left alone, when that is no limit
	last    time.Time        // when the last write ended
	told    map[string]Limit // by resource: what GitHub's answers have said
	made    []time.Time      // when content was made, within the last hour
}

func newLimiter() *limiter { return &limiter{slot: make(chan struct{}, 1)} }

// wait returns how long the installation must leave GitHub alone.
func (l *limiter) wait(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.blocked.Sub(now)
}

// held is the error of a call that is not made because GitHub is to be left alone.
func (l *limiter) held(op string, d time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused != "" {
		return &apiError{op: op, status: http.StatusUnauthorized, msg: l.refused, after: d}
	}
	return &apiError{op: op, status: http.StatusTooManyRequests, msg: "GitHub's rate limit was reached", after: d}
}

// refuse notes why the installation is left alone; it reports whether that is new.
func (l *limiter) refuse(why string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.refused == ""
	l.refused = why
	return first
}

// strike records a refusal and returns how long it lasts.
func (l *limiter) strike(h http.Header, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := time.Duration(0)
	if s, err := strconv.Atoi(h.Get("Retry-After")); err == nil && s >= 0 {
		d = time.Duration(min(s, int(limitMost/time.Second))) * time.Second
	} else if reset, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64); err == nil && h.Get("X-RateLimit-Remaining") == "0" {
		d = min(time.Unix(reset, 0).Sub(now), limitMost) + time.Second // the clocks of two machines
	} else {
		d = min(limitWait<<min(l.strikes, 8), limitMax)
		l.strikes++
	}
	d = min(max(d, time.Second), limitMost)
	if t := now.Add(d); t.After(l.blocked) {
		l.blocked = t
	}
	return d
}

func (l *limiter) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.strikes, l.refused = 0, ""
}

// transport is what every call goes through. It keeps the installation's limits,
// one write at a time and the pause between writes, tries reads again, and types
// what goes wrong.
type transport struct {
	app   *App
	next  http.RoundTripper // signs the request
	lim   *limiter
	want  string        // the permissions that the token asks for, in words
	calls *atomic.Int64 // when someone counts
	repo  pipeline.Repo // that the calls are about; its ID is 0 when that is not known

	searched bool // what it sends was looked through for secrets elsewhere
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != t.app.rest.Host || req.URL.Scheme != t.app.rest.Scheme {
		return nil, &apiError{msg: fmt.Sprintf("a call was sent on to %s://%s: only %s://%s gets the App's credentials",
			req.URL.Scheme, req.URL.Host, t.app.rest.Scheme, t.app.rest.Host)}
	}
	req, err := t.byID(req)
	if err != nil {
		return nil, err
	}
	write := mutates(req)
	if write {
		if req, err = t.withoutSecrets(req); err != nil {
			return nil, err
		}
		release, err := t.turn(req.Context())
		if err != nil {
			return nil, err
		}
		defer release()
		if d := t.lim.content(req, t.app.opts); d > 0 {
			return nil, &apiError{status: http.StatusTooManyRequests, msg: "as much was made as GitHub lets an App make in a minute, or in an hour", after: d}
		}
		if err := fence.Check(req.Context()); err != nil { // it may have waited for its turn
			return nil, &apiError{msg: err.Error(), cause: err}
		}
	}
	for n := 1; ; n++ {
		if d := t.lim.wait(t.app.opts.Clock()); d > 0 {
			return nil, t.lim.held("", d)
		}
		resp, err := t.once(req, write)
		var e *apiError
		again := errors.As(err, &e) && !write && n < reads && (e.status >= 500 || e.status == 0) && req.Context().Err() == nil
		if !again {
			return resp, err
		}
		t.app.log.Debug("call to GitHub failed, trying again", "operation", req.Method+" "+req.URL.Path, "error", e)
		if err := t.app.opts.Sleep(req.Context(), 200*time.Millisecond<<n); err != nil {
			return nil, &apiError{msg: err.Error(), cause: err}
		}
		if req.GetBody != nil {
			req = req.Clone(req.Context())
			req.Body, _ = req.GetBody() // unreachable error: the body is a buffer
		}
	}
}

// byID names the repository by its id, as GitHub's own redirects and pages of lists do:
// its name may have changed, and be another repository's by now. Nor is a call sent on to
// another repository.
func (t *transport) byID(req *http.Request) (*http.Request, error) {
	if t.repo.ID == 0 || isGraphQL(req) {
		return req, nil
	}
	path, own := req.URL.EscapedPath(), fmt.Sprintf("%srepositories/%d", t.app.rest.Path, t.repo.ID)
	if rest, named := strings.CutPrefix(path, t.app.rest.Path+"repos/"+t.repo.FullName()); named && (rest == "" || rest[0] == '/') {
		u := *req.URL
		u.RawPath = own + rest
		if unescaped, err := url.PathUnescape(u.RawPath); err == nil {
			u.Path = unescaped
		}
		out := req.Clone(req.Context())
		out.URL = &u
		return out, nil
	}
	if rest, other := strings.CutPrefix(path, t.app.rest.Path+"repositories/"); other && path != own && !strings.HasPrefix(path, own+"/") {
		number, _, _ := strings.Cut(rest, "/")
		return nil, &apiError{msg: fmt.Sprintf("a call was sent on to repository %s: it is about %s, which has the id %d", number, t.repo.FullName(), t.repo.ID)}
	}
	return req, nil
}

// turn waits until this write may be sent.
func (t *transport) turn(ctx context.Context) (release func(), err error) {
	select {
	case t.lim.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, &apiError{msg: "wait for the installation's other writes: " + ctx.Err().Error(), cause: ctx.Err()}
	}
	t.lim.mu.Lock()
	pause := t.lim.last.Add(t.app.opts.MinWriteInterval).Sub(t.app.opts.Clock())
	t.lim.mu.Unlock()
	if pause > 0 {
		if err := t.app.opts.Sleep(ctx, pause); err != nil {
			<-t.lim.slot
			return nil, &apiError{msg: "pause between writes: " + err.Error(), cause: err}
		}
	}
	return func() {
		t.lim.mu.Lock()
		t.lim.last = t.app.opts.Clock()
		t.lim.mu.Unlock()
		<-t.lim.slot
	}, nil
}

// once sends the request one time. It returns an error for every outcome that is
// not this call's own answer.
func (t *transport) once(req *http.Request, write bool) (*http.Response, error) {
	if t.calls != nil {
		t.calls.Add(1)
	}
	t.app.calls.Add(1)
	var sent atomic.Bool
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		var token *ghinstallation.HTTPError
		if errors.As(err, &token) {
			return nil, t.tokenError(token)
		}
		return nil, &apiError{msg: err.Error(), ambiguous: write && sent.Load(), cause: err}
	}
	body, err := io.ReadAll(resp.Body) // in memory already: see timeout
	resp.Body.Close()
	if err != nil {
		return nil, &apiError{msg: err.Error(), ambiguous: write, cause: err}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	t.lim.hear(resp.Header)
	switch {
	case limited(resp, body):
		return nil, &apiError{status: http.StatusTooManyRequests, msg: "GitHub's rate limit was reached: " + message(body),
			after: t.lim.strike(resp.Header, t.app.opts.Clock())}
	case resp.StatusCode == http.StatusUnauthorized && t.repo.Installation != 0:
		return nil, t.unauthorized(resp.Header, body)
	case resp.StatusCode >= 500:
		return nil, &apiError{status: resp.StatusCode, ambiguous: write, msg: fmt.Sprintf("GitHub answered %d: %s", resp.StatusCode, message(body))}
	}
	t.lim.clear()
	if isGraphQL(req) {
		if err := t.graphQLError(resp, body); err != nil {
			return nil, err // a RoundTripper returns one or the other
		}
	}
	return resp, nil
}

// unauthorized is what becomes of a call when GitHub accepts a new token no more than the
// one before. All runs of the installation wait; its operator is told, once.
func (t *transport) unauthorized(h http.Header, body []byte) error {
	const why = "GitHub accepts no token of this installation, a new one neither"
	first := t.lim.refuse(why)
	after := t.lim.strike(h, t.app.opts.Clock())
	if first {
		t.app.log.Error(why+": all its runs wait. Where an owner has suspended or uninstalled the App, Settings, Applications, Installed GitHub Apps says so; else compare the clocks",
			"installation", t.repo.Installation, "repo", t.repo.FullName(), "error", message(body))
	}
	return &apiError{status: http.StatusUnauthorized, msg: why + ": " + message(body), after: after}
}

func (t *transport) tokenError(e *ghinstallation.HTTPError) error {
	if r := e.Response; r != nil && (r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusForbidden) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 4096))
		r.Body = io.NopCloser(bytes.NewReader(body))
		if limited(r, body) {
			return &apiError{status: http.StatusTooManyRequests, msg: "GitHub's rate limit was reached: " + message(body),
				after: t.lim.strike(r.Header, t.app.opts.Clock())}
		}
	}
	return tokenError(e, t.want)
}

// limited reports whether an answer is a refusal for having called too often.
// GitHub uses 403 and 429 for it, and the library knows only 403.
func limited(resp *http.Response, body []byte) bool {
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		text := strings.ToLower(string(body[:min(len(body), 4096)]))
		return resp.Header.Get("Retry-After") != "" || resp.Header.Get("X-RateLimit-Remaining") == "0" ||
			strings.Contains(text, "rate limit") || strings.Contains(text, "abuse detection")
	}
	return false
}

// graphQLError reads errors[].type, which the GraphQL library loses. GraphQL says
// "rate limited" and "forbidden" with status 200.
func (t *transport) graphQLError(resp *http.Response, body []byte) error {
	if resp.StatusCode != http.StatusOK {
		return &apiError{status: resp.StatusCode, msg: fmt.Sprintf("GitHub answered %d: %s", resp.StatusCode, message(body))}
	}
	var out struct {
		Errors []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return &apiError{status: resp.StatusCode, msg: "read GitHub's GraphQL answer: " + err.Error(), cause: err}
	}
	if len(out.Errors) == 0 {
		return nil
	}
	e := out.Errors[0]
	switch e.Type {
	case "RATE_LIMITED":
		return &apiError{status: http.StatusTooManyRequests, msg: "GitHub's rate limit was reached: " + e.Message,
			after: t.lim.strike(resp.Header, t.app.opts.Clock())}
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		return &apiError{status: http.StatusForbidden, msg: e.Message}
	case "NOT_FOUND":
		return &apiError{status: http.StatusNotFound, msg: e.Message}
	case "STALE_DATA":
		return &apiError{status: http.StatusConflict, msg: e.Message}
	}
	return &apiError{status: http.StatusUnprocessableEntity, msg: e.Message}
}

func isGraphQL(req *http.Request) bool { return strings.HasSuffix(req.URL.Path, "/graphql") }

// mutates reports whether a request changes something. GraphQL sends queries by
// POST too; the library writes "mutation" in front of those that are none.
func mutates(req *http.Request) bool {
	if req.Method == http.MethodGet || req.Method == http.MethodHead {
		return false
	}
	if !isGraphQL(req) || req.GetBody == nil {
		return true
	}
	body, err := req.GetBody()
	if err != nil {
		return true
	}
	defer body.Close()
	head, _ := io.ReadAll(io.LimitReader(body, 64))
	return !bytes.Contains(head, []byte(`"query":"{`)) && !bytes.Contains(head, []byte(`"query":"query`))
}

// message takes GitHub's words out of an answer's body.
func message(body []byte) string {
	var m struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &m) == nil && m.Message != "" {
		return text.Scrub(m.Message)
	}
	return text.Scrub(strings.TrimSpace(string(body[:min(len(body), 200)])))
}

// timeout bounds a single call, its body included, and reads the body to its end,
// so that a connection that breaks in the middle is an error of the call.
type timeout struct {
	next http.RoundTripper
	d    time.Duration
}

func (t timeout) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(req.Context(), t.d, fmt.Errorf("no answer within %s", t.d))
	defer cancel()
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		if ctx.Err() != nil && req.Context().Err() == nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	resp.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if len(body) > maxBody {
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxBody)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}
