// Package contract holds requests, answers, webhooks and GraphQL documents against
// GitHub's own descriptions of them.
package contract

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"forge/github/githubtest/exchange"
)

// Contract has GitHub's descriptions, and what did not fit them. One may serve many servers.
type Contract struct {
	rest    map[string]*openapi3.Operation
	graphql *ast.Schema
	events  map[string]string // "issues.labeled" → definition
	baseURL string

	mu         sync.Mutex
	compiler   *jsonschema.Compiler
	schemas    map[string]*jsonschema.Schema
	violations []string
	checked    Counts
}

// Counts say how much was checked; a check that saw nothing proves nothing.
type Counts struct{ Requests, Answers, Webhooks, Documents int }

// New reads the folder that holds rest-openapi.json, webhook-schemas.json
// and graphql-schema.graphql.gz. When it is not there the error wraps
// fs.ErrNotExist, so that a test can skip.
func New(dir string) (*Contract, error) {
	k := &Contract{rest: map[string]*openapi3.Operation{}, schemas: map[string]*jsonschema.Schema{}}
	for _, load := range []func(string) error{k.loadREST, k.loadWebhooks, k.loadGraphQL} {
		if err := load(dir); err != nil {
			return nil, fmt.Errorf("load GitHub's descriptions from %s: %w", dir, err)
		}
	}
	return k, nil
}

func (k *Contract) loadREST(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "rest-openapi.json"))
	if err != nil {
		return err
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return err
	}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			k.rest[op.OperationID] = op
		}
	}
	return nil
}

