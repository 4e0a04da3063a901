package githubtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	"forge/github/githubtest/exchange"
)

// version is that of the API in which the request is answered.
func (c *call) version() string {
	if v := c.r.Header.Get("X-GitHub-Api-Version"); slices.Contains(c.s.versions(), v) {
		return v
	}
	return exchange.OldVersion
}

func (s *Server) versions() []string {
	if s.opts.OldAPI {
		return []string{exchange.OldVersion}
	}
	return []string{exchange.OldVersion, exchange.NewVersion}
}

// refuseVersion refuses a version that this GitHub does not have.
func (c *call) refuseVersion() *answer {
	v := c.r.Header.Get("X-GitHub-Api-Version")
	if v == "" || slices.Contains(c.s.versions(), v) {
		return nil
	}
	a := fail(http.StatusBadRequest, "API version "+v+" is not supported; see https://docs.github.com/rest/overview/api-versions")
	return &a
}

// withoutRemoved takes out what the new version of the API has no longer.
func withoutRemoved(text []byte) ([]byte, error) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	exchange.Removed(v, func(o map[string]any, key string) { delete(o, key) })
	return json.Marshal(v)
}
