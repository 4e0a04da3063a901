package settings

import (
	"encoding/json"
	"reflect"

	"forge/pipeline/config"
)

// Schema returns the JSON schema (draft 2020-12) of .github/forge.yml, for
// editors. It is made from the Go types, the rules that the reader checks by, and
// the defaults.
func Schema() []byte {
	top := schemaOf(reflect.TypeFor[config.Config](), "", reflect.ValueOf(config.Default()))
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["title"] = "Forge: .github/forge.yml"
	out, err := json.MarshalIndent(top, "", "  ")
	if err != nil {
		panic("settings: the schema is not JSON: " + err.Error()) // unreachable: made of maps and texts
	}
	return append(out, '\n')
}

// schemaOf describes a type that stands at key.
func schemaOf(t reflect.Type, key string, value reflect.Value) map[string]any {
	r := ruleOf(key)
	out := map[string]any{}
	if r.doc != "" {
		out["description"] = r.doc
		if r.unit != "" {
			out["description"] = r.doc + ", in " + r.unit
		}
	}
	switch t.Kind() {
	case reflect.Struct:
		properties := map[string]any{}
		for i := range t.NumField() {
			name := jsonName(t.Field(i))
			properties[name] = schemaOf(t.Field(i).Type, join(key, name), value.Field(i))
		}
		out["type"], out["properties"], out["additionalProperties"] = []string{"object", "null"}, properties, false
	case reflect.Map:
		properties := map[string]any{}
		for _, name := range mapKeys[key] {
			properties[name] = schemaOf(t.Elem(), join(key, name), reflect.Zero(t.Elem()))
		}
		out["type"], out["properties"], out["additionalProperties"] = []string{"object", "null"}, properties, false
	case reflect.Pointer:
		of := schemaOf(t.Elem(), key, reflect.Zero(t.Elem()))
		for _, bound := range []string{"minimum", "maximum"} {
			if r.min == 0 && r.max == 0 {
				delete(of, bound)
			}
		}
		return of
	case reflect.Slice:
		out["type"], out["items"] = "array", map[string]any{"type": "string", "minLength": 1}
		if t.Elem().Kind() == reflect.Struct {
			out["items"] = schemaOf(t.Elem(), key+"[]", reflect.Zero(t.Elem()))
		}
		if r.items > 0 {
			out["maxItems"] = r.items
		}
	case reflect.String:
		out["type"] = "string"
		if t == amountType {
			out["type"] = []string{"string", "number"}
		}
		if len(r.enum) > 0 {
			out["enum"] = r.enum
		}
		switch {
		case r.pattern != "":
			out["pattern"] = r.pattern
		case r.text != nil:
			out["pattern"] = modelName.String()
		}
	case reflect.Bool:
		out["type"] = "boolean"
	default:
		out["type"] = "integer"
		if t.Kind() == reflect.Float64 {
			out["type"] = "number"
		}
		out["minimum"], out["maximum"] = r.min, r.max
	}
	if !value.IsZero() && t.Kind() != reflect.Struct && t.Kind() != reflect.Map {
		out["default"] = value.Interface()
	}
	return out
}