func (k *Contract) loadWebhooks(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "webhook-schemas.json"))
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	var head struct {
		ID     string            `json:"$id"`
		Events map[string]string `json:"x-events"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return err
	}
	k.baseURL, k.events, k.compiler = head.ID, head.Events, jsonschema.NewCompiler()
	k.compiler.AssertFormat()
	// The library refuses valid templates, and the addresses of bots: 1+forge[bot]@….
	for _, name := range []string{"uri-template", "email"} {
		k.compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
	}
	return k.compiler.AddResource(head.ID, doc)
}

func (k *Contract) loadGraphQL(dir string) error {
	f, err := os.Open(filepath.Join(dir, "graphql-schema.graphql.gz"))
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return err
	}
	k.graphql, err = gqlparser.LoadSchema(&ast.Source{Name: "github.graphql", Input: string(text)})
	return err
}

// Violations returns what did not fit, in order. A nil Contract has none.
func (k *Contract) Violations() []string {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.violations)
}

// Counts returns how much was checked.
func (k *Contract) Counts() Counts {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.checked
}

func (k *Contract) violate(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.violations = append(k.violations, fmt.Sprintf(format, args...))
}

func (k *Contract) count(add Counts) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.checked.Requests += add.Requests
	k.checked.Answers += add.Answers
	k.checked.Webhooks += add.Webhooks
	k.checked.Documents += add.Documents
}

// REST checks one exchange. A request is only held to the description when
// it was accepted: a refused one may be wrong on purpose.
func (k *Contract) REST(x exchange.Exchange) {
	if a, found := alike[x.Op]; found {
		x.Op, x.Answer = a.op, a.part(x)
	}
	op := k.rest[x.Op]
	if op == nil {
		k.violate("%s %s: the operation %s is not in GitHub's description", x.Request.Method, x.Request.URL.Path, x.Op)
		return
	}
	if x.Status < 400 {
		k.checkRequest(op, x)
	}
	k.checkAnswer(op, x)
}

// likeness names an operation that answers the same things as one that the kept
// descriptions do not hold, and the field where they are: "" for the whole answer.
type likeness struct{ op, field string }

var alike = map[string]likeness{
	"users/get-authenticated":                             {"users/get-by-username", ""},
	"apps/list-installations-for-authenticated-user":      {"apps/list-installations", "installations"},
	"apps/list-installation-repos-for-authenticated-user": {"apps/list-repos-accessible-to-installation", ""},
	"apps/delete-token":                                   {"apps/revoke-installation-access-token", ""},
}

// part is the answer's field alone.
func (l likeness) part(x exchange.Exchange) []byte {
	var whole map[string]json.RawMessage
	if l.field == "" || x.Status >= 400 || json.Unmarshal(x.Answer, &whole) != nil {
		return x.Answer
	}
	return whole[l.field]
}

func (k *Contract) checkRequest(op *openapi3.Operation, x exchange.Exchange) {
	k.count(Counts{Requests: 1})
	for name := range x.Request.URL.Query() {
		if !slices.ContainsFunc(op.Parameters, func(p *openapi3.ParameterRef) bool { return p.Value.In == "query" && p.Value.Name == name }) {
			k.violate("request %s: the query parameter %q is not known to GitHub", x.Op, name)
		}
	}
	if op.RequestBody == nil {
		return
	}
	media := op.RequestBody.Value.Content.Get("application/json")
	if text := bytes.TrimSpace(x.Body); media == nil || len(text) == 0 || bytes.Equal(text, []byte("null")) {
		return
	}
	var v any
	if err := json.Unmarshal(x.Body, &v); err != nil {
		k.violate("request %s: %v", x.Op, err)
		return
	}
	v = byWords(x.Op, v)
	if err := media.Schema.Value.VisitJSON(v, openapi3.VisitAsRequest(), openapi3.MultiErrors()); err != nil {
		k.violate("request %s: %s", x.Op, shorten(err))
	}
	// A misspelt field passes the description, which allows further fields.
	if o, isObj := v.(map[string]any); isObj && len(media.Schema.Value.Properties) > 0 {
		for name := range o {
			if media.Schema.Value.Properties[name] == nil {
				k.violate("request %s: the field %q is not known to GitHub", x.Op, name)
			}
		}
	}
}

// byWords brings a request that GitHub's description allows in its words alone,
// and that go-github sends, into the form that its schema has: a bare list of
// labels; a reply, for which "all parameters other than body are ignored".
func byWords(id string, v any) any {
	switch v := v.(type) {
	case []any:
		if id == "issues/add-labels" || id == "issues/set-labels" {
			return map[string]any{"labels": v}
		}
	case map[string]any:
		if id == "pulls/create-review-comment" && v["in_reply_to"] != nil {
			filled := map[string]any{"commit_id": strings.Repeat("0", 40), "path": "-"}
			for name, value := range v {
				filled[name] = value
			}
			return filled
		}
	}
	return v
}

func (k *Contract) checkAnswer(op *openapi3.Operation, x exchange.Exchange) {
	k.count(Counts{Answers: 1})
	resp := op.Responses.Status(x.Status)
	if resp == nil {
		if x.Status < 400 {
			k.violate("answer of %s: GitHub never says %d", x.Op, x.Status)
		}
		return // any operation may be refused with 401, 403, 404, 422 or 5xx
	}
	media := resp.Value.Content.Get("application/json")
	if media == nil || media.Schema == nil || !strings.HasPrefix(x.Header.Get("Content-Type"), "application/json") {
		return
	}
	var v any
	if err := json.Unmarshal(x.Answer, &v); err != nil {
		k.violate("answer of %s: %v", x.Op, err)
		return
	}
	if x.Header.Get("X-GitHub-Api-Version-Selected") == exchange.NewVersion { // the descriptions are of the old one
		exchange.Removed(v, restore)
	}
	err := media.Schema.Value.VisitJSON(v, openapi3.VisitAsResponse(), openapi3.MultiErrors())
	if err != nil && x.Status == http.StatusUnprocessableEntity {
		return // described with one of three forms, sent with another
	}
	if err != nil {
		k.violate("answer %d of %s: %s", x.Status, x.Op, shorten(err))
	}
}

// restore puts a removed field back in.
func restore(o map[string]any, key string) {
	switch key {
	case "has_downloads":
		o[key] = false
	case "rate":
		o[key] = map[string]any{"limit": 1.0, "used": 0.0, "remaining": 1.0, "reset": 0.0}
	default:
		o[key] = nil
	}
}

// shorten keeps the ends of schema errors, which say what is wrong and where.
func shorten(err error) string {
	var out []string
	var walk func(error)
	walk = func(err error) {
		var multi openapi3.MultiError
		if errors.As(err, &multi) {
			for _, e := range multi {
				walk(e)
			}
			return
		}
		var se *openapi3.SchemaError
		if errors.As(err, &se) {
			if se.Origin != nil {
				walk(se.Origin)
				return
			}
			out = append(out, "/"+strings.Join(se.JSONPointer(), "/")+": "+se.Reason)
			return
		}
		out = append(out, err.Error())
	}
	walk(err)
	sort.Strings(out)
	return strings.Join(slices.Compact(out), "; ")
}

func (k *Contract) schema(event, action string) (*jsonschema.Schema, string, error) {
	name := event
	if action != "" {
		name += "." + action
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	def := k.events[name]
	if def == "" {
		return nil, name, errors.New("GitHub has no such event")
	}
	if s := k.schemas[def]; s != nil {
		return s, name, nil
	}
	s, err := k.compiler.Compile(k.baseURL + "#/$defs/" + def)
	k.schemas[def] = s
	return s, name, err
}

// Webhook checks a payload.
func (k *Contract) Webhook(event, action string, payload []byte) {
	if event == "status" || event == "merge_group" {
		return // the events of the App's that the kept descriptions do not hold
	}
	k.count(Counts{Webhooks: 1})
	s, name, err := k.schema(event, action)
	if err != nil {
		k.violate("webhook %s: %v", name, err)
		return
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(payload))
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil {
		k.violate("webhook %s: %v", name, err)
	}
}

// GraphQL checks a document against the schema.
func (k *Contract) GraphQL(query string) {
	k.count(Counts{Documents: 1})
	if _, list := gqlparser.LoadQueryWithRules(k.graphql, query, nil); len(list) > 0 {
		k.violate("GraphQL: %v in %s", list, strings.Join(strings.Fields(query), " "))
	}
}
