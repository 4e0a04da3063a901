package untrusted

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

var readers = map[string]func([]byte, any) error{"YAML": YAML, "TOML": TOML, "JSON": JSON,
	"YAML's tree": func(content []byte, _ any) error { _, err := ParseYAML(content); return err }}

func repeat(s string, n int) string { return strings.Repeat(s, n) }

// staircase is YAML whose lines are each indented more than the one before.
func staircase(mark string, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(repeat(" ", i) + mark + "\n")
	}
	return b.String()
}

// Covers S30: each of these ends the program or takes all of its memory when a parser sees it.
func TestHostileIsRefused(t *testing.T) {
	t.Parallel()
	long := repeat("k", 100_000)
	for name, c := range map[string]struct{ form, text, want string }{
		"brackets":         {"TOML", "a = " + repeat("[", 3<<20), "nested"},
		"closed":           {"TOML", "a = " + repeat("[", 1<<20) + repeat("]", 1<<20), "nested"},
		"in lines":         {"TOML", "a = " + repeat("[\n", 1<<20), "nested"},
		"inline tables":    {"TOML", "a = " + repeat("{a=", 1<<20), "nested"},
		"dotted keys":      {"TOML", repeat("a.", 1<<20) + "a = 1", "nested"},
		"quoted keys":      {"TOML", repeat(`"a".`, 1<<20) + "a = 1", "nested"},
		"a header":         {"TOML", "[" + repeat("a.", 1<<20) + "a]", "nested"},
		"a header of many": {"TOML", "\t [[" + repeat("a . 'b' . ", 1<<19) + "a]]", "nested"},
		"dots in tables":   {"TOML", "a = " + repeat("{"+repeat("a.", 60)+"a=", 10), "nested"},
		"behind a quote":   {"TOML", `a = """x""""` + "\nb = " + repeat("[", 1<<20), "nested"},
		"between quotes":   {"TOML", "a = " + repeat(`["]", `, 1<<19), "nested"},
		"escaped":          {"TOML", "a = " + repeat(`["\"]", `, 1<<19), "nested"},
		"literal":          {"TOML", "a = " + repeat(`['\', "]", `, 1<<19), "nested"},
		"behind a comment": {"TOML", "a = " + repeat("[ # ]\n", 1<<19), "nested"},
		"a long header":    {"TOML", "[" + long + "]\n" + repeat("a=1\n", 2000), "too long keys"},
		"a long key":       {"TOML", long + " = [" + repeat("{a=1},", 2000) + "]", "too long keys"},
		"TOML of 11 MB":    {"TOML", repeat("#", 11<<20), "bytes"},

		"flow":               {"YAML", "a: " + repeat("[", 60_000), "nested"},
		"flow, closed":       {"YAML", "a: " + repeat("[", 20_000) + repeat("]", 20_000), "nested"},
		"flow in lines":      {"YAML", "a: " + repeat("[\n", 60_000), "nested"},
		"maps":               {"YAML", "a: " + repeat("{a: ", 20_000), "nested"},
		"a sequence":         {"YAML", repeat("- ", 60_000) + "a", "nested"},
		"stairs":             {"YAML", staircase("a:", 500), "nested"},
		"stairs of lists":    {"YAML", staircase("-", 500), "nested"},
		"tags":               {"YAML", "a: " + repeat("!!str ", 60_000) + "a", "nested"},
		"tags in flow":       {"YAML", "a: [" + repeat("!!str ", 60_000) + "a]", "nested"},
		"tags in lines":      {"YAML", repeat("!!str\n", 20_000) + "a", "nested"},
		"YAML in quotes":     {"YAML", "a: " + repeat(`["]", `, 10_000), "nested"},
		"over lines":         {"YAML", "{a: \"x\n , \", b: " + repeat("[", 60_000) + `, c: "y"}`, "nested"},
		"after a literal":    {"YAML", "a: |\n  \"\nb: " + repeat("[", 60_000), "nested"},
		"after an error":     {"YAML", "a: }]\nb: " + repeat("[", 60_000), "nested"},
		"YAML's tree":        {"YAML's tree", "a: " + repeat("[", 60_000), "nested"},
		"YAML's long key":    {"YAML", long + ": [" + repeat("a,", 30_000) + "]", "too long keys"},
		"a long key above":   {"YAML", long + ":\n" + repeat("- a\n", 30_000), "too long keys"},
		"aliases":            {"YAML", "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n", "aliases"},
		"an alias of blocks": {"YAML", "a: &a\n  - x\nb: &b\n  c: d\n  e: *a\n", "aliases"},
		"an alias of itself": {"YAML", "a: &a [*a]", "aliases"},
		"an alias above":     {"YAML", "&a\nb: *a\n", "aliases"},
		"many aliases":       {"YAML", "a: &a x\nb:\n" + repeat("- *a\n", 101), "aliases"},
		"many values":        {"YAML", "a: [" + repeat("a,", 35_000) + "]", "too many values"},
		"YAML of 11 MB":      {"YAML", "a: " + repeat("a", 11<<20), "bytes"},

		"JSON":            {"JSON", repeat("[", 1<<20), "nested"},
		"JSON in quotes":  {"JSON", repeat(`["]",`, 1<<19), "nested"},
		"objects":         {"JSON", repeat(`{"a":`, 1<<19), "nested"},
		"JSON's long key": {"JSON", `{"` + long + `":{` + repeat(`"a":1,`, 2000) + `"b":1}}`, "too long keys"},
		"JSON of 11 MB":   {"JSON", repeat(" ", 11<<20), "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			var v map[string]any
			err := readers[c.form]([]byte(c.text), &v)
			if err == nil || !strings.HasPrefix(err.Error(), "the file") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s(%.60q) = %v; want the file refused: %q", c.form, c.text, err, c.want)
			}
		})
	}
}

