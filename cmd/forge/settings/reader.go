package settings

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"forge/pipeline/config"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
	"forge/pipeline/untrusted"
)

// maxFile is how large a configuration file may be, in bytes.
const maxFile = 64 << 10

// reader fills a Go value from a YAML file and collects every problem on the way.
// It walks the syntax tree itself: the library's strict mode stops at the first
// problem, and does not know which key was meant.
type reader struct {
	name      string
	lines     []string
	root      reflect.Type
	caps      map[string]float64 // by key: the most that the operator allows
	set       map[string]bool    // the keys that the file sets
	untrusted bool               // the caps are for who may not raise them, not the operator's
	problems  []error
}

// read parses a file into v, a pointer to a struct. Nothing is set when the
// syntax is wrong.
func (r *reader) read(data []byte, v any) {
	r.root = reflect.TypeOf(v).Elem()
	r.set = map[string]bool{}
	if len(data) > maxFile {
		r.problem(nil, "the file has %d bytes; at most %d are read. Remove what is not configuration.", len(data), maxFile)
		return
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF")) // some editors put it before everything
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		r.problem(nil, "the file is UTF-16: save it as UTF-8.")
		return
	}
	r.lines = strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	file, err := untrusted.ParseYAML(data)
	if err != nil {
		r.syntax(err)
		return
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType || doc.Body.Type() == ast.NullType {
			continue
		}
		if body != nil {
			r.problem(doc.Body.GetToken(), "a second document: one file is one document; remove the line with ---")
			return
		}
		body = doc.Body
	}
	if body != nil {
		r.value(body, reflect.ValueOf(v).Elem(), "")
	}
}

func (r *reader) syntax(err error) {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) {
		why := syntax.Message
		if strings.Contains(why, "character '\t'") {
			why = "a tab: indent with spaces, as YAML wants it"
		}
		r.problem(syntax.Token, "%s", why)
		return
	}
	var duplicate *yaml.DuplicateKeyError
	if errors.As(err, &duplicate) {
		r.problem(duplicate.Token, "%s", duplicate.Message)
		return
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	r.problem(nil, "%s", first)
}

// problem notes one problem, with the source line it is on.
func (r *reader) problem(at *token.Token, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if at == nil || at.Position == nil {
		r.problems = append(r.problems, fmt.Errorf("%s: %s", r.name, text))
		return
	}
	p := at.Position
	source := ""
	if p.Line >= 1 && p.Line <= len(r.lines) {
		line := strings.ReplaceAll(r.lines[p.Line-1], "\t", " ")
		if m := secretLine.FindString(line); m != "" {
			line = m + " [not shown]"
		}
		if len(line) > 200 {
			line = strings.ToValidUTF8(line[:200], "") + "…"
		}
		source = fmt.Sprintf("\n%5d | %s\n      | %s^", p.Line, line, strings.Repeat(" ", min(max(p.Column-1, 0), 200)))
	}
	r.problems = append(r.problems, fmt.Errorf("%s:%d:%d: %s%s", r.name, p.Line, p.Column, text, source))
}

// secretLine matches lines whose value may be a secret, or hold one: they are not
// shown.
var secretLine = lazyregexp.New(`(?i)^[\s"'{,-]*[\w-]*(?:(?:secret|key|passw|url|dsn)[\w-]*|token)["']?\s*:`)

func (r *reader) err() error { return errors.Join(r.problems...) }

const notSupported = "anchors (&), aliases (*), merges (<<) and tags (!) are not supported: write the value out"

// value sets v, which stands at key, to what a node says.
func (r *reader) value(n ast.Node, v reflect.Value, key string) {
	switch n.(type) {
	case *ast.NullNode:
		return // a key without a value keeps its default
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		r.problem(n.GetToken(), notSupported)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		r.mapping(n, key, func(name string, at *token.Token, value ast.Node) { r.field(name, at, value, v, key) })
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.Struct {
			r.namedMap(n, v, key)
		} else {
			r.stringMap(n, v, key)
		}
	case reflect.Slice:
		r.list(n, v, key)
	case reflect.Pointer:
		of := reflect.New(v.Type().Elem())
		r.value(n, of.Elem(), key)
		v.Set(of)
	default:
		r.set[key] = true
		if why := setScalar(n, v); why != "" {
			if secretLine.MatchString(key + ":") {
				why = "must be text in quotes"
			}
			r.problem(n.GetToken(), "%s %s", key, why)
		} else if why := check(key, v, r.caps, r.untrusted); why != "" {
			r.problem(n.GetToken(), "%s", why)
		}
	}
}

