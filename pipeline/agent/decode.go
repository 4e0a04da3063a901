package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline/text"
)

// maxProblems caps how many problems with one call a model is told.
const maxProblems = 20

// fit brings the arguments of a call into the form that its schema asks for, so
// that an answer that is nearly right is taken. It returns them as an object of
// that form and, all at once, a sentence for each thing that is wrong, written for
// the model. The object is nil when the arguments are no JSON object at all;
// otherwise it holds everything that could be read, also when there are problems.
//
// What is taken as meant:
//
//	"12", 12.0, 12.5      where an integer is wanted: 12
//	"0.8", "80%"          where a number is wanted: 0.8
//	"true", "yes", 1      where a boolean is wanted: true
//	12, true, ["x"]       where a string is wanted: "12", "true", "x"
//	"x", {…}              where a list is wanted: a list of one
//	"x"                   where an object with one required string is wanted: that string
//	"[…]", "{…}"          where a list or an object is wanted: the JSON in the string
//	needsHuman, NeedsHuman, needs-human   for needs_human
//	{"result": {…}}       around the object that is wanted
//	null                  for an optional field: the field is absent
//
// Fields that the schema does not name are left out. A required field that is
// absent or null is a problem: an answer that was cut off must not pass for one
// that found nothing. A value that is not in an enum stays as it is, with a value
// of the enum in its place where only case and space differ: the role decides.
func fit(schema map[string]any, args json.RawMessage) (json.RawMessage, []string) {
	return (&fitter{}).arguments(schema, args)
}

// fitTool is fit for a tool that changes something. A field whose name is almost that of
// an optional field is a problem, too: without that field the tool would do something else.
func fitTool(schema map[string]any, args json.RawMessage) (json.RawMessage, []string) {
	return (&fitter{strict: true}).arguments(schema, args)
}

// fitter collects what is wrong.
type fitter struct {
	strict   bool // a misspelt optional name is a problem
	problems []string
}

func (f *fitter) problem(format string, args ...any) {
	f.problems = append(f.problems, fmt.Sprintf(format, args...))
}

func (f *fitter) arguments(schema map[string]any, args json.RawMessage) (json.RawMessage, []string) {
	value, ok := parseObject(args)
	if !ok {
		return nil, []string{"the arguments are no complete JSON object; the answer may have been cut off, so be shorter or take smaller steps"}
	}
	object := f.object("", schema, unwrap(schema, value))
	out, err := json.Marshal(object)
	if err != nil { // unreachable: it came out of JSON
		return nil, []string{"the arguments do not fit: " + err.Error()}
	}
	if extra := len(f.problems) - maxProblems; extra > 0 {
		f.problems = append(f.problems[:maxProblems], fmt.Sprintf("and %d more like these", extra))
	}
	return out, f.problems
}

// parseObject reads a JSON object, also one that is a string in JSON or stands in
// a fence.
func parseObject(args json.RawMessage) (map[string]any, bool) {
	for range 3 {
		v, err := parseJSON(args)
		if err != nil {
			inner, fenced := bytes.CutPrefix(bytes.TrimSpace(args), []byte("```"))
			inner, closed := bytes.CutSuffix(bytes.TrimPrefix(inner, []byte("json")), []byte("```"))
			if !fenced || !closed {
				return nil, false
			}
			args = inner
			continue
		}
		switch v := v.(type) {
		case map[string]any:
			return v, true
		case string:
			args = json.RawMessage(v)
		default:
			return nil, false
		}
	}
	return nil, false
}

// parseJSON reads one value and keeps numbers as they are written.
func parseJSON(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text after the value")
	}
	return v, nil
}

// unwrap takes away an object around the one that is wanted: one field of another
// name whose value has fields that the schema names.
func unwrap(schema, value map[string]any) map[string]any {
	properties, _ := schema["properties"].(map[string]any)
	if len(value) != 1 {
		return value
	}
	for name, v := range value {
		inner, ok := v.(map[string]any)
		if _, known := properties[name]; known || !ok {
			return value
		}
		for k := range inner {
			if _, known := properties[k]; known {
				return inner
			}
		}
	}
	return value
}

// object fits the fields of an object; path names it, "" for the arguments themselves.
func (f *fitter) object(path string, schema, value map[string]any) map[string]any {
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]string)
	fields, unknown := named(properties, value)
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		at := join(path, name)
		v, ok := fields[name]
		if !ok || v == nil {
			needed, near := slices.Contains(required, name), misspelt(name, unknown)
			switch {
			case near != "" && (needed || f.strict):
				f.problem("unknown field %q (did you mean %q?)", join(path, near), name)
			case needed:
				f.problem("%s is missing", at)
			}
			continue
		}
		property, _ := properties[name].(map[string]any)
		if fitted, ok := f.value(at, property, v); ok {
			out[name] = fitted
		}
	}
	return out
}

// named sorts fields by the names that the schema has for them; unknown are the
// names of the others.
func named(properties, value map[string]any) (fields map[string]any, unknown []string) {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
	}
	fields = map[string]any{}
	for _, k := range slices.Sorted(maps.Keys(value)) {
		if _, ok := properties[k]; ok {
			fields[k] = value[k]
			continue
		}
		meant := ""
		for name := range properties {
			if _, taken := value[name]; !taken && plain(name) == plain(k) {
				meant = name
			}
		}
		if meant == "" {
			unknown = append(unknown, k)
			continue
		}
		fields[meant] = value[k]
	}
	return fields, unknown
}

