package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"forge/pipeline/config"
	"github.com/BurntSushi/toml"
	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Covers T2, B1, B5, B6, R3 (the configuration decides), R4 and S26.
func TestRepository(t *testing.T) {
	t.Parallel()
	base := config.Default()
	base.Models = map[config.Role]string{"planner": "anthropic/a", "reviewer": "openai/b"}
	base.Paths.Protected = []string{"deploy/**"}
	type change func(*config.Config)
	for _, c := range []struct {
		name, yaml string
		want       change
	}{
		{"empty", "", func(*config.Config) {}},
		{"only comments", "# nothing yet\n", func(*config.Config) {}},
		{"only a separator", "---\n", func(*config.Config) {}},
		{"keys without values", "loop:\nlimits:\n  tokens:\n", func(*config.Config) {}},
		{"numbers", "loop:\n  max_iterations: 8\n  auto_fix_confidence: 1\n", func(c *config.Config) { c.Loop.MaxIterations, c.Loop.AutoFixConfidence = 8, 1 }},
		{"flow style", "loop: {max_iterations: 2, auto_fix_only: false}", func(c *config.Config) { c.Loop.MaxIterations, c.Loop.AutoFixOnly = 2, false }},
		{"lower limits", "limits:\n  cost_usd: 2.5\n  tokens: 1_000_000\n", func(c *config.Config) { c.Limits.CostUSD, c.Limits.Tokens = 2.5, 1_000_000 }},
		{"commands", "tests:\n  commands:\n    - go test ./...\n    - |\n      make a\n      make b\n", func(c *config.Config) {
			c.Tests.Commands = []string{"go test ./...", "make a\nmake b\n"}
		}},
		{"models are merged", "models:\n  planner: openai/llama3:8b\n  tester: anthropic/x\n", func(c *config.Config) {
			c.Models = map[config.Role]string{"planner": "openai/llama3:8b", "reviewer": "openai/b", "tester": "anthropic/x"}
		}},
		{"paths come on top", "paths:\n  protected: [\"db/*.sql\"]\n", func(c *config.Config) { c.Paths.Protected = []string{"db/*.sql", "deploy/**"} }},
		{"stricter mode", "mode: manual\nbreaker:\n  on_max: skip\n  enabled: false\n", func(c *config.Config) {
			c.Mode, c.Breaker.OnMax, c.Breaker.Enabled = "manual", "skip", false
		}},
		{"production", "production: {environments: [prod, staging], ask: true, issue: true, run: true, irreversible: [\"db/**\"]}\n", func(c *config.Config) {
			c.Production = config.Production{Environments: []string{"prod", "staging"}, Ask: true, Issue: true, Run: true, Irreversible: []string{"db/**"}}
		}},
		{"windows line ends", "mode: manual\r\nloop:\r\n  faults: 2\r\n", func(c *config.Config) { c.Mode, c.Loop.Faults = "manual", 2 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := snapshot(base)
			c.want(&want)
			before := snapshot(base)
			got, err := Repository(".github/forge.yml", []byte(c.yaml), base)
			if err != nil {
				t.Fatalf("Repository(%q): %v", c.yaml, err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("Repository(%q) (-want +got):\n%s", c.yaml, d)
			}
			if d := cmp.Diff(before, base); d != "" {
				t.Errorf("Repository(%q) changed base (-before +after):\n%s", c.yaml, d)
			}
		})
	}
}

// Covers lessons 21 and S26, S30: what is wrong is refused, and said.
func TestRepositoryErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, yaml string
		want       []string // all in the error
	}{
		{"typo", "loop:\n  max_iteration: 4\n", []string{
			`.github/forge.yml:2:3: unknown key "max_iteration" in loop: did you mean "max_iterations"?`, "2 |   max_iteration: 4\n      |   ^"}},
		{"top-level typo", "limit:\n  cost_usd: 1\n", []string{`:1:1: unknown key "limit": did you mean "limits"?`}},
		{"wrong level", "max_iterations: 4\n", []string{`unknown key "max_iterations": it belongs at loop.max_iterations`}},
		{"no idea", "loop:\n  colour: red\n", []string{`unknown key "colour" in loop: the keys here are max_iterations, review_bounces`}},
		{"dashes", "loop:\n  max-iterations: 4\n", []string{`did you mean "max_iterations"?`}},
		{"all at once", "mode: atuo\nlimits:\n  cost_usd: -1\n  tokns: 5\ntests:\n  timeout_minutes: ten\n", []string{
			`:1:7: mode is "atuo"; it must be one of auto, manual (did you mean "auto"?)`,
			":3:13: limits.cost_usd is -1; it must be from 0.01 to 10000 USD",
			`:4:3: unknown key "tokns" in limits: did you mean "tokens"?`,
			`:6:20: tests.timeout_minutes must be a whole number, not the text "ten"`}},
		{"confidence", "loop:\n  auto_fix_confidence: 1.1\n", []string{"loop.auto_fix_confidence is 1.1; it must be from 0 to 1"}},
		{"not a number", "loop:\n  auto_fix_confidence: .nan\n", []string{"loop.auto_fix_confidence must be a number, not .nan"}},
		{"infinite", "limits:\n  cost_usd: .inf\n", []string{"limits.cost_usd must be a number, not .inf"}},
		{"fraction", "loop:\n  max_iterations: 2.5\n", []string{"loop.max_iterations must be a whole number, not 2.5"}},
		{"quoted", "loop:\n  max_iterations: \"2\"\n", []string{`loop.max_iterations must be a whole number, not the text "2"`}},
		{"huge", "limits:\n  tokens: 99999999999999999999999\n", []string{"limits.tokens"}},
		{"yes", "breaker:\n  enabled: yes\n", []string{`breaker.enabled must be true or false, not the text "yes"`}},
		{"on_max", "breaker:\n  on_max: stop\n", []string{`breaker.on_max is "stop"; it must be one of manual, error, skip`}},
		{"over the server's cost", "limits:\n  cost_usd: 10.5\n",
			[]string{"limits.cost_usd is 10.5, over this server's limit of 10 USD: lower it, or ask the server's operator to raise limits.cost_usd in forge.yml"}},
		{"over the server's tokens", "limits:\n  tokens: 5000001\n", []string{"over this server's limit of 5000000 tokens"}},
		{"over the server's steps", "limits:\n  steps_per_phase: 101\n", []string{"over this server's limit of 100"}},
		{"over the server's minutes", "limits:\n  wall_minutes: 121\ntests:\n  timeout_minutes: 11\n", []string{"limit of 120 minutes", "limit of 10 minutes"}},
		{"hosts and environment", "openai_base_url: https://evil.example\nenv:\n  A: b\nlisten: \":1\"\n",
			[]string{`unknown key "openai_base_url"`, `unknown key "env"`, `unknown key "listen"`}},
		{"model without provider", "models:\n  planner: opus\n", []string{`models.planner is "opus"; a model is named provider/model, such as anthropic/opus`}},
		{"model of a stranger", "models:\n  planner: evil/x\n", []string{"the provider must be anthropic or openai"}},
		{"model with a host", "models:\n  planner: \"openai/x?h=http://e\"\n", []string{"the model's name may hold"}},
		{"role", "models:\n  reviwer: openai/x\n", []string{`unknown key "reviwer" in models: did you mean "reviewer"?`}},
		{"commands are no text", "tests:\n  commands: make\n", []string{`tests.commands must be a list, not the text "make"`}},
		{"commands hold a map", "tests:\n  commands:\n    - run: make\n", []string{"tests.commands[0] must be text, not keys with values"}},
		{"empty command", "tests:\n  commands: [\"\", ~]\n", []string{"tests.commands[0] is empty", "tests.commands[1] is empty"}},
		{"too many commands", "tests:\n  commands: [" + strings.Repeat("a,", 21) + "]\n", []string{"tests.commands has 21 entries; at most 20 are allowed"}},
		{"long command", "tests:\n  commands: [\"" + strings.Repeat("a", 4001) + "\"]\n", []string{"has 4001 characters"}},
		{"globs", "paths:\n  protected: [\"[a\", \"/etc\", \" \"]\n",
			[]string{"protected[0] is \"[a\", which is no glob", "protected[1] is \"/etc\"; globs are relative", "protected[2] is empty"}},
		{"upstream's values", "upstream:\n  enabled: maybe\n  timeout_minutes: 1441\n  same: -1\n  cost_share: 1.5\n  weaken: agent\n  round: 1\n", []string{
			"upstream.enabled must be true or false", "upstream.timeout_minutes is 1441; it must be from 0 to 1440 minutes",
			"upstream.same is -1; it must be from 0 to 20",
			"upstream.cost_share is 1.5; it must be from 0 to 1", `upstream.weaken is "agent"; it must be one of human`, `unknown key "round" in upstream`}},
		{"setup typo", "setup:\n  command: [make]\n", []string{`:2:3: unknown key "command" in setup: did you mean "commands"?`}},
		{"setup's values", "setup:\n  commands: [\"\", ~]\n  cache: make\n  install: maybe\n", []string{
			":2:14: setup.commands[0] is empty", "setup.commands[1] is empty", "setup.cache must be a list", "setup.install must be true or false"}},
		{"setup's places", "setup:\n  commands: [make]\n  cache:\n    - /var/cache\n    - ../x\n    - a/../../b\n    - .git/hooks\n    - x/.GIT\n    - .\n    - a//b\n    - ~/.m2\n" +
			"    - \"a*\"\n    - $HOME\n    - \"a\\tb\"\n    - a/\n    - " + strings.Repeat("a", 201) + "\n", []string{
			`:4:7: setup.cache[0] is "/var/cache"; paths are relative`, `:5:7: setup.cache[1] is "../x", which leads out`, `:6:7: setup.cache[2] is "a/../../b", which leads out`,
			`:7:7: setup.cache[3] is ".git/hooks"; git's own`, `:8:7: setup.cache[4] is "x/.GIT"; git's own`, ":9:7: setup.cache[5] is empty, or the top",
			`:10:7: setup.cache[6] is "a//b"; write it as "a/b"`, `:11:7: setup.cache[7] is "~/.m2"; paths`, `:12:7: setup.cache[8] is "a*"; it must be one path`,
			`:13:7: setup.cache[9] is "$HOME"`, ":14:7: setup.cache[10] is", `:15:7: setup.cache[11] is "a/"; write it as "a"`,
			":16:7: setup.cache[12] has 201 characters"}},
		{"setup's caches in each other", "setup: {commands: [make], cache: [a/b, a, c, c]}\n", []string{
			`setup.cache[0] is "a/b", which setup.cache[1], "a", holds already`, `setup.cache[3] is "c", which setup.cache[2], "c", holds already`}},
		{"too much of a setup", "setup:\n  commands: [" + strings.Repeat("a,", 21) + "]\n  cache: [" + strings.Repeat("a,", 21) + "]\n", []string{
			"setup.commands has 21 entries; at most 20", "setup.cache has 21 entries; at most 20"}},
		{"production typo", "production:\n  rollback: true\n", []string{`:2:3: unknown key "rollback" in production: did you mean "roll_back"?`}},
		{"shipping that does not go together", "ship: {via: watch, environments: [a, b, a], ask: [c]}\n", []string{
			`ship.environments[2] is "a", which is there already: remove one`, `ship.ask[0] is "c", which is not among ship.environments: add it there`,
			"ship.ask needs ship.via: deployments"}},
		{"shipping in two letter cases", "ship: {environments: [Prod, prod]}\n", []string{`ship.environments[1] is "prod", which is there already`}},
		{"shipping misspelt", "ship:\n  via: deploy\n  merge: fast\n  environment: [a]\n  bake_minutes: 2000\n", []string{
			`ship.via is "deploy"; it must be one of deployments, watch`, `ship.merge is "fast"`, `did you mean "environments"?`, "ship.bake_minutes is 2000; it must be from 0 to 1440 minutes"}},
		{"production with a run without an issue", "production:\n  run: true\n", []string{"production.run is true, but production.issue is not"}},
		{"production's values", "production:\n  ask: maybe\n  environments: [\"\"]\n  irreversible: [/db]\n", []string{
			"production.ask must be true or false", "production.environments[0] is empty", "globs are relative"}},
		{"a list", "- a\n", []string{"the file must hold keys with values, such as mode: …, not a list"}},
		{"a word", "hello\n", []string{"the file must hold keys with values"}},
		{"a list inside", "loop: [1]\n", []string{"loop must hold keys with values, such as max_iterations: …, not a list"}},
		{"twice", "mode: auto\nmode: manual\n", []string{":2:1:", "mode"}},
		{"number as key", "1: a\n", []string{"a key must be a word, not 1"}},
		{"two documents", "mode: auto\n---\nmode: manual\n", []string{"one file is one document"}},
		{"syntax", "loop:\n  max_iterations: [1\n", []string{".github/forge.yml:"}},
		{"tab", "loop:\n\tmax_iterations: 1\n", []string{".github/forge.yml:2:1: a tab: indent with spaces"}},
		{"anchor", "loop: &a\n  faults: 1\n", []string{"anchors (&), aliases (*), merges (<<) and tags (!) are not supported"}},
		{"alias bomb", "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nmode: *c\n", []string{"not supported"}},
		{"tag", "mode: !!str auto\n", []string{"not supported"}},
		{"merge", "loop:\n  <<: {faults: 1}\n", []string{".github/forge.yml:2:3: anchors (&), aliases (*), merges (<<)"}},
		{"too large", "#" + strings.Repeat("x", 64<<10), []string{"the file has 65537 bytes; at most 65536 are read"}},
		{"too deep", strings.Repeat("[", 5000), []string{"nested more than 100 deep"}},
		{"too deep past brackets in quotes", "a: " + strings.Repeat(`["]", `, 5000), []string{"nested more than 100 deep"}},
		{"too long keys", strings.Repeat("k", 30_000) + ": [" + strings.Repeat("a,", 16_000) + "]", []string{"too long keys"}},
		{"too deep by indicators", strings.Repeat("- ", 5000), []string{"nested more than 100 deep"}},
		{"not text", "\x00\xff\xfe", []string{".github/forge.yml"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := config.Default()
			got, err := Repository(".github/forge.yml", []byte(c.yaml), base)
			if err == nil {
				t.Fatalf("Repository(%.80q) = %+v, want an error", c.yaml, got)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Repository(%.80q): error\n%v\nwant in it\n%s", c.yaml, err, want)
				}
			}
			if d := cmp.Diff(base, got); d != "" {
				t.Errorf("Repository(%.80q): with an error the answer differs from base:\n%s", c.yaml, d)
			}
		})
	}
}

