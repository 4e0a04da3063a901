package githubtest

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// FaultKind is what goes wrong with a call.
type FaultKind string

// The kinds of faults.
const (
	FaultNone         FaultKind = ""
	FaultErrorBefore  FaultKind = "error before"    // 502, nothing happened
	FaultErrorAfter   FaultKind = "error after"     // 502, but it happened
	FaultErrorLate    FaultKind = "error late"      // 502, and it happens afterwards: when Release is closed
	FaultHangBefore   FaultKind = "hang before"     // no answer until the caller gives up; nothing happened
	FaultHangAfter    FaultKind = "hang after"      // no answer until the caller gives up; it happened
	FaultPrimaryLimit FaultKind = "primary limit"   // 403, or Status; the hour's calls are used up
	FaultSecondary    FaultKind = "secondary limit" // 403, or Status; too quick; Retry-After
)

// Fault is a rule for what goes wrong. A zero field matches everything.
type Fault struct {
	Method      string // "POST"
	Path        string // a part of the path
	Operation   string // an operation's id, "pulls/create", or its beginning, "pulls/"
	Kind        FaultKind
	Nth         int             // strike only the nth matching call, from 1
	Times       int             // strike at most so often; 0 for always
	Probability float64         // strike by chance, 0 < p < 1; 0 for always
	Status      int             // another status than the kind's own
	RetryAfter  time.Duration   // of a secondary limit; 0 for 60 s
	Release     <-chan struct{} // of FaultErrorLate; nil for at once after the answer

	seen, struck int
}

// AddFault puts a rule in force. The first rule that strikes wins.
func (s *Server) AddFault(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// ClearFaults ends all rules.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// SetGate has f called before each call that changes something is carried out, and again
// (done) before it is answered. Where f returns false, the caller gets no answer, and
// nothing is carried out: whoever calls is killed there.
func (s *Server) SetGate(f func(operation string, done bool) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = f
}

// faultFor finds the rule that strikes a call. s.mu is held.
func (s *Server) faultFor(c *call) *Fault {
	for _, f := range s.faults {
		if f.Method != "" && f.Method != c.r.Method || !strings.Contains(c.r.URL.Path, f.Path) || !strings.HasPrefix(c.op, f.Operation) {
			continue
		}
		f.seen++
		switch {
		case f.Nth > 0 && f.seen != f.Nth:
		case f.Times > 0 && f.struck >= f.Times:
		case f.Probability > 0 && s.random.Float64() >= f.Probability:
		default:
			f.struck++
			copied := *f
			return &copied
		}
	}
	return nil
}

// interfere carries a call out, or not, or only half. It returns the status that
// the caller was told.
func (s *Server) interfere(w http.ResponseWriter, rec *recorder, c *call, kind FaultKind, f *Fault, next serveFunc) int {
	carryOut := func() {
		next(rec, c.r, c)
		c.effect = rec.status < 300
	}
	s.mu.Lock()
	gate := s.gate
	s.mu.Unlock()
	gated := gate != nil && c.mutation
	if gated && !gate(c.op, false) {
		return 0 // serve breaks the connection
	}
	hang := func() int {
		s.hang(1)
		defer s.hang(-1)
		select {
		case <-c.r.Context().Done():
		case <-s.ctx.Done():
		}
		return 0 // serve breaks the connection
	}
	switch kind {
	case FaultErrorBefore:
		return s.badGateway(w, c, f)
	case FaultErrorAfter:
		carryOut()
		return s.badGateway(w, c, f)
	case FaultErrorLate:
		status := s.badGateway(w, c, f)
		s.later(c, f, next)
		return status
	case FaultHangBefore:
		return hang()
	case FaultHangAfter:
		carryOut()
		return hang()
	case FaultPrimaryLimit, FaultSecondary:
		return s.limited(w, c, kind, f)
	}
	carryOut()
	if gated && !gate(c.op, true) {
		return 0
	}
	rec.flushTo(w)
	return rec.status
}

func (s *Server) hang(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hanging += n
	s.touch()
}

// Hanging reports whether a caller waits for an answer that will not come.
func (s *Server) Hanging() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hanging > 0
}

// later carries a call out after its caller was told that it failed.
func (s *Server) later(c *call, f *Fault, next serveFunc) {
	r := c.r.Clone(s.ctx)
	r.Body = c.r.Body
	s.wg.Go(func() {
		if f.Release != nil {
			select {
			case <-f.Release:
			case <-s.ctx.Done():
				return
			}
		}
		late := *c
		late.r = r
		rec := newRecorder()
		next(rec, r, &late)
		late.effect = rec.status < 300
		s.record(&late, r.Method, r.URL.Path, rec.status, FaultErrorLate)
	})
}

func (s *Server) badGateway(w http.ResponseWriter, c *call, f *Fault) int {
	status := http.StatusBadGateway
	if f.Status != 0 {
		status = f.Status
	}
	if strings.HasPrefix(c.op, "git/") {
		http.Error(w, "Bad Gateway", status)
		return status
	}
	s.write(w, c, answer{status: status, body: obj{"message": "Server Error"}})
	return status
}

func (s *Server) limited(w http.ResponseWriter, c *call, kind FaultKind, f *Fault) int {
	status := http.StatusForbidden
	if f.Status != 0 {
		status = f.Status
	}
	var a answer
	if kind == FaultPrimaryLimit {
		s.limitHeaders(w.Header(), 0)
		a = fail(status, "API rate limit exceeded for installation ID "+strconv.FormatInt(c.installation(), 10)+".")
	} else {
		wait := f.RetryAfter
		if wait == 0 {
			wait = time.Minute
		}
		w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())))
		a = fail(status, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.")
		a.body.(obj)["documentation_url"] = "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"
	}
	s.write(w, c, a)
	return status
}

func (c *call) installation() int64 {
	if c.id.tok == nil {
		return 0
	}
	return c.id.tok.inst.id
}
