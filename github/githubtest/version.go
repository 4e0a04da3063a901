package githubtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
)

// The versions of the API.
const (
	oldAPIVersion = "2022-11-28" // of a request that names none
	newAPIVersion = "2026-03-10"
)

// version is that of the API in which the request is answered.
func (c *call) version() string {
	if v := c.r.Header.Get("X-GitHub-Api-Version"); slices.Contains(c.s.versions(), v) {
		return v
	}
	return oldAPIVersion
}

func (s *Server) versions() []string {
	if s.opts.OldAPI {
		return []string{oldAPIVersion}
	}
	return []string{oldAPIVersion, newAPIVersion}
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
	removed(v, func(o map[string]any, key string) { delete(o, key) })
	return json.Marshal(v)
}

// removed calls f for every field that the new version of the API has removed, where
// it was.
func removed(v any, f func(o map[string]any, key string)) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			removed(x, f)
		}
	case map[string]any:
		for beside, key := range map[string]string{"assignees": "assignee", "diff_url": "merge_commit_sha", "resources": "rate", "has_wiki": "has_downloads"} {
			if _, ok := v[beside]; ok && (key != "merge_commit_sha" || v["head"] != nil) {
				f(v, key)
			}
		}
		for _, x := range v {
			removed(x, f)
		}
	}
}