// Covers R7: a repository cannot loosen the operator's manual mode.
func TestManualModeBinds(t *testing.T) {
	t.Parallel()
	base := config.Default()
	base.Mode = "manual"
	if _, err := Repository("f", []byte("mode: auto"), base); err == nil || !strings.Contains(err.Error(), "this server runs in manual mode") {
		t.Errorf("mode auto under manual: error %v", err)
	}
	if _, err := Repository("f", []byte("mode: manual"), base); err != nil {
		t.Errorf("mode manual under manual: %v", err)
	}
}

// otherValue returns a value for a key that is allowed and is not the default.
func otherValue(t *testing.T, key string, typ reflect.Type, now any) any {
	r := ruleOf(key)
	switch {
	case key == "skills":
		return []string{"coverage"}
	case key == "review.lenses":
		return []string{"product"}
	case key == "setup.image":
		return "ghcr.io/acme/tools:1"
	case typ.Kind() == reflect.Slice:
		return []string{"some/thing"}
	case len(r.enum) > 1:
		for _, e := range r.enum {
			if e != reflect.ValueOf(now).String() {
				return e
			}
		}
	case key == "commit_message":
		return "{type}: {summary}"
	case key == "branch_name":
		return "forge/{issue}"
	case strings.HasPrefix(key, "models."):
		return "openai/" + key
	case typ.Kind() == reflect.Pointer: // of a bool that is true
		return false
	case typ.Kind() == reflect.Bool:
		return !now.(bool)
	case r.max > 0:
		n := number(reflect.ValueOf(now)) - 1 // below the server's limit
		if n < r.min || n <= 0 {
			n = r.max
		}
		if n == float64(int64(n)) {
			return int64(n)
		}
		return n
	}
	t.Fatalf("no other value for %s", key)
	return nil
}

