package settings

import (
	"reflect"
	"strings"
	"testing"

	"forge/pipeline/config"
	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

const allOfAGate = `
quality:
  - {name: bundle, command: npm run -s size, value: number, unit: bytes, max: 500000, min: 1, worse_by: 5%, owner: [architect, developer],
     breakdown: "du -b dist/*.js", block: false, timeout_minutes: 3, repeats: 6, better: lower, from_base: [".size-limit.json"]}
  - {use: coverage-changed, min: 80}
  - {use: go-bench, package: ./..., worse_by: 1000}
  - {name: a11y, command: node axe.js, value: "json:$.violations.length", max: 0}
  - use: sarif
    command: lint > out.sarif
    value: sarif:out.sarif
`

func TestQualityGates(t *testing.T) {
	t.Parallel()
	got, err := Repository(".github/forge.yml", []byte(allOfAGate), config.Default())
	if err != nil {
		t.Fatal(err)
	}
	at := func(f float64) *float64 { return &f }
	no := false
	want := []config.Quality{
		{Name: "bundle", Command: "npm run -s size", Value: "number", Unit: "bytes", Max: at(500000), Min: at(1), WorseBy: "5%", Owner: []string{"architect", "developer"},
			Breakdown: "du -b dist/*.js", Block: &no, TimeoutMinutes: 3, Repeats: 6, Better: "lower", FromBase: []string{".size-limit.json"}},
		{Name: "coverage-changed", Use: "coverage-changed", Min: at(80)},
		{Name: "go-bench", Use: "go-bench", Package: "./...", WorseBy: "1000"},
		{Name: "a11y", Command: "node axe.js", Value: "json:$.violations.length", Max: at(0)},
		{Name: "sarif", Use: "sarif", Command: "lint > out.sarif", Value: "sarif:out.sarif"},
	}
	if d := cmp.Diff(want, got.Quality); d != "" {
		t.Error(d)
	}
	for i := range reflect.TypeFor[config.Quality]().NumField() {
		name := jsonName(reflect.TypeFor[config.Quality]().Field(i))
		if !strings.Contains(allOfAGate, name+":") {
			t.Errorf("%s is not tried out", name)
		}
		if ruleOf("quality[0]."+name).doc == "" {
			t.Errorf("%s has no description", name)
		}
	}
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(allOfAGate), &doc); err != nil {
		t.Fatal(err)
	}
	if err := compileSchema(t).Validate(plain(t, doc)); err != nil {
		t.Errorf("the schema refuses what the reader takes: %v", err)
	}
}

