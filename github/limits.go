package github

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Limit is what GitHub lets one installation do, as its last answer had it.
type Limit struct {
	Installation int64
	Resource     string    // core, graphql, search, …: GitHub counts each by itself
	Limit        int64     // calls, or points of GraphQL, in an hour
	Remaining    int64     // of it
	Reset        time.Time // when it begins anew
}

// Limits returns the limits that GitHub has told of, in the order of installations
// and resources. Those whose time is over are as they were at the beginning of it.
func (a *App) Limits() []Limit {
	a.mu.Lock()
	insts := slices.Collect(maps.Values(a.insts))
	a.mu.Unlock()
	now := a.opts.Clock()
	var out []Limit
	for _, i := range insts {
		i.lim.mu.Lock()
		for _, l := range i.lim.told {
			l.Installation = i.id
			if !now.Before(l.Reset) {
				l.Remaining = l.Limit
			}
			out = append(out, l)
		}
		i.lim.mu.Unlock()
	}
	slices.SortFunc(out, func(a, b Limit) int {
		return cmp.Or(cmp.Compare(a.Installation, b.Installation), cmp.Compare(a.Resource, b.Resource))
	})
	return out
}

// What GitHub lets one installation make in a minute and in an hour, less a few for what
// else acts for it; see "secondary rate limits" in its documentation.
const (
	contentMinute = 75 // of 80
	contentHour   = 480
)

// content counts a call that makes something, or returns how long to wait before it. A
// server without a pause between writes is not GitHub's, and has no such limits.
func (l *limiter) content(req *http.Request, o Options) time.Duration {
	if req.Method != http.MethodPost || o.MinWriteInterval <= 0 {
		return 0
	}
	now := o.Clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made = slices.DeleteFunc(l.made, func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	if n := len(l.made); n >= contentHour {
		return l.made[n-contentHour].Add(time.Hour).Sub(now)
	} else if n >= contentMinute {
		if wait := l.made[n-contentMinute].Add(time.Minute).Sub(now); wait > 0 {
			return wait
		}
	}
	l.made = append(l.made, now)
	return 0
}

// resources are those that GitHub has limits for; see GET /rate_limit. Others are
// not kept, so that no server can make up any number of them.
var resources = []string{"core", "search", "code_search", "graphql", "integration_manifest", "dependency_snapshots", "code_scanning_upload"}

// hear keeps what an answer's header says about the limit.
func (l *limiter) hear(h http.Header) {
	resource := h.Get("X-RateLimit-Resource")
	limit, err1 := strconv.ParseInt(h.Get("X-RateLimit-Limit"), 10, 64)
	remaining, err2 := strconv.ParseInt(h.Get("X-RateLimit-Remaining"), 10, 64)
	reset, err3 := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || !slices.Contains(resources, resource) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told == nil {
		l.told = map[string]Limit{}
	}
	l.told[resource] = Limit{Resource: resource, Limit: limit, Remaining: remaining, Reset: time.Unix(reset, 0)}
}