// TestEveryKeyIsRead sets every key of the schema, one at a time, and wants the
// configuration to change, and the schema to agree. Covers lessons 22.
func TestEveryKeyIsRead(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	base := config.Default()
	n := 0
	leaves(reflect.TypeFor[config.Config](), "", func(key string, typ reflect.Type) {
		n++
		now := reflect.ValueOf(base)
		for part := range strings.SplitSeq(key, ".") {
			if now.Kind() == reflect.Map {
				now = reflect.ValueOf("")
				break
			}
			for i := range now.NumField() {
				if jsonName(now.Type().Field(i)) == part {
					now = now.Field(i)
					break
				}
			}
		}
		tree := any([]any{map[string]any{"use": "go-vet"}}) // see TestQualityGates for their keys
		if key != "quality" {
			tree = otherValue(t, key, typ, now.Interface())
		}
		parts := strings.Split(key, ".")
		for i := len(parts) - 1; i >= 0; i-- {
			tree = map[string]any{parts[i]: tree}
		}
		if key == "production.run" {
			tree.(map[string]any)["production"].(map[string]any)["issue"] = true
		}
		if key == "ship.ask" {
			ship := tree.(map[string]any)["ship"].(map[string]any)
			ship["environments"] = ship["ask"]
		}
		text, err := yaml.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Repository("f", text, base)
		if err != nil {
			t.Errorf("%s: %v", key, err)
			return
		}
		if cmp.Equal(base, got) {
			t.Errorf("%s: set by\n%s, but nothing changed", key, text)
		}
		if err := schema.Validate(plain(t, tree)); err != nil {
			t.Errorf("%s: the schema refuses what the reader takes: %v", key, err)
		}
		if ruleOf(key).doc == "" {
			t.Errorf("%s has no description", key)
		}
	})
	if n < 25 {
		t.Errorf("found %d keys, want all of config.Config", n)
	}
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(Schema())))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("forge.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("forge.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func plain(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The schema refuses what the reader refuses.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	for _, doc := range []string{
		`{"max_iterations": 3}`, `{"loop": {"max_iteration": 3}}`, `{"loop": {"max_iterations": 0}}`, `{"mode": "atuo"}`,
		`{"models": {"planner": "opus"}}`, `{"models": {"boss": "openai/x"}}`, `{"tests": {"commands": "make"}}`, `{"limits": {"cost_usd": -1}}`,
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(doc))
		if err != nil {
			t.Fatal(err)
		}
		var invalid *jsonschema.ValidationError
		if err := schema.Validate(v); !errors.As(err, &invalid) {
			t.Errorf("schema on %s: %v, want a validation error", doc, err)
		}
		if _, err := Repository("f", []byte(doc), config.Default()); err == nil {
			t.Errorf("Repository(%s): no error", doc)
		}
	}
	if err := schema.Validate(plain(t, config.Default())); err != nil {
		t.Errorf("schema on the defaults: %v", err)
	}
}

