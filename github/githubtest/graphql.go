package githubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// gqlError is an error as GitHub's GraphQL sends it, with a type.
type gqlError struct {
	Type       string `json:"type,omitempty"`
	Path       []any  `json:"path,omitempty"`
	Extensions obj    `json:"extensions,omitempty"`
	Locations  []obj  `json:"locations,omitempty"`
	Message    string `json:"message"`
}

func (e *gqlError) Error() string { return e.Message }

func forbidden() error {
	return &gqlError{Type: "FORBIDDEN", Message: "Resource not accessible by integration", Extensions: obj{"saml_failure": false}}
}

func noNode(id string) error {
	return &gqlError{Type: "NOT_FOUND", Message: "Could not resolve to a node with the global id of '" + id + "'."}
}

func unprocessable(text string) error { return &gqlError{Type: "UNPROCESSABLE", Message: text} }

type gqlRequest struct {
	Query         string         `json:"query"`
	OperationName string         `json:"operationName"`
	Variables     map[string]any `json:"variables"`
}

// graphQLName is the first field of a mutation, or "query".
func graphQLName(body []byte) string {
	var req gqlRequest
	if json.Unmarshal(body, &req) != nil {
		return ""
	}
	doc, err := parser.ParseQuery(&ast.Source{Input: req.Query})
	if err != nil || len(doc.Operations) == 0 || doc.Operations[0].Operation != ast.Mutation {
		return "query"
	}
	if f, isField := doc.Operations[0].SelectionSet[0].(*ast.Field); isField {
		return f.Name
	}
	return "mutation"
}

// serveGraphQL answers a GraphQL request with the few types that a bot needs.
func (s *Server) serveGraphQL(w http.ResponseWriter, _ *http.Request, c *call) {
	if c.id.kind != identInstallation && c.id.kind != identUser {
		s.write(w, c, fail(http.StatusUnauthorized, "Bad credentials"))
		return
	}
	if c.id.on != nil {
		s.write(w, c, fail(http.StatusNotImplemented, "The GitHub on this machine takes no user token of an App for GraphQL"))
		return
	}
	var req gqlRequest
	if err := json.Unmarshal(c.body, &req); err != nil || req.Query == "" {
		s.write(w, c, fail(http.StatusBadRequest, "A query attribute must be specified and must be a string."))
		return
	}
	if k := s.opts.Contract; k != nil {
		k.GraphQL(req.Query)
	}
	doc, err := parser.ParseQuery(&ast.Source{Input: req.Query})
	if err != nil {
		s.write(w, c, ok(obj{"errors": []gqlError{{Message: err.Error()}}}))
		return
	}
	op := doc.Operations.ForName(req.OperationName)
	if op == nil {
		s.write(w, c, ok(obj{"errors": []gqlError{{Message: "An operation name is required"}}}))
		return
	}
	x := &executor{c: c, doc: doc, vars: map[string]any{}}
	for _, v := range op.VariableDefinitions {
		if v.DefaultValue != nil {
			x.vars[v.Variable] = x.literal(v.DefaultValue)
		}
	}
	for k, v := range req.Variables {
		x.vars[k] = v
	}
	s.mu.Lock()
	var root gqlNode = queryRoot{c}
	if op.Operation == ast.Mutation {
		root = mutationRoot{c}
	}
	data := x.object(root, op.SelectionSet, nil)
	s.touch()
	s.mu.Unlock()
	body := obj{"data": data}
	if len(x.errors) > 0 {
		body["errors"] = x.errors
	}
	a := ok(body)
	a.header = http.Header{"X-Ratelimit-Resource": {"graphql"}}
	s.write(w, c, a)
}

// gqlNode is a thing of the model as GraphQL sees it. get returns a plain value, a
// gqlNode, a []gqlNode, or nil.
type gqlNode interface {
	kind() string
	get(field string, args map[string]any) (any, error)
}

type executor struct {
	c      *call
	doc    *ast.QueryDocument
	vars   map[string]any
	errors []*gqlError
}

func (x *executor) object(n gqlNode, set ast.SelectionSet, path []any) obj {
	out := obj{}
	x.fill(out, n, set, path)
	return out
}

func (x *executor) fill(out obj, n gqlNode, set ast.SelectionSet, path []any) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			if x.skipped(sel.Directives) {
				continue
			}
			key := sel.Alias
			if key == "" {
				key = sel.Name
			}
			value := x.field(n, sel, append(path[:len(path):len(path)], key))
			if old, isObj := out[key].(obj); isObj {
				if more, both := value.(obj); both { // two fragments ask for the same thing
					for k, v := range more {
						old[k] = v
					}
					continue
				}
			}
			out[key] = value
		case *ast.InlineFragment:
			if !x.skipped(sel.Directives) && fits(n, sel.TypeCondition) {
				x.fill(out, n, sel.SelectionSet, path)
			}
		case *ast.FragmentSpread:
			if f := x.doc.Fragments.ForName(sel.Name); f != nil && fits(n, f.TypeCondition) {
				x.fill(out, n, f.SelectionSet, path)
			}
		}
	}
}