// Lock files in TOML and JSON as large as they come are read, and what else people write.
func TestRealIsRead(t *testing.T) {
	t.Parallel()
	var pnpm, uv, npm strings.Builder
	pnpm.WriteString("lockfileVersion: '9.0'\n\nsettings:\n  autoInstallPeers: true\n\npackages:\n")
	npm.WriteString(`{"name":"a","lockfileVersion":3,"packages":{`)
	for i := range 3000 {
		if i < 400 { // a file that a person wrote
			fmt.Fprintf(&pnpm, "\n  '@scope%d/name%d@1.2.%d':\n    resolution: {integrity: sha512-%s==}\n    engines: {node: '>=6.9.0', npm: '>= 3.*'}\n    deprecated: \"don't: see [1\"\n"+
				"    peerDependencies:\n      a: ^1.0.0 || ^2.0.0\n", i%100, i, i, repeat("Ab+/", 21))
		}
		fmt.Fprintf(&uv, "[[package]]\nname = \"a%d\"\nversion = \"1.2.3\"\nsource = { registry = \"https://pypi.org/simple\" }\nwheels = [\n"+
			"    { url = \"https://files.example.com/a%d.whl\", hash = \"sha256:%s\", size = 100 },\n]\n\n[package.metadata]\nrequires-dist = [{ name = \"[\" }]\n\n", i, i, repeat("ab", 32))
		fmt.Fprintf(&npm, `"node_modules/@scope/name%d":{"version":"1.2.3","resolved":"https://registry.npmjs.org/a/-/a-%d.tgz","integrity":"sha512-%s==","deprecated":"a [ \" {","engines":{"node":">=6"}},`,
			i, i, repeat("Ab+/", 21))
	}
	npm.WriteString(`"":{}}}`)
	for name, c := range map[string]struct{ form, text string }{
		"long.yaml":         {"YAML", pnpm.String()},
		"uv.lock":           {"TOML", uv.String()},
		"package-lock.json": {"JSON", npm.String()},
		"99 deep":           {"TOML", "a = " + repeat("[", 99) + repeat("]", 99)},
		"JSON, 99 deep":     {"JSON", `{"a":` + repeat("[", 98) + repeat("]", 98) + "}"},
		"YAML, 90 deep":     {"YAML", "a: " + repeat("[", 90) + repeat("]", 90)},
		"YAML, 50 stairs":   {"YAML", staircase("a:", 50)},
		"strings":           {"TOML", "a = \"\"\"x [ \\\" [\"\"\"\"\"\nb = '''[ ' '' ['''\nc = '['\nd = \"\\\"[\"\ne = ''\nf.g = [1.5, 2.5]\n# [[[ '\n[h.\"[.]\".i] # ' [\nj = 1979-05-27T07:32:00Z\n"},
		"aliases":           {"YAML", "a: &a {x: 1}\nb: *a\nc:\n  <<: *a\n  d: &d e\nf: [*d, *a]\n"},
		"a workflow":        {"YAML", "on: [push]\njobs:\n  a:\n    steps:\n      - run: |\n          if [[ \"$a\" == '[' ]]; then echo \"{\"; fi\n      - uses: a/b@v1 # it's [\n        with: {a: \"{{ b }}\"}\n"},
		"none":              {"YAML", ""},
		"a word":            {"JSON", `"a"`},
	} {
		var v any
		into := any(&v)
		if c.form == "TOML" {
			into = &map[string]any{}
		}
		if err := readers[c.form]([]byte(c.text), into); err != nil {
			t.Errorf("%s: %s of %d bytes: %v", name, c.form, len(c.text), err)
		}
	}
	var want, got any
	if err := json.Unmarshal([]byte(npm.String()), &want); err != nil {
		t.Fatal(err)
	}
	if err := JSON([]byte(npm.String()), &got); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("JSON reads something else: %v", err)
	}
}

