package settings

import (
	_ "embed"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/BurntSushi/toml"
	"github.com/google/go-containerregistry/pkg/name"

	"forge/pipeline/agent"
	"forge/pipeline/config"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/lens"
	"forge/pipeline/text"
)

// rule says what a key may hold, and what it is for.
type rule struct {
	doc      string
	min, max float64 // of a number; both 0: not one, or any
	unit     string
	enum     []string
	items    int                 // most entries of a list
	item     func(string) string // says what is wrong with an entry of a list
	text     func(string) string // says what is wrong with a text
	names    func(string) string // of a map with names of people's own: says what is wrong with one
	pattern  string              // of such a text, for the schema; "": a model's
}

// Roles are the agents that may each have a model of their own.
var roles = []config.Role{config.RolePlanner, config.RoleImplementer, config.RoleReviewer, config.RoleTester, config.RoleReflector}

// writers are those that may have one, too, and use the planner's without.
var writers = []config.Role{config.RoleAnalyst, config.RoleProduct, config.RoleArchitect, config.RoleUX, config.RoleChecker}

// mapKeys are the keys of those maps whose keys are fixed.
var mapKeys = map[string][]string{"models": roleNames()}

func roleNames() (out []string) {
	for _, r := range slices.Concat(roles, writers) {
		out = append(out, string(r))
	}
	return out
}

//go:embed keys.toml
var keysTOML string

// checks are what keys.toml names under item, text and names.
var checks = map[string]func(string) string{
	"checkBranch": checkBranch, "checkClientID": checkClientID, "checkCommand": checkCommand, "checkDatabase": checkDatabase, "checkDirectory": checkDirectory,
	"checkEnvironment": checkEnvironment, "checkGlob": checkGlob, "checkHealthURL": checkHealthURL, "checkHost": checkHost, "checkImage": checkImage,
	"checkImageHost": checkImageHost, "checkLabel": checkLabel, "checkLens": checkLens, "checkListedRepo": checkListedRepo, "checkListen": checkListen,
	"checkLoopback": checkLoopback, "checkMessage": checkMessage, "checkModel": checkModel, "checkName": checkName, "checkPattern": checkPattern,
	"checkPlace": checkPlace, "checkPublicURL": checkPublicURL, "checkRepo": checkRepo, "checkSecret": checkSecret, "checkServerModel": checkServerModel,
	"checkSkill": checkSkill, "checkSlug": checkSlug, "checkURL": checkURL, "checkUser": checkUser,
}

// rules are those of all keys; keys.toml says what its fields mean.
var rules = sync.OnceValue(func() map[string]rule {
	var file map[string]struct {
		Doc, Unit, Pattern, Item, Text, Names string
		Min, Max                              float64
		Enum                                  []string
		Items                                 int
	}
	if _, err := toml.Decode(keysTOML, &file); err != nil {
		panic(err)
	}
	out := map[string]rule{}
	for key, k := range file {
		out[key] = rule{k.Doc, k.Min, k.Max, k.Unit, k.Enum, k.Items, checks[k.Item], checks[k.Text], checks[k.Names], k.Pattern}
	}
	return out
})

// namedBy are the keys that hold a map of people's own names, and what these must be.
var namedBy = map[string]func(string) string{"prices": checkModel, "model_limits": checkModel, "registries": checkName, "hooks": checkName,
	"health_checks": checkName, "prometheus": checkName, "queries": checkName, "subscribers": checkName}

