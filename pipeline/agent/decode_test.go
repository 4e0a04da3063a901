package agent

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fitSchema has every kind of field.
var fitSchema = object(
	"summary", typed("string", ""),
	"risk", typed("integer", ""),
	"share?", typed("number", ""),
	"needs_human?", typed("boolean", ""),
	"tags?", listOf(typed("string", ""), ""),
	"severity?", oneOf("", "info", "error"),
	"findings?", listOf(object("message", typed("string", ""), "line?", typed("integer", ""), "fix?", object("description", typed("string", ""), "diff?", typed("string", ""))), ""),
)

// TestFit covers what is nearly right and what is not. Every case has the required
// fields s ("summary") and r ("risk") unless it is about them.
func TestFit(t *testing.T) {
	t.Parallel()
	const sr = `"summary":"s","risk":1`
	tests := []struct{ name, in, want string }{
		{"as it should be", `{` + sr + `,"findings":[{"message":"m","line":3}]}`, `{"findings":[{"line":3,"message":"m"}],"risk":1,"summary":"s"}`},
		{"unknown fields", `{` + sr + `,"verdict":"x","findings":[{"message":"m","fingerprint":"f"}]}`, `{"findings":[{"message":"m"}],"risk":1,"summary":"s"}`},
		{"integer in a string", `{"summary":"s","risk":" 12 "}`, `{"risk":12,"summary":"s"}`},
		{"integer with a fraction", `{"summary":"s","risk":12.5}`, `{"risk":12,"summary":"s"}`},
		{"integer with a fraction in a string", `{"summary":"s","risk":"12.5"}`, `{"risk":12,"summary":"s"}`},
		{"integer as a share", `{"summary":"s","risk":"80%"}`, `{"risk":80,"summary":"s"}`},
		{"number in a string", `{` + sr + `,"share":"0.8"}`, `{"risk":1,"share":0.8,"summary":"s"}`},
		{"number as a percentage", `{` + sr + `,"share":"80 %"}`, `{"risk":1,"share":0.8,"summary":"s"}`},
		{"boolean in a string", `{` + sr + `,"needs_human":"True"}`, `{"needs_human":true,"risk":1,"summary":"s"}`},
		{"boolean in words", `{` + sr + `,"needs_human":"no"}`, `{"needs_human":false,"risk":1,"summary":"s"}`},
		{"boolean as a number", `{` + sr + `,"needs_human":1}`, `{"needs_human":true,"risk":1,"summary":"s"}`},
		{"text as a number", `{"summary":12,"risk":1}`, `{"risk":1,"summary":"12"}`},
		{"text in a list", `{"summary":["s"],"risk":[1],"needs_human":[true]}`, `{"needs_human":true,"risk":1,"summary":"s"}`},
		{"list of one", `{` + sr + `,"tags":"a","findings":{"message":"m"}}`, `{"findings":[{"message":"m"}],"risk":1,"summary":"s","tags":["a"]}`},
		{"list in a string", `{` + sr + `,"tags":"[\"a\",\"b\"]","findings":"[{\"message\":\"m\"}]"}`, `{"findings":[{"message":"m"}],"risk":1,"summary":"s","tags":["a","b"]}`},
		{"empty list of texts", `{` + sr + `,"tags":""}`, `{"risk":1,"summary":"s","tags":[]}`},
		{"null in a list", `{` + sr + `,"tags":[null,"a"]}`, `{"risk":1,"summary":"s","tags":["a"]}`},
		{"object in a string", `{` + sr + `,"findings":["{\"message\":\"m\"}"]}`, `{"findings":[{"message":"m"}],"risk":1,"summary":"s"}`},
		{"object as its one text", `{` + sr + `,"findings":[{"message":"m","fix":"do it"}]}`, `{"findings":[{"fix":{"description":"do it"},"message":"m"}],"risk":1,"summary":"s"}`},
		{"names in other spellings", `{"Summary":"s","RISK":1,"needsHuman":true}`, `{"needs_human":true,"risk":1,"summary":"s"}`},
		{"value of an enum in another case", `{` + sr + `,"severity":" Error"}`, `{"risk":1,"severity":"error","summary":"s"}`},
		{"value that no enum has", `{` + sr + `,"severity":"blocker"}`, `{"risk":1,"severity":"blocker","summary":"s"}`},
		{"null for an optional field", `{` + sr + `,"share":null}`, `{"risk":1,"summary":"s"}`},
		{"misspelt optional field", `{` + sr + `,"tgas":["a"]}`, `{"risk":1,"summary":"s"}`},
		{"wrapped", `{"result":{` + sr + `}}`, `{"risk":1,"summary":"s"}`},
		{"encoded twice", `"{\"summary\":\"s\",\"risk\":1}"`, `{"risk":1,"summary":"s"}`},
		{"fenced", "```json\n{" + sr + "}\n```", `{"risk":1,"summary":"s"}`},
	}
	for _, tt := range tests {
		got, problems := fit(fitSchema, json.RawMessage(tt.in))
		if len(problems) > 0 || string(got) != tt.want {
			t.Errorf("%s: fit(%s) = %s, problems %q; want %s", tt.name, tt.in, got, problems, tt.want)
		}
	}
}

