package github

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// Secrets finds secrets in what is about to be posted.
type Secrets interface {
	// Text returns the text without what was found, and where that was.
	Text(name, content string) (string, []text.Leak)
}

// fixed are the fields of a call that are no text: with a part taken out, the call
// would do something else.
var fixed = []string{"base", "branch", "commit_id", "content", "environment", "external_id", "head", "head_sha", "path", "query", "ref", "sha", "task"}

// shown are the fields that take a text of several lines: what was taken out is told at
// their end.
var shown = []string{"body", "summary", "text"}

// suggestionFence begins a suggestion. With a part taken out it must not be applied by a click.
var suggestionFence = lazyregexp.New("(?m)^([ \t>]*`{3,})suggestion\\b")

// withoutSecrets is the one gate that everything passes which changes something on
// GitHub. Secrets are taken out of texts, which say so then, to whoever reads them; a
// call that cannot do without is not made.
func (t *transport) withoutSecrets(req *http.Request) (*http.Request, error) {
	finder := t.app.opts.Secrets
	if finder == nil || t.searched {
		return req, nil
	}
	o := outgoing{finder: finder, what: whatOf(req)}
	o.pass(req.URL.Path, "the address of "+o.what)
	var body []byte
	if req.Body != nil && req.Body != http.NoBody {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, &apiError{msg: "read what is to be posted: " + err.Error(), cause: err} // unreachable: it is a buffer
		}
		req.Body.Close()
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		o.pass(string(body), o.what)
	} else if v = o.clean("", v); len(o.taken) > 0 {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return nil, &apiError{msg: "write what is to be posted: " + err.Error(), cause: err} // unreachable: it came out of JSON
		}
		body = b.Bytes()
	}
	if len(o.barred) > 0 {
		return nil, &pipeline.Fault{Class: pipeline.FaultSecret, Final: true,
			Message: "this looks like a secret, so it was not sent to GitHub: " + text.Leaks(o.barred)}
	}
	if len(o.taken) > 0 {
		t.app.log.Warn("took what looks like a secret out of what is posted", "operation", req.Method+" "+req.URL.Path, "where", text.Leaks(o.taken))
	}
	out := req.Clone(req.Context())
	out.Body, out.ContentLength = http.NoBody, int64(len(body))
	if len(body) > 0 {
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		out.Body, _ = out.GetBody() // never fails
	}
	return out, nil
}

// outgoing looks through one call.
type outgoing struct {
	finder Secrets
	what   string      // for people: "a comment"
	taken  []text.Leak // out of texts
	barred []text.Leak // where nothing can be taken out
}

// pass looks through what must go as it is.
func (o *outgoing) pass(s, name string) {
	_, leaks := o.finder.Text(name, s)
	o.barred = append(o.barred, leaks...)
}

// clean returns a value of JSON without secrets. field is what it is the value of.
func (o *outgoing) clean(field string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			v[k] = o.clean(k, v[k])
		}
	case []any:
		for i := range v {
			v[i] = o.clean(field, v[i])
		}
	case string:
		name := strings.TrimSpace(field + " of " + o.what)
		if slices.Contains(fixed, field) {
			if raw, err := base64.StdEncoding.DecodeString(v); field == "content" && err == nil {
				o.pass(string(raw), name)
			} else {
				o.pass(v, name)
			}
			return v
		}
		clean, leaks := o.finder.Text(name, v)
		if len(leaks) > 0 && slices.Contains(shown, field) {
			clean = suggestionFence.ReplaceAllString(clean, "$1") + takenNote(leaks)
		}
		o.taken = append(o.taken, leaks...)
		return clean
	}
	return v
}

// takenNote tells whoever reads a text what was taken out of it.
func takenNote(leaks []text.Leak) string {
	var rules []string
	for _, l := range leaks {
		if !slices.Contains(rules, l.Rule) && len(rules) < 5 {
			rules = append(rules, l.Rule)
		}
	}
	return fmt.Sprintf("\n\n⚠️ Forge took out what looks like a secret (%s), where it says `[secret]`. If it is a real one, revoke it.", strings.Join(rules, ", "))
}

// whatOf names what a call makes or changes.
func whatOf(req *http.Request) string {
	path := req.URL.Path
	for _, k := range [][2]string{
		{"/check-runs", "the check run"}, {"/reviews", "a review"}, {"/pulls/", "the pull request"}, {"/pulls", "the pull request"}, {"/comments", "a comment"},
		{"/issues", "an issue"}, {"/contents/", "a file"}, {"/git/refs", "a branch"}, {"/graphql", "an answer in a review thread"},
	} {
		if strings.Contains(path, k[0]) {
			if k[0] == "/pulls/" && strings.HasSuffix(path, "/comments") {
				return "a comment on the diff"
			}
			return k[1]
		}
	}
	return "a call to GitHub"
}
