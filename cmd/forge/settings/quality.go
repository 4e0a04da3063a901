package settings

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"forge/pipeline/config"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/quality"
)

// maxGates is how many gates of quality a repository may have.
const maxGates = 30

// qualityRules are the rules of a gate of quality's keys.
var qualityRules = map[string]rule{
	"": {doc: "Values that are measured once the tests have passed, with what they may be; as the base has them", items: maxGates},
	"name": {doc: "Its name; without it, as use", text: func(s string) string {
		if !lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,39}$`).MatchString(s) {
			return fmt.Sprintf("is %q; use small letters, digits, points and dashes, at most 40", s)
		}
		return ""
	}, pattern: `^[a-z0-9][a-z0-9._-]{0,39}$`},
	"use":     {doc: "A preset, in place of a command of your own", enum: quality.Presets()},
	"command": {doc: "The command that measures, run by sh in the sandbox at the root of the repository", text: checkCommand, pattern: `\S`},
	"value": {doc: "How its value is read: number, the last one printed; json:PATH; regex:RE; lines; exit; size:GLOB; sarif:FILE", text: func(s string) string {
		if _, err := quality.ParseKind(s); err != nil {
			return err.Error()
		}
		return ""
	}, pattern: `^(?:number|lines|exit|(?:json|regex|size|sarif):.+)$`},
	"unit":     {doc: "Its unit, for people; bytes, % and ns/op are written in their own way", text: checkUnit, pattern: `^.{0,20}$`},
	"max":      {doc: "The most that it may be"},
	"min":      {doc: "The least that it must be"},
	"worse_by": {doc: "How much worse than at the base it may be: a share such as 5%, or a number", text: checkAmount, pattern: `^[0-9.]+%?$`},
	"better":   {doc: "Which way is better; without it higher where there is only min, else lower", enum: []string{"lower", "higher"}},
	"block":    {doc: "Whether work that misses it is sent back; false: it is a warning"},
	"owner": {doc: "The roles that answer for it: analyst, product, architect, ux, developer, qa", items: 6, item: func(s string) string {
		if roles := []string{"analyst", "product", "architect", "ux", "developer", "qa"}; !slices.Contains(roles, s) {
			return fmt.Sprintf("is %q; it must be one of %s", s, strings.Join(roles, ", "))
		}
		return ""
	}},
	"breakdown":       {doc: "A command that prints \"value name\" of the parts, one a line: what grew is sent back with a missed gate", text: checkCommand, pattern: `\S`},
	"repeats":         {doc: "Measures of head and base in turn, for a value that varies: worse is only what a rank test shows", min: 4, max: 50},
	"timeout_minutes": {doc: "Time for one command; without it, tests.timeout_minutes", min: 1, max: 24 * 60, unit: "minutes"},
	"package":         {doc: "Of go-vet, go-bench and binary-size: which packages", text: checkPackage, pattern: `^[A-Za-z0-9._/-]+$`},
	"from_base":       {doc: "Globs of files, such as a linter's settings, that are judged as the base has them, too", items: 20, item: checkGlob},
}

// qualityKey finds the key of a gate in a path such as quality[2].max.
func qualityKey(key string) (string, bool) {
	rest, is := strings.CutPrefix(key, "quality")
	if !is || rest != "" && rest[0] != '[' && rest[0] != '.' {
		return "", false
	}
	_, rest, _ = strings.Cut(rest, ".")
	return rest, true
}

func checkUnit(s string) string {
	if len(s) > 20 || strings.ContainsAny(s, "\r\n|") {
		return fmt.Sprintf("is %.40q; a unit is a word of at most 20 bytes", s)
	}
	return ""
}

func checkAmount(s string) string {
	if _, err := quality.Allowance(config.Amount(s), 100); err != nil {
		return err.Error()
	}
	return ""
}

func checkPackage(s string) string {
	if !regexp.MustCompile(`^\.?[A-Za-z0-9_][A-Za-z0-9._/-]*$|^\./[A-Za-z0-9._/-]*$`).MatchString(s) || path.IsAbs(s) {
		return fmt.Sprintf("is %q; name packages as go does, such as ./cmd/app or ./...", s)
	}
	return ""
}

// gates checks what does not go together in gates of quality that were read, at the
// lines where it stands.
func (r *reader) gates(nodes []ast.Node, list []config.Quality) {
	names := map[string]bool{}
	for i := range list {
		q := &list[i]
		at := func(key string) *token.Token { return keyToken(nodes[i], key) }
		where := func(key string) string { return fmt.Sprintf("quality[%d].%s", i, key) }
		for _, w := range wrongGate(*q) {
			r.problem(at(w.key), "%s %s", where(w.key), w.why)
		}
		if q.Name == "" {
			q.Name = q.Use
		}
		if q.Name != "" && names[q.Name] {
			r.problem(at("name"), "%s is %q, which is there already: give each gate a name of its own", where("name"), q.Name)
		}
		names[q.Name] = true
	}
}

// wrong is what is wrong with a key.
type wrong struct{ key, why string }

// wrongGate says what does not go together in a gate of quality.
func wrongGate(q config.Quality) (out []wrong) {
	add := func(bad bool, key, format string, args ...any) {
		if bad {
			out = append(out, wrong{key, fmt.Sprintf(format, args...)})
		}
	}
	kind, _, _ := strings.Cut(q.Value, ":")
	goes := func(use ...string) bool { return slices.Contains(use, q.Use) }
	add(q.Use == "" && q.Name == "", "name", "is missing: name the gate")
	add(q.Use == "" && q.Value == "", "value", "is missing: say how the value is read, such as number, or name a preset with use")
	add(q.Use == "" && q.Command == "" && kind != quality.Size && q.Value != "", "command", "is missing: name the command that measures, or a preset with use")
	add(q.Command != "" && q.Use != "" && !goes(quality.GoBench, quality.UseSARIF, quality.Axe), "command",
		"does not go with use: %s, which brings its own: remove one", q.Use)
	add(q.Value != "" && q.Use != "" && !goes(quality.UseSARIF), "value", "does not go with use: %s, which reads its own: remove one", q.Use)
	add(goes(quality.Axe) && q.Command == "", "command",
		"is missing: use: axe needs the command that runs axe and prints its result as JSON, such as npx axe --stdout page.html")
	add(goes(quality.UseSARIF) && kind != quality.SARIF, "value", "is missing: use: sarif needs value: sarif:FILE, the file that command writes or that the repository holds")
	add(q.Package != "" && !goes(quality.GoVet, quality.GoBench, quality.BinarySize), "package", "goes with use: go-vet, go-bench and binary-size alone: remove it")
	add(q.Package != "" && q.Command != "", "package", "does not go with command: name the packages there")
	add(q.Max != nil && q.Min != nil && *q.Max < *q.Min, "max", "is under min, so that no value is right")
	for _, b := range []struct {
		key string
		v   *float64
	}{{"max", q.Max}, {"min", q.Min}} {
		add(b.v != nil && (math.IsInf(*b.v, 0) || math.IsNaN(*b.v)), b.key, "must be a finite number")
	}
	known := q.Use == "" || slices.Contains(quality.Presets(), q.Use)
	add(known && !quality.Of(q).Bounded(), "max", "is missing: set max, min or worse_by, else nothing is asked of the value")
	add(q.WorseBy != "" && goes(quality.CoverageChanged, quality.Licences), "worse_by", "does not go with use: %s, which the base has no value of: set %s",
		q.Use, map[bool]string{true: "min", false: "max"}[goes(quality.CoverageChanged)])
	add((q.Max != nil || q.Min != nil) && goes(quality.GoBench), map[bool]string{true: "max", false: "min"}[q.Max != nil],
		"does not go with use: go-bench, which measures many benchmarks: set worse_by")
	add(q.Repeats > 0 && q.Use != "" && !goes(quality.GoBench), "repeats", "goes with use: go-bench and with commands of your own: remove it")
	add(q.Better == "lower" && q.Min != nil && q.Max == nil, "better", "is lower, but min holds it up: set max, or remove it")
	if goes(quality.Coverage, quality.CoverageChanged) {
		add(q.Max != nil, "max", "does not go with use: %s, of which more is better: set min", q.Use)
		add(q.Min != nil && (*q.Min < 0 || *q.Min > 100), "min", "is out of range: a coverage is from 0 to 100 per cent")
	}
	add(q.Better == "higher" && q.Max != nil && q.Min == nil, "better", "is higher, but max holds it down: set min, or remove it")
	return out
}

// keyToken is where a key of a mapping stands; without it, where the mapping begins.
func keyToken(n ast.Node, key string) *token.Token {
	m, ok := n.(ast.MapNode)
	if !ok {
		return n.GetToken()
	}
	for it := m.MapRange(); it.Next(); {
		if k, is := it.Key().(*ast.StringNode); is && k.Value == key {
			return it.Key().GetToken()
		}
	}
	for it := m.MapRange(); it.Next(); {
		return it.Key().GetToken()
	}
	return n.GetToken()
}
