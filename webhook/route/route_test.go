package route

import (
	"bytes"
	"encoding/json"
	"testing"
)

const labeled = `{"action":"labeled","issue":{"number":5},"repository":{"id":7,"full_name":"acme/site"}}`

func TestFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ payload, action, repo string }{
		{labeled, "labeled", "acme/site"},
		{`{"repository":{"owner":{"full_name":"no"},"full_name":"a/b"},"action":"x"}`, "x", "a/b"},
		{` { "action" : "x" , "repository" : { "full_name" : "a/b" } } `, "x", "a/b"},
		{`{"issue":{"action":"no","repository":{"full_name":"no"}},"action":"yes"}`, "yes", ""},
		{`{"title":"\"action\":\"no\"","s":"\\","action":"a\u0062\n"}`, "ab\n", ""},
		{`{"\u0061ction":"x"}`, "x", ""},
		{`{"action":null,"n":-1.5e3,"b":true,"repository":null}`, "", ""},
		{`{"action":{"action":"no"},"repository":["full_name","no"]}`, "", ""},
		{`{"l":[1,[2,{"a":"]"}],"}"],"action":"x"}`, "x", ""},
		{`{"action":"first","action":"second"}`, "first", ""},
		{`{}`, "", ""}, {``, "", ""}, {`[]`, "", ""}, {`"action"`, "", ""}, {`{"action"`, "", ""}, {`{"action":`, "", ""},
		{`{"action":"x`, "", ""}, {`{"action":"x","repository":{"full_name":"a/b"`, "x", "a/b"}, {`{"a" 1}`, "", ""}, {`{"a":"\"`, "", ""},
	} {
		if action, repo := Read([]byte(c.payload)); action != c.action || repo != c.repo {
			t.Errorf("Read(%s): got %q, %q; want %q, %q", c.payload, action, repo, c.action, c.repo)
		}
	}
}

// slowRoute is Read by the standard library's decoder.
func slowRoute(payload []byte) (action, repo string) {
	fields := func(data []byte) map[string]json.RawMessage {
		dec := json.NewDecoder(bytes.NewReader(data))
		out := map[string]json.RawMessage{}
		if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
			return out
		}
		for dec.More() {
			key, err := dec.Token()
			var value json.RawMessage
			if err != nil || dec.Decode(&value) != nil {
				break
			}
			if _, twice := out[key.(string)]; !twice {
				out[key.(string)] = value
			}
		}
		return out
	}
	text := func(data json.RawMessage) (s string) {
		if len(data) > 0 && data[0] == '"' {
			_ = json.Unmarshal(data, &s)
		}
		return s
	}
	top := fields(payload)
	return text(top["action"]), text(fields(top["repository"])["full_name"])
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{labeled, `{"a":[{"b":"\\\""}],"action":"x"}`, `{"repository":{"x":{},"full_name":"\u00e4/b"}}`, `{"action":1}`, `{`, `{"a":"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		action, repo := Read(payload) // it must come back from any bytes
		if !json.Valid(payload) {
			return
		}
		if a, r := slowRoute(payload); a != action || r != repo {
			t.Errorf("Read(%q): got %q, %q; want %q, %q", payload, action, repo, a, r)
		}
	})
}