// misspelt returns the unknown field that is most likely a misspelt name, or "".
func misspelt(name string, unknown []string) string {
	letters := func(s string) string {
		b := []byte(strings.ToLower(s))
		slices.Sort(b)
		return string(b)
	}
	for _, k := range unknown {
		if letters(k) == letters(name) {
			return k
		}
		if len(name) > 3 && len(k) > 3 && k[0] == name[0] && text.Nearest(k, []string{name}) != "" {
			return k
		}
	}
	return ""
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// value fits one value; ok is false when it cannot be read.
func (f *fitter) value(path string, schema map[string]any, v any) (fitted any, ok bool) {
	kind, _ := schema["type"].(string)
	switch kind {
	case "object":
		return f.objectValue(path, schema, v)
	case "array":
		return f.list(path, schema, v)
	case "string":
		fitted, ok = stringOf(schema, v)
	case "integer":
		fitted, ok = integer(v)
	case "number":
		fitted, ok = number(v)
	case "boolean":
		fitted, ok = boolean(v)
	default:
		return v, true
	}
	if !ok {
		want := map[string]string{"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}[kind]
		f.problem("%s: want %s, got %s", path, want, shown(v))
	}
	return fitted, ok
}

// shown is a value for a message, shortened.
func shown(v any) string {
	out, _ := json.Marshal(v) // it came out of JSON
	return text.ClipBytes(string(out), 80)
}

func (f *fitter) objectValue(path string, schema map[string]any, v any) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		return f.object(path, schema, v), true
	case []any:
		if len(v) == 1 {
			return f.objectValue(path, schema, v[0])
		}
	case string:
		if inner, err := parseJSON([]byte(v)); err == nil {
			if m, ok := inner.(map[string]any); ok {
				return f.object(path, schema, m), true
			}
		}
		required, _ := schema["required"].([]string)
		properties, _ := schema["properties"].(map[string]any)
		if len(required) == 1 && strings.TrimSpace(v) != "" {
			if p, _ := properties[required[0]].(map[string]any); p["type"] == "string" {
				return map[string]any{required[0]: v}, true
			}
		}
	}
	f.problem("%s: want an object, got %s", path, shown(v))
	return nil, false
}

func (f *fitter) list(path string, schema map[string]any, v any) (any, bool) {
	items, _ := schema["items"].(map[string]any)
	var in []any
	switch v := v.(type) {
	case []any:
		in = v
	case string:
		inner, err := parseJSON([]byte(v))
		if list, ok := inner.([]any); err == nil && ok {
			in = list
		} else if in = []any{v}; strings.TrimSpace(v) == "" {
			in = nil
			if items["type"] != "string" { // nothing said is not nothing found
				f.problem("%s: want a list, got an empty text", path)
				return nil, false
			}
		}
	default:
		in = []any{v}
	}
	out := []any{}
	for i, item := range in {
		if item == nil {
			continue
		}
		if fitted, ok := f.value(fmt.Sprintf("%s[%d]", path, i), items, item); ok {
			out = append(out, fitted)
		}
	}
	return out, true
}

func stringOf(schema map[string]any, v any) (any, bool) {
	switch v := v.(type) {
	case string:
		enum, _ := schema["enum"].([]string)
		for _, e := range enum {
			if strings.EqualFold(e, strings.TrimSpace(v)) {
				return e, true
			}
		}
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	case []any:
		if len(v) == 1 {
			return stringOf(schema, v[0])
		}
	}
	return nil, false
}

func integer(v any) (any, bool) {
	if s, ok := v.(string); ok {
		v = strings.TrimSuffix(strings.TrimSpace(s), "%")
	}
	n, ok := number(v)
	x, _ := n.(float64)
	if !ok || math.Abs(x) >= 1<<53 {
		return nil, false
	}
	return int64(x), true
}

func number(v any) (any, bool) {
	s, scale := "", 1.0
	switch v := v.(type) {
	case json.Number:
		s = v.String()
	case string:
		s = strings.TrimSpace(v)
		if percent, ok := strings.CutSuffix(s, "%"); ok {
			s, scale = strings.TrimSpace(percent), 100
		}
	case []any:
		if len(v) == 1 {
			return number(v[0])
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return nil, false
	}
	return n / scale, true
}

func boolean(v any) (any, bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case json.Number:
		if v == "0" || v == "1" {
			return v == "1", true
		}
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "true", "yes":
			return true, true
		case "false", "no":
			return false, true
		}
	case []any:
		if len(v) == 1 {
			return boolean(v[0])
		}
	}
	return nil, false
}

// decode reads arguments that fit has brought into form. Its error is for the model.
func decode(args json.RawMessage, into any) error {
	if err := json.Unmarshal(args, into); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("the arguments are no complete JSON object; the answer may have been cut off, so use smaller steps")
		}
		return fmt.Errorf("the arguments do not fit: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}