func TestPanicIsAnError(t *testing.T) {
	t.Parallel()
	err := func() (err error) {
		defer recovered("YAML", &err)
		panic("x")
	}()
	if err == nil || err.Error() != "the file cannot be read as YAML" {
		t.Errorf("err = %v", err)
	}
}

// deep is how deep a value nests.
func deep(v any) int {
	most := 0
	switch v := v.(type) {
	case map[string]any:
		for _, in := range v {
			most = max(most, 1+deep(in))
		}
	case []any:
		for _, in := range v {
			most = max(most, 1+deep(in))
		}
	case []map[string]any:
		for _, in := range v {
			most = max(most, 2+deep(in))
		}
	}
	return most
}

// What passes at a depth nests no deeper: none of the forms has a way around the count.
func FuzzDepth(f *testing.F) {
	for _, s := range []string{
		"a = [[[[[[[[1]]]]]]]]", "a: [[[[[[[[1]]]]]]]]", "- - - - - - - a", "[a.b.c]\nd.e = {f = 1}", `a = """x""""` + "\nb = [[[[[1]]]]]", "a = '''['''''\nb=[[[[[]]]]]", "a: [[[[x]]]]", "- - - - a", "a:\n b:\n  c:\n   d: x",
		"a: |\n  \"\nb: [[[[[[x]]]]]]", "{a: \"x\n , \", b: [[[[[[x]]]]]], c: \"y\"}", `{"a":[[[["]"]]]]}`, `["\"",[[[[[]]]]]]`, "? a\n: - b\n  - ? c\n    : d", "a: !!map {b: !!seq [c]}",
		"a:\n- b:\n  - c:\n    - d:\n      - e", "[a.\"b\".'c']\n[[a.d]]\n\"x\".y.z = [\n[[1]],\n]", "a = [ # ]\n[ # ]\n[1]]]", "a: 'b''[c]'\nd: [[[[['e']]]]]",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 1000 {
			return
		}
		l := limits{1000, 4, 1 << 20}
		content := []byte(s)
		table := map[string]any{}
		if scan(content, true, l) == nil && toml.Unmarshal(content, &table) == nil && deep(table) > 4+3 { // the file itself, and of [[a.b]] the first table and the list
			t.Errorf("TOML %q nests %d deep", s, deep(table))
		}
		var v any
		if scan(content, false, l) == nil && json.Unmarshal(content, &v) == nil && deep(v) > 4 {
			t.Errorf("JSON %q nests %d deep", s, deep(v))
		}
		v = nil
		if checkYAML(content, l, true) == nil && YAML(content, &v) == nil && deep(v) > 4 {
			t.Errorf("YAML %q nests %d deep", s, deep(v))
		}
	})
}