// TestFitProblems checks that everything that is wrong is said at once.
func TestFitProblems(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want []string
		kept string
	}{
		{`{"summary":{"a":1},"risk":"high","share":true,"needs_human":"perhaps","tags":[["a","b"]],"findings":[{"line":"x"},"","m"]}`, []string{
			`findings[0].line: want a whole number, got "x"`,
			`findings[0].message is missing`,
			`findings[1]: want an object, got ""`,
			`needs_human: want true or false, got "perhaps"`,
			`risk: want a whole number, got "high"`,
			`share: want a number, got true`,
			`summary: want a text, got {"a":1}`,
			`tags[0]: want a text, got ["a","b"]`,
		}, `{"findings":[{},{"message":"m"}],"tags":[]}`},
		{`{}`, []string{"risk is missing", "summary is missing"}, `{}`},
		{`{"summary":null,"risk":null}`, []string{"risk is missing", "summary is missing"}, `{}`},
		{`{"sumary":"s","risk":1}`, []string{`unknown field "sumary" (did you mean "summary"?)`}, `{"risk":1}`},
		{`{"summary":"s","risk":1e999}`, []string{"risk: want a whole number, got 1e999"}, `{"summary":"s"}`},
		{`{"summary":"s","risk":1,"findings":""}`, []string{"findings: want a list, got an empty text"}, `{"risk":1,"summary":"s"}`},
		{`{"summary":"s","risk":1,"findings":[5]}`, []string{"findings[0]: want an object, got 5"}, `{"findings":[],"risk":1,"summary":"s"}`},
	}
	for _, tt := range tests {
		got, problems := fit(fitSchema, json.RawMessage(tt.in))
		slices.Sort(problems)
		if d := cmp.Diff(tt.want, problems); d != "" || string(got) != tt.kept {
			t.Errorf("fit(%s) = %s, want %s; problems (-want +got):\n%s", tt.in, got, tt.kept, d)
		}
	}
	for _, in := range []string{``, `{"summary": "cut o`, `[]`, `5`, `"text"`, `{} {}`, "```json\n{", `null`} {
		if got, problems := fit(fitSchema, json.RawMessage(in)); got != nil || len(problems) != 1 || !strings.Contains(problems[0], "no complete JSON object") {
			t.Errorf("fit(%s) = %s, %q; want no object and one problem", in, got, problems)
		}
	}
	many := `{"summary":"s","risk":1,"findings":[` + strings.Repeat(`5,`, 40) + `5]}`
	if _, problems := fit(fitSchema, json.RawMessage(many)); len(problems) != maxProblems+1 || problems[maxProblems] != "and 21 more like these" {
		t.Errorf("41 problems are told as %d: %q", len(problems), problems)
	}
	if _, problems := fitTool(fitSchema, json.RawMessage(`{"summary":"s","risk":1,"tgas":["a"],"note":"x"}`)); len(problems) != 1 || !strings.Contains(problems[0], `"tgas" (did you mean "tags"?)`) {
		t.Errorf("a tool's misspelt field gives %q", problems)
	}
}

// FuzzFit checks that whatever a model writes comes out in the schema's form: it
// decodes, and fits again without a change.
func FuzzFit(f *testing.F) {
	f.Add(`{"summary":["s"],"risk":"12.5","findings":{"message":"m","fix":"x"}}`)
	f.Add(`"{\"a\":1}"`)
	f.Fuzz(func(t *testing.T, in string) {
		got, problems := fit(fitSchema, json.RawMessage(in))
		if got == nil {
			if len(problems) == 0 {
				t.Fatalf("fit(%q) gives neither an object nor a problem", in)
			}
			return
		}
		var out struct {
			Summary    string
			Risk       int
			Share      float64
			NeedsHuman bool `json:"needs_human"`
			Tags       []string
			Severity   string
			Findings   []struct {
				Message string
				Line    int
				Fix     *struct{ Description, Diff string }
			}
		}
		if err := decode(got, &out); err != nil {
			t.Fatalf("fit(%q) = %s, which does not decode: %v", in, got, err)
		}
		if again, _ := fit(fitSchema, got); string(again) != string(got) {
			t.Fatalf("fit(%q) = %s, and once more %s", in, got, again)
		}
	})
}
