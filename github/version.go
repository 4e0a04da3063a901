package github

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// The versions of GitHub's REST API that Forge is written for. Answers of the newer one
// lack merge_commit_sha, assignee, rate and has_downloads; nothing here reads them.
const (
	apiVersion      = "2026-03-10"
	olderAPIVersion = "2022-11-28" // what GitHub Enterprise Server knows
)

// versioned pins the API's version on every call, those for tokens included. A server
// that does not know it is asked in the older one from then on.
type versioned struct {
	next  http.RoundTripper
	older *atomic.Bool
}

func newVersioned(next http.RoundTripper) versioned { return versioned{next, new(atomic.Bool)} }

func (v versioned) RoundTrip(req *http.Request) (*http.Response, error) {
	version := apiVersion
	if v.older.Load() {
		version = olderAPIVersion
	}
	out := req.Clone(req.Context())
	out.Header.Set("X-GitHub-Api-Version", version)
	resp, err := v.next.RoundTrip(out)
	if err != nil || version == olderAPIVersion || resp.StatusCode != http.StatusBadRequest || req.Body != nil && req.GetBody == nil && req.Body != http.NoBody {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body) // in memory already: see timeout
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil || !strings.Contains(strings.ToLower(message(body)), "version") {
		return resp, err
	}
	v.older.Store(true)
	again := req.Clone(req.Context())
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return resp, nil //nolint:nilerr // the answer stands
		}
	}
	return v.RoundTrip(again)
}