// mapping calls each for the pairs of a mapping.
func (r *reader) mapping(n ast.Node, key string, each func(name string, at *token.Token, value ast.Node)) {
	m, ok := n.(ast.MapNode)
	if !ok {
		where := "the file"
		if key != "" {
			where = key
		}
		r.problem(n.GetToken(), "%s must hold keys with values, such as %s, not %s", where, example(r.root, key), kind(n))
		return
	}
	seen := map[string]bool{}
	for it := m.MapRange(); it.Next(); {
		k, isText := it.Key().(*ast.StringNode)
		at := it.Key().GetToken()
		switch {
		case it.Key().Type() == ast.MergeKeyType:
			r.problem(at, notSupported)
		case !isText:
			r.problem(at, "a key must be a word, not %s", kind(it.Key()))
		case seen[k.Value]:
			r.problem(at, "the key %q is there twice: remove one", join(key, k.Value))
		default:
			seen[k.Value] = true
			each(k.Value, at, it.Value())
		}
	}
}

// field sets the field of a struct that a key names.
func (r *reader) field(name string, at *token.Token, value ast.Node, v reflect.Value, key string) {
	for i := range v.NumField() {
		if jsonName(v.Type().Field(i)) == name {
			r.value(value, v.Field(i), join(key, name))
			return
		}
	}
	r.unknown(name, at, keysOf(v.Type()), key)
}

func (r *reader) unknown(name string, at *token.Token, known []string, key string) {
	hint := "the keys here are " + strings.Join(known, ", ")
	if file := name + "_file"; slices.Contains(known, file) {
		hint = fmt.Sprintf("it is read from a file of its own; name that file with %q", file)
	} else if near := text.Nearest(name, known); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if elsewhere := findKey(r.root, name); elsewhere != "" {
		hint = fmt.Sprintf("it belongs at %s", elsewhere)
	}
	where := ""
	if key != "" {
		where = " in " + key
	}
	r.problem(at, "unknown key %q%s: %s", name, where, hint)
}

// stringMap sets a map of role to text.
func (r *reader) stringMap(n ast.Node, v reflect.Value, key string) {
	fresh := reflect.MakeMap(v.Type())
	for it := v.MapRange(); it.Next(); {
		fresh.SetMapIndex(it.Key(), it.Value()) // the map given as default is not ours to change
	}
	own := ruleOf(key)
	r.mapping(n, key, func(name string, at *token.Token, value ast.Node) {
		item := reflect.New(v.Type().Elem()).Elem()
		if own.names != nil {
			r.ownName(name, at, value, item, key)
		} else if known := mapKeys[key]; nearestExact(name, known) == "" {
			r.unknown(name, at, known, key)
			return
		} else {
			r.value(value, item, join(key, name))
		}
		if item.String() != "" {
			fresh.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), item)
		}
	})
	v.Set(fresh)
}

// ownName sets an entry of a map whose names are people's own.
func (r *reader) ownName(name string, at *token.Token, value ast.Node, item reflect.Value, key string) {
	of := ruleOf(key)
	if why := of.names(name); why != "" || name == "" {
		r.problem(at, "a key in %s %s", key, why)
	} else if why := setScalar(value, item); why != "" {
		r.problem(value.GetToken(), "%s %s", join(key, name), why)
	} else if why := of.text(item.String()); why != "" {
		r.problem(value.GetToken(), "%s %s", join(key, name), why)
	}
}

// namedMap sets a map of names to what is said of each.
func (r *reader) namedMap(n ast.Node, v reflect.Value, key string) {
	fresh := reflect.MakeMap(v.Type())
	r.mapping(n, key, func(name string, at *token.Token, value ast.Node) {
		if why := namedBy[key](name); why != "" || name == "" {
			r.problem(at, "a key in %s %s", key, why)
			return
		}
		item := reflect.New(v.Type().Elem()).Elem()
		r.value(value, item, join(key, name))
		fresh.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), item)
	})
	v.Set(fresh)
}