// checkName is for names that people give to things of the server.
func checkName(name string) string {
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`).MatchString(name) {
		return fmt.Sprintf("is %q; use letters, digits, points and dashes", name)
	}
	return ""
}

// checkPattern is for globs of names.
func checkPattern(glob string) string {
	if _, err := path.Match(glob, ""); err != nil || glob == "" {
		return fmt.Sprintf("is %q; it must be a glob such as \"@acme\" or \"git.acme.dev/*\"", glob)
	}
	return ""
}

// checkMessage is for templates of commits' first lines.
func checkMessage(s string) string {
	switch {
	case s == "":
		return ""
	case !strings.Contains(s, "{summary}"):
		return fmt.Sprintf("is %q; it must have {summary}, which says what the commit does", s)
	case len(s) > 60 || strings.ContainsAny(s, "\r\n"):
		return fmt.Sprintf("is %q; it must be one line of at most 60 characters", s)
	}
	return checkPlaces(s, "summary", "type", "issue")
}

// checkBranch is for templates of branches' names.
func checkBranch(s string) string {
	switch {
	case s == "":
		return ""
	case !strings.HasPrefix(s, "forge/"):
		return fmt.Sprintf("is %q; it must begin with forge/: Forge pushes to no other branches", s)
	case !strings.Contains(s, "{issue}"):
		return fmt.Sprintf("is %q; it must have {issue}, which tells branches apart", s)
	case !regexp.MustCompile(`^[A-Za-z0-9{][A-Za-z0-9{}_-]*(/[A-Za-z0-9{][A-Za-z0-9{}_-]*)*$`).MatchString(s):
		return fmt.Sprintf("is %q; between slashes it may have letters, digits, - and _", s)
	}
	return checkPlaces(s, "issue", "slug", "type")
}

// checkPlaces looks whether a template has others than these.
func checkPlaces(s string, known ...string) string {
	for _, m := range regexp.MustCompile(`\{([^{}]*)\}`).FindAllStringSubmatch(s, -1) {
		if !slices.Contains(known, m[1]) {
			return fmt.Sprintf("is %q; %s is none of {%s}", s, m[0], strings.Join(known, "}, {"))
		}
	}
	return ""
}

// ruleOf returns the rule of a key; those of models are alike.
func ruleOf(key string) rule {
	if role, ok := strings.CutPrefix(key, "models."); ok {
		return rule{doc: "The " + role + "'s model, as provider/model", text: checkModel}
	}
	if own, is := qualityKey(key); is {
		return qualityRules[own]
	}
	for of := range namedBy { // names may hold points, too
		if strings.HasPrefix(key, of+".") {
			return rules()[of+".*"+key[strings.LastIndexByte(key, '.'):]]
		}
	}
	return rules()[key]
}

// check says what is wrong with a value that was read, or "".
func check(key string, v reflect.Value, caps map[string]float64, untrusted bool) string {
	r := ruleOf(key)
	switch {
	case v.Kind() == reflect.String && len(r.enum) > 0:
		if !slices.Contains(r.enum, v.String()) {
			hint := ""
			if near := text.Nearest(v.String(), r.enum); near != "" {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			return fmt.Sprintf("%s is %q; it must be one of %s%s", key, v.String(), strings.TrimPrefix(strings.Join(r.enum, ", "), ", "), hint)
		}
	case v.Kind() == reflect.String && r.text != nil:
		if why := r.text(v.String()); why != "" {
			return key + " " + why
		}
	case v.Kind() == reflect.Float64 || v.Kind() == reflect.Int || v.Kind() == reflect.Int64:
		n := number(v)
		if r.min == 0 && r.max == 0 {
			break
		}
		if !(n >= r.min && n <= r.max) {
			return fmt.Sprintf("%s is %s; it must be from %s to %s", key, show(n, v, ""), show(r.min, v, ""), show(r.max, v, r.unit))
		}
		bound := key
		if own, is := qualityKey(key); is && own == "timeout_minutes" {
			bound = "tests.timeout_minutes" // no command of a repository's runs longer
		}
		if most, ok := caps[bound]; ok && n > most {
			if untrusted {
				return fmt.Sprintf("%s is %s, over this repository's %s, and the issue's author has no write access to it: lower it, or let someone who has open the issue",
					key, show(n, v, ""), show(most, v, r.unit))
			}
			return fmt.Sprintf("%s is %s, over this server's limit of %s: lower it, or ask the server's operator to raise %s in forge.yml",
				key, show(n, v, ""), show(most, v, r.unit), bound)
		}
	}
	return ""
}

func number(v reflect.Value) float64 {
	if v.Kind() == reflect.Float64 {
		return v.Float()
	}
	return float64(v.Int())
}

func show(n float64, v reflect.Value, unit string) string {
	if v.Type() == durationType {
		return time.Duration(n).String()
	}
	text := fmt.Sprintf("%.2f", n)
	text = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(text, "0"), "0"), ".")
	if unit != "" {
		text += " " + unit
	}
	return text
}

func checkCommand(s string) string {
	switch {
	case strings.TrimSpace(s) == "":
		return "is empty: remove it, or name a command"
	case len(s) > 4000:
		return fmt.Sprintf("has %d characters; at most 4000 are allowed: put it into a script in the repository", len(s))
	case strings.ContainsRune(s, 0):
		return "holds a NUL character: remove it"
	}
	return ""
}

// checkImage is for the name of a container image.
func checkImage(s string) string {
	if s == "" {
		return ""
	}
	if _, err := name.ParseReference(s); err != nil {
		return "must name an image, such as docker.io/library/golang:1.26"
	}
	return ""
}

// checkImageHost is for a registry of images.
func checkImageHost(s string) string {
	if r, err := name.NewRegistry(s); err != nil || r.RegistryStr() != s && s != "docker.io" {
		return "must be the host of a registry, such as ghcr.io"
	}
	return ""
}

// checkEnvironment is for names of environments, which are anything at GitHub.
func checkEnvironment(s string) string {
	switch {
	case strings.TrimSpace(s) == "":
		return "is empty: remove it, or name an environment"
	case len(s) > 255 || strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Sprintf("is %.40q; an environment is named in one line of at most 255 bytes", s)
	}
	return ""
}

// checkSkill is for names of skills that come with Forge.
func checkSkill(s string) string {
	if _, err := agent.Builtin([]string{s}); err != nil {
		return fmt.Sprintf("is %.40q: %v", s, err)
	}
	return ""
}

// checkLens is for what a change is reviewed for besides.
func checkLens(s string) string {
	if !slices.Contains(lens.All(), lens.Lens(s)) {
		return fmt.Sprintf("is %.40q; a lens is one of %s", s, strings.Join(lens.Names(), ", "))
	}
	return ""
}

// checkPlace is for files and directories of a repository.
func checkPlace(s string) string {
	clean := path.Clean(s)
	switch {
	case strings.TrimSpace(s) == "" || clean == ".":
		return "is empty, or the top: name a path beneath it"
	case len(s) > 200:
		return fmt.Sprintf("has %d characters; at most 200 are allowed", len(s))
	case strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~"):
		return fmt.Sprintf("is %q; paths are relative to the root of the repository: write it without the start", s)
	case strings.ContainsAny(s, "\\*?[$`") || strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Sprintf("is %q; it must be one path, without patterns, variables and backslashes", s)
	}
	for part := range strings.SplitSeq(s, "/") {
		switch name := strings.TrimRight(strings.ToLower(part), ". "); {
		case part == "..":
			return fmt.Sprintf("is %q, which leads out with ..: write it from the root of the repository", s)
		case name == ".git" || name == "git~1":
			return fmt.Sprintf("is %q; git's own directory is not for commands", s)
		}
	}
	if s != clean {
		return fmt.Sprintf("is %q; write it as %q", s, clean)
	}
	return ""
}

func checkGlob(s string) string {
	if strings.TrimSpace(s) == "" {
		return "is empty: remove it, or name a glob"
	}
	if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "../") {
		return fmt.Sprintf("is %q; globs are relative to the root of the repository: write it without the start", s)
	}
	for part := range strings.SplitSeq(s, "/") {
		if _, err := path.Match(part, ""); err != nil {
			return fmt.Sprintf("is %q, which is no glob: a [ without its ], or a \\ at the end", s)
		}
	}
	return ""
}