func FuzzRepository(f *testing.F) {
	for _, s := range []string{"", "mode: auto", "loop:\n  max_iterations: 3\n", "tests: {commands: [a, 'b', \"c\"]}", "a: &a [*a]",
		"? - a\n: - b", "!!x y", "- - -\n", "\"\\u0000\": |\n  x\n", "x: >-\n a\n\n b\n---\n...\n", "mode: *x", "{<<: {}}"} {
		f.Add([]byte(s))
	}
	base := config.Default()
	f.Fuzz(func(t *testing.T, data []byte) {
		begun := time.Now()
		got, err := Repository("f", data, base)
		if time.Since(begun) > 5*time.Second {
			t.Errorf("%d bytes took %s", len(data), time.Since(begun))
		}
		if err != nil {
			return
		}
		if got.Limits.CostUSD > base.Limits.CostUSD || got.Limits.Tokens > base.Limits.Tokens || got.Limits.CostUSD <= 0 ||
			got.Tests.TimeoutMinutes > base.Tests.TimeoutMinutes {
			t.Errorf("limits got through: %+v", got)
		}
		if fmt.Sprint(got.Mode) != "auto" && got.Mode != "manual" {
			t.Errorf("mode %q got through", got.Mode)
		}
	})
}

// What keys.toml says of a key is known: each key is one, and each function is there.
func TestRulesAreOfKeys(t *testing.T) {
	t.Parallel()
	var file map[string]map[string]any
	if _, err := toml.Decode(keysTOML, &file); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, typ := range []reflect.Type{reflect.TypeFor[config.Config](), reflect.TypeFor[serverFile]()} {
		leaves(typ, "", func(key string, _ reflect.Type) {
			key = strings.ReplaceAll(strings.ReplaceAll(key, "PROVIDER/MODEL", "*"), "NAME", "*")
			for at := key; at != ""; at = at[:max(0, strings.LastIndexByte(at, '.'))] {
				known[at] = true
			}
		})
	}
	for key, said := range file {
		if !known[key] && key != "max_refinement_attempts" && said["names"] == nil {
			t.Errorf("keys.toml has %s, which is no key", key)
		}
		for field, value := range said {
			switch field {
			case "item", "text", "names":
				if checks[value.(string)] == nil {
					t.Errorf("%s names %v, which is no check", key, value)
				}
			case "doc", "min", "max", "unit", "enum", "items", "pattern":
			default:
				t.Errorf("%s has %s, which means nothing", key, field)
			}
		}
	}
}