func (x *executor) skipped(list ast.DirectiveList) bool {
	for _, d := range list {
		if a := d.Arguments.ForName("if"); a != nil {
			yes, _ := x.literal(a.Value).(bool)
			if d.Name == "skip" && yes || d.Name == "include" && !yes {
				return true
			}
		}
	}
	return false
}

// interfaces are the GraphQL interfaces of the kinds here.
var interfaces = map[string]string{
	"User": "Node Actor", "Bot": "Node Actor", "Organization": "Node Actor",
	"Issue": "Node Comment Labelable", "PullRequest": "Node Comment Labelable",
	"IssueComment": "Node Comment Minimizable Reactable", "PullRequestReviewComment": "Node Comment Minimizable Reactable",
	"PullRequestReview": "Node Comment", "PullRequestReviewThread": "Node", "Repository": "Node",
}

func fits(n gqlNode, condition string) bool {
	return condition == "" || condition == n.kind() || strings.Contains(" "+interfaces[n.kind()]+" ", " "+condition+" ")
}

func (x *executor) field(n gqlNode, f *ast.Field, path []any) any {
	if f.Name == "__typename" {
		return n.kind()
	}
	args := map[string]any{}
	for _, a := range f.Arguments {
		args[a.Name] = x.literal(a.Value)
	}
	value, err := n.get(f.Name, args)
	if err != nil {
		e, isGQL := err.(*gqlError)
		if !isGQL {
			e = &gqlError{Message: err.Error()}
		}
		located := *e
		located.Path = path
		if f.Position != nil {
			located.Locations = []obj{{"line": f.Position.Line, "column": f.Position.Column}}
		}
		x.errors = append(x.errors, &located)
		return nil
	}
	switch v := value.(type) {
	case nil:
		return nil
	case gqlNode:
		return x.object(v, f.SelectionSet, path)
	case []gqlNode:
		list := []any{}
		for i, item := range v {
			list = append(list, x.object(item, f.SelectionSet, append(path[:len(path):len(path)], i)))
		}
		return list
	}
	return value
}

func (x *executor) literal(v *ast.Value) any {
	switch v.Kind {
	case ast.Variable:
		return x.vars[v.Raw]
	case ast.IntValue:
		n, _ := strconv.Atoi(v.Raw) // the parser saw digits
		return n
	case ast.FloatValue:
		f, _ := strconv.ParseFloat(v.Raw, 64)
		return f
	case ast.BooleanValue:
		return v.Raw == "true"
	case ast.NullValue:
		return nil
	case ast.ListValue:
		list := []any{}
		for _, c := range v.Children {
			list = append(list, x.literal(c.Value))
		}
		return list
	case ast.ObjectValue:
		o := obj{}
		for _, c := range v.Children {
			o[c.Name] = x.literal(c.Value)
		}
		return o
	}
	return v.Raw
}

// fields is a gqlNode made of functions.
type fields struct {
	name string
	m    map[string]any // a value, or a func(args) (any, error)
}

func (f fields) kind() string { return f.name }

func (f fields) get(name string, args map[string]any) (any, error) {
	v, known := f.m[name]
	if !known {
		return nil, &gqlError{Message: fmt.Sprintf("The GitHub on this machine does not implement the field '%s' of the type '%s'", name, f.name)}
	}
	switch v := v.(type) {
	case func(map[string]any) (any, error):
		return v(args)
	case func() any:
		return v(), nil
	}
	return v, nil
}

// connection cuts a list of nodes as first, after, last and before ask.
func connection(name string, nodes []gqlNode, args map[string]any) (any, error) {
	first, hasFirst := toInt(args["first"])
	last, hasLast := toInt(args["last"])
	if !hasFirst && !hasLast {
		return nil, &gqlError{Type: "MISSING_PAGINATION_BOUNDARIES",
			Message: "You must provide a `first` or `last` value to properly paginate the `" + name + "` connection."}
	}
	if first > 100 || last > 100 {
		return nil, &gqlError{Type: "EXCESSIVE_PAGINATION",
			Message: fmt.Sprintf("Requesting %d records on the `%s` connection exceeds the `first` limit of 100 records.", max(first, last), name)}
	}
	from, to := 0, len(nodes)
	if after, isText := args["after"].(string); isText && after != "" {
		from = min(to, cursor(after))
	}
	if before, isText := args["before"].(string); isText && before != "" {
		to = max(from, min(to, cursor(before)-1))
	}
	if hasFirst {
		to = min(to, from+first)
	} else {
		from = max(from, to-last)
	}
	cut := nodes[from:to]
	var start, end any
	if len(cut) > 0 {
		start, end = fmt.Sprint("c", from+1), fmt.Sprint("c", to)
	}
	var edges []gqlNode
	for i, n := range cut {
		edges = append(edges, fields{name + "Edge", obj{"cursor": fmt.Sprint("c", from+i+1), "node": n}})
	}
	return fields{name + "Connection", obj{
		"totalCount": len(nodes), "nodes": cut, "edges": edges,
		"pageInfo": fields{"PageInfo", obj{"hasNextPage": to < len(nodes), "hasPreviousPage": from > 0, "startCursor": start, "endCursor": end}},
	}}, nil
}

func cursor(text string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(text, "c")) // zero for nonsense
	return n
}

func toInt(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case float64:
		return int(v), true
	}
	return 0, false
}