// list sets a list of texts.
func (r *reader) list(n ast.Node, v reflect.Value, key string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		r.problem(n.GetToken(), "%s must be a list, not %s: put \"- \" before each entry", key, kind(n))
		return
	}
	r.set[key] = true
	if most := ruleOf(key).items; most > 0 && len(seq.Values) > most {
		r.problem(n.GetToken(), "%s has %d entries; at most %d are allowed", key, len(seq.Values), most)
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, len(seq.Values))
	var nodes []ast.Node
	for i, item := range seq.Values {
		one := reflect.New(v.Type().Elem()).Elem()
		at := fmt.Sprintf("%s[%d]", key, i)
		if _, empty := item.(*ast.NullNode); empty {
			r.problem(item.GetToken(), "%s is empty: remove it", at)
			continue
		}
		if _, keys := item.(ast.MapNode); !keys && one.Kind() == reflect.Struct {
			r.problem(item.GetToken(), "%s must hold keys with values, such as %s: …, not %s", at, keysOf(one.Type())[0], kind(item))
			continue
		}
		if one.Kind() == reflect.Struct {
			r.value(item, one, at)
			out, nodes = reflect.Append(out, one), append(nodes, item)
			continue
		}
		if why := setScalar(item, one); why != "" {
			r.problem(item.GetToken(), "%s %s", at, why)
		} else if why := ruleOf(key).item(one.String()); why != "" {
			r.problem(item.GetToken(), "%s %s", at, why)
		}
		out = reflect.Append(out, one)
	}
	v.Set(out)
	if gates, is := v.Interface().([]config.Quality); is {
		r.gates(nodes, gates)
	}
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	amountType   = reflect.TypeFor[config.Amount]()
)

// setScalar sets v from a scalar node; the answer says what is wrong.
func setScalar(n ast.Node, v reflect.Value) string {
	text := ""
	switch n := n.(type) {
	case *ast.StringNode:
		text = n.Value
	case *ast.LiteralNode:
		text = n.Value.Value
	}
	isText := n.Type() == ast.StringType || n.Type() == ast.LiteralType
	switch {
	case v.Type() == durationType:
		if !isText {
			return "must be a time with its unit, such as 1s or 500ms, not " + kind(n)
		}
		return parseText(text, v)
	case v.Type() == amountType && (n.Type() == ast.IntegerType || n.Type() == ast.FloatType):
		v.SetString(n.GetToken().Value)
		return ""
	case v.Kind() == reflect.String:
		if !isText {
			return "must be text, not " + kind(n) + ": put it in quotes"
		}
		v.SetString(text)
		return ""
	case v.Kind() == reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			return "must be true or false, not " + kind(n)
		}
		v.SetBool(b.Value)
		return ""
	}
	number := n.Type() == ast.IntegerType || v.Kind() == reflect.Float64 && n.Type() == ast.FloatType
	if !number {
		if v.Kind() == reflect.Float64 {
			return "must be a number, not " + kind(n)
		}
		return "must be a whole number, not " + kind(n)
	}
	switch n := n.(type) {
	case *ast.IntegerNode:
		return setInteger(n.Value, v)
	case *ast.FloatNode:
		v.SetFloat(n.Value)
	}
	return ""
}

func setInteger(value any, v reflect.Value) string {
	switch i := value.(type) {
	case int64:
		if v.Kind() == reflect.Float64 {
			v.SetFloat(float64(i))
		} else {
			v.SetInt(i)
		}
		return ""
	case uint64:
		if v.Kind() == reflect.Float64 {
			v.SetFloat(float64(i))
			return ""
		}
		if i <= math.MaxInt64 {
			v.SetInt(int64(i))
			return ""
		}
	}
	return fmt.Sprintf("is too large a number: %v", value)
}

// parseText sets v from the text of an environment variable or a duration.
func parseText(text string, v reflect.Value) string {
	switch {
	case v.Type() == durationType:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Sprintf("must be a time with its unit, such as 1s or 500ms, not %q", text)
		}
		v.SetInt(int64(d))
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Sprintf("must be true or false, not %q", text)
		}
		v.SetBool(b)
	case v.Kind() == reflect.Int64 || v.Kind() == reflect.Int:
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Sprintf("must be a whole number, not %q", text)
		}
		v.SetInt(i)
	case v.Kind() == reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Sprintf("must be a number, not %q", text)
		}
		v.SetFloat(f)
	}
	return ""
}

// kind names what a node is, for people.
func kind(n ast.Node) string {
	switch n.Type() {
	case ast.StringType, ast.LiteralType:
		text := n.GetToken().Value
		if len(text) > 40 {
			text = strings.ToValidUTF8(text[:40], "") + "…"
		}
		return fmt.Sprintf("the text %q", text)
	case ast.IntegerType, ast.FloatType, ast.BoolType, ast.InfinityType, ast.NanType:
		return n.GetToken().Value
	case ast.MappingType, ast.MappingValueType:
		return "keys with values"
	case ast.SequenceType:
		return "a list"
	case ast.NullType:
		return "nothing"
	}
	return "this"
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}