// Each is refused with its key, its line and how to put it right, and leaves no gate behind.
func TestWrongQualityGates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ yaml, want string }{
		{"quality: 5", "1:10: quality must be a list, not 5"},
		{"quality:\n  - go-vet", `2:5: quality[0] must hold keys with values, such as name: …, not the text "go-vet"`},
		{"quality:\n  - use: axe", `2:5: quality[0].command is missing: use: axe needs the command that runs axe and prints its result as JSON, such as npx axe --stdout page.html`},
		{"quality:\n  - use: go-vett", `2:10: quality[0].use is "go-vett"; it must be one of coverage, coverage-changed, go-vet, go-bench, binary-size, sarif, licences, axe (did you mean "go-vet"?)`},
		{"quality:\n  - {name: a, comand: x}", `2:15: unknown key "comand" in quality[0]: did you mean "command"?`},
		{"quality:\n  - {name: A b, command: x, value: number, max: 1}", `quality[0].name is "A b"; use small letters`},
		{"quality:\n  - {command: x, value: number, max: 1}", "2:6: quality[0].name is missing: name the gate"},
		{"quality:\n  - {name: a, command: x, max: 1}", "quality[0].value is missing: say how the value is read"},
		{"quality:\n  - {name: a, value: number, max: 1}", "quality[0].command is missing: name the command"},
		{"quality:\n  - {name: a, command: x, value: numbr, max: 1}", `2:34: quality[0].value is "numbr"; it must be number, lines, exit, json:PATH`},
		{"quality:\n  - {name: a, command: x, value: 'regex:(', max: 1}", "which is no regular expression: error parsing regexp: missing closing )"},
		{"quality:\n  - {name: a, command: x, value: 'regex:(a)(b)', max: 1}", "it must have one group at most"},
		{"quality:\n  - {name: a, command: x, value: 'json:$..a', max: 1}", "after json: stands a path such as $.violations.length"},
		{"quality:\n  - {name: a, value: 'size:../x', max: 1}", "after size: stands a path from the root"},
		{"quality:\n  - {name: a, value: 'size:/etc/passwd', max: 1}", "after size: stands a path from the root"},
		{"quality:\n  - {use: coverage-changed, max: 80, min: 20}", "quality[0].max does not go with use: coverage-changed, of which more is better: set min"},
		{"quality:\n  - {use: coverage, min: 800}", "quality[0].min is out of range: a coverage is from 0 to 100 per cent"},
		{"quality:\n  - {name: a, command: x, value: number, min: 5, better: lower}", "quality[0].better is lower, but min holds it up"},
		{"quality:\n  - {name: a, command: x, value: number}", "quality[0].max is missing: set max, min or worse_by"},
		{"quality:\n  - {name: a, command: x, value: number, max: ten}", "2:47: quality[0].max must be a number, not the text \"ten\""},
		{"quality:\n  - {name: a, command: x, value: number, max: .inf}", "quality[0].max must be a number, not .inf"},
		{"quality:\n  - {name: a, command: x, value: number, max: .nan}", "quality[0].max must be a number, not .nan"},
		{"quality:\n  - {name: a, command: x, value: number, max: 1, min: 2}", "quality[0].max is under min"},
		{"quality:\n  - {name: a, command: x, value: number, worse_by: -5%}", `quality[0].worse_by is "-5%"; it must be a share`},
		{"quality:\n  - {name: a, command: x, value: number, worse_by: NaN%}", `quality[0].worse_by is "NaN%"`},
		{"quality:\n  - {name: a, command: x, value: number, worse_by: 1e999}", `quality[0].worse_by`},
		{"quality:\n  - {name: a, command: x, value: number, worse_by: 5%, repeats: 3}", "quality[0].repeats is 3; it must be from 4 to 50"},
		{"quality:\n  - {name: a, command: x, value: number, max: 1, timeout_minutes: 11}", "quality[0].timeout_minutes is 11, over this server's limit of 10 minutes: lower it, or ask the server's operator to raise tests.timeout_minutes"},
		{"quality:\n  - {name: a, command: x, value: number, max: 1, owner: [boss]}", `quality[0].owner[0] is "boss"; it must be one of analyst`},
		{"quality:\n  - {name: a, command: x, value: number, max: 1, block: maybe}", "quality[0].block must be true or false"},
		{"quality:\n  - {use: go-vet, command: x}", "quality[0].command does not go with use: go-vet"},
		{"quality:\n  - {use: coverage}", "quality[0].max is missing"},
		{"quality:\n  - {use: sarif}", "quality[0].value is missing: use: sarif needs value: sarif:FILE"},
		{"quality:\n  - {use: go-bench, max: 5}", "quality[0].max does not go with use: go-bench"},
		{"quality:\n  - {use: coverage-changed, min: 8, worse_by: 5}", "quality[0].worse_by does not go with use: coverage-changed"},
		{"quality:\n  - {use: go-vet, package: -exec=rm}", `quality[0].package is "-exec=rm"`},
		{"quality:\n  - {use: go-vet, package: \"./a; rm\"}", `quality[0].package is "./a; rm"`},
		{"quality:\n  - use: go-vet\n  - use: binary-size\n    max: 5\n  - use: go-vet\n", `5:5: quality[2].name is "go-vet", which is there already`},
	} {
		got, err := Repository(".github/forge.yml", []byte(c.yaml), config.Default())
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), ".github/forge.yml:") {
			t.Errorf("%s: %v\nwant %s", c.yaml, err, c.want)
		}
		if got.Quality != nil {
			t.Errorf("%s: left %+v", c.yaml, got.Quality)
		}
	}
}