var modelName = lazyregexp.New(`^(?:` + strings.Join(agent.ProviderNames, "|") + `)/[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$`)

// checkServerModel also takes a tape: a scripted model, for trying out and for
// tests. A repository cannot name one, because it is a path on this machine.
func checkServerModel(s string) string {
	if path, ok := strings.CutPrefix(s, "tape:"); ok && path != "" {
		return ""
	}
	return checkModel(s)
}

func checkModel(s string) string {
	if s == "" || modelName.MatchString(s) {
		return ""
	}
	provider, _, ok := strings.Cut(s, "/")
	switch {
	case !ok:
		return fmt.Sprintf("is %q; a model is named provider/model, such as anthropic/%s", s, s)
	case !slices.Contains(agent.ProviderNames, provider):
		return fmt.Sprintf("is %q; the provider must be %s (openai also for any server that speaks OpenAI's API: set its address with openai_base_url)",
			s, strings.Join(agent.ProviderNames, " or "))
	}
	return fmt.Sprintf("is %q; the model's name may hold letters, digits and . _ : / @ + -", s)
}

// jsonName is a field's key.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func keysOf(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		out = append(out, jsonName(t.Field(i)))
	}
	return out
}

// leaves calls f for every key that holds a value, in the order of the types.
func leaves(t reflect.Type, key string, f func(key string, t reflect.Type)) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			leaves(t.Field(i).Type, join(key, jsonName(t.Field(i))), f)
		}
	case reflect.Map:
		if t.Elem().Kind() == reflect.Struct {
			leaves(t.Elem(), join(key, placeholder(key)), f)
		}
		for _, name := range mapKeys[key] {
			f(join(key, name), t.Elem())
		}
	default:
		f(key, t)
	}
}

// placeholder stands for the name of an entry of a map whose names are people's own.
func placeholder(key string) string {
	if key == "prices" {
		return "PROVIDER/MODEL"
	}
	return "NAME"
}

// findKey returns the path of the key of that name, or one close to it.
func findKey(t reflect.Type, name string) string {
	byName := map[string]string{}
	leaves(t, "", func(key string, _ reflect.Type) {
		last := key[strings.LastIndexByte(key, '.')+1:]
		if _, ok := byName[last]; !ok {
			byName[last] = key
		}
	})
	return byName[name]
}

// example shows a key that may stand under another one.
func example(t reflect.Type, under string) string {
	out := ""
	leaves(t, "", func(key string, _ reflect.Type) {
		if rest, ok := strings.CutPrefix(key, under+"."); out == "" && ok {
			out = rest + ": …"
		}
	})
	if out == "" {
		out = keysOf(t)[0] + ": …"
	}
	return out
}

func nearestExact(name string, known []string) string {
	if slices.Contains(known, name) {
		return name
	}
	return ""
}
