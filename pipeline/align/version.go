package align

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline/lazyregexp"
)

// version is one of a runtime or a browser, its elements in order.
type version []int

func parse(s string) version {
	var out version
	for part := range strings.SplitSeq(s, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		out = append(out, n)
	}
	return out
}

// compare compares what both name: 1.21 is equal to 1.21.3.
func (v version) compare(o version) int {
	n := min(len(v), len(o))
	return slices.Compare(v[:n], o[:n])
}

var (
	runtimeAt = lazyregexp.New(`\b(go|golang|node(?:\.?js)?|python|java|jdk|php|ruby)"? ?(?:version |v)?[:@]? ?"?(>=|<=|≥|≤|` +
		`<|>|=)? ?v?(\d{1,2}(?:\.\d+){0,2})(\+|\.x)?`)
	further = lazyregexp.New(`^\s*(,|and|or|to|through|until|bis|und|oder|et|y|a|/|–|-|<)\s*(?:(?:and|` +
		`or) )?v?(\d{1,2}(?:\.\d+){0,2})\b`)
	atLeast = lazyregexp.New(`(?:\bat least|\bminimum(?: version)?(?: is)?|\bmin\.|>=|≥|\bnot older than|\bmindestens|` +
		`\bau moins|\bal menos|\bnewer than)\s*(?:of )?$`)
	atMost  = lazyregexp.New(`(?:\bat most|\bup to|\bno newer than|\bnot newer than|<=|≤|\bhöchstens|\bolder than)\s*$`)
	orNewer = lazyregexp.New(`^\s*(?:or|and|oder|und|ou|et|o|y) (?:newer|later|higher|above|up|upwards|greater|neuer|` +
		`höher|plus récent|superior|posterior)`)
	supports = lazyregexp.New(`\b(?:supports?|supported|compatible|oldest|lowest|has to run on|have to run on|` +
		`must run on|must work on|keeps? working|still runs?|unterstützt\w*)\b`)
	needs = lazyregexp.New(`\b(?:needs?|requires?|because|depends? on|benötigt|braucht|nécessite|requiere)\b`)
	hence = lazyregexp.New(`^[^;]{0,60}\b(?:so|therefore|hence|thus|which is why)\b`)
	// What has a version of its own, whichever runtime it is for, and numbers that are no version.
	bindings = lazyregexp.New(`\b(?:(?:sdks?|clients?|drivers?|librar(?:y|ies)|bindings?|types|typings|connectors?|agents?|wrappers?) for|` +
		`grpc|protobuf|sentry|opentelemetry|otel|selenium|playwright|cucumber|datadog|stripe|twilio|firebase|sdk|client|driver|connector) $`)
	counted = lazyregexp.New(`^(?:\d| ?(?:ms|s|sec\w*|min\w*|[kmg]i?b|bytes|%|px|times|steps?|requests?|instances|replicas|pods)\b)`)
	raised  = lazyregexp.New(`\b(?:upgrade|bump|raise|update|migrate|move|port)\w*\b`)
)

func readRuntime(s *sentence) []Fact {
	var out []Fact
	for _, m := range runtimeAt.FindAllStringSubmatchIndex(s.low, -1) {
		name, op, v := s.low[m[2]:m[3]], "", parse(s.low[m[6]:m[7]])
		if m[4] >= 0 {
			op = s.low[m[4]:m[5]]
		}
		if name = runtimeName(name); !plausible(name, v) || glued(s.low, m[2], m[3]) || bindings.MatchString(s.low[:m[0]]) || counted.MatchString(s.low[m[7]:]) {
			continue
		}
		f := Fact{Key: name, low: v, high: v}
		rest, list := s.low[m[1]:], []string{s.low[m[6]:m[7]]}
		for more := further.FindStringSubmatch(rest); more != nil; more = further.FindStringSubmatch(rest) {
			rest = rest[len(more[0]):]
			f.high = parse(more[2])
			list = append(list, more[2])
		}
		if stance(s.low, m[0], m[1]) != wanted || raised.MatchString(s.low) && len(list) > 1 {
			continue
		}
		before := s.low[:m[0]]
		switch {
		case len(list) > 1:
			f.role = "range"
		case op == ">=" || op == "≥" || op == ">" || m[8] >= 0 && s.low[m[8]:m[9]] == "+" || atLeast.MatchString(before) || orNewer.MatchString(rest):
			f.role, f.high = "least", nil
		case op == "<=" || op == "≤" || op == "<" || atMost.MatchString(before):
			f.role, f.low = "most", nil
		default:
			f.role = "exact"
		}
		if hence.MatchString(rest) && !raised.MatchString(s.low) { // it is why something else is done
			continue
		}
		f.use, f.rule = needs.MatchString(s.low), supports.MatchString(s.low)
		f.Value = fmt.Sprintf("%s %s %s", name, f.role, strings.Join(list, ","))
		out = append(out, f)
	}
	return out
}

func runtimeName(s string) string {
	switch {
	case s == "golang":
		return "go"
	case s == "jdk":
		return "java"
	case strings.HasPrefix(s, "node"):
		return "node"
	}
	return s
}

// plausible reports whether a runtime can have a version: no "go 2 steps", "node 3 of the
// cluster", and none of a package with the runtime's name.
func plausible(name string, v version) bool {
	switch name {
	case "go":
		return v[0] == 1 && len(v) > 1 && v[1] < 40
	case "node":
		return v[0] >= 8
	case "python":
		return v[0] == 2 || v[0] == 3
	case "php":
		return v[0] >= 4 && v[0] <= 9
	case "ruby":
		return v[0] >= 1 && v[0] <= 4
	}
	return v[0] >= 5 || v[0] == 1 && len(v) > 1 && v[1] <= 9 // Java 1.8 is 8
}

func clashRuntime(x, y *Fact, peers bool) bool {
	if peers && x.role == "exact" && y.role == "exact" {
		return false // two modules may be built with two
	}
	return aligned(x, y) && (apart(x, y) || apart(y, x))
}

// apart reports whether x cannot be with y: no version is both, or what x is to run on is
// older than what y needs.
func apart(x, y *Fact) bool {
	switch {
	case x.role == "exact" && y.role == "exact":
		if x.rule && y.use { // one that is supported, one that is needed
			return !y.rule && x.low.compare(y.low) < 0
		}
		return x.low.compare(y.low) != 0 && !x.rule && !y.rule
	case x.role == "exact" && y.role == "least", x.role == "range" && y.role == "least" && !x.rule:
		return x.high.compare(y.low) < 0
	case x.role == "exact" && y.role == "most":
		return x.low.compare(y.high) > 0
	case x.role == "exact" && y.role == "range":
		return x.low.compare(y.low) < 0 && y.rule || x.low.compare(y.high) > 0
	case x.rule && x.role != "most" && (y.role == "least" || y.role == "exact"):
		return x.low.compare(y.low) < 0 && y.use && !y.rule
	case x.role == "least" && y.role == "most":
		return x.low.compare(y.high) > 0
	}
	return false
}

// framework is one that leaves old browsers behind, and from which version on. A zero
// version of a browser is not known.
type framework struct {
	name                    string
	word                    *lazyregexp.Regexp // its version is the last group
	from                    int
	chrome, safari, firefox string
}

func leaves(name, word string, from int, floors ...string) framework {
	f := framework{name: name, from: from, word: lazyregexp.New(`\b(?:` + word + `)(?: |@)?(?:css )?(?:v|version )?(\d{1,2})(?:\.\d+)*\b`)}
	if len(floors) == 3 {
		f.chrome, f.safari, f.firefox = floors[0], floors[1], floors[2]
	}
	return f
}

// frameworks are those without Internet Explorer; where their makers name them, with the
// oldest Chrome, Safari and Firefox.
var frameworks = []framework{
	leaves("React", `react(?:-dom)?`, 18),                                    // react.dev/blog/2022/03/08/react-18-upgrade-guide, no IE
	leaves("Vue", `vue(?:\.js)?`, 3),                                         // v3-migration.vuejs.org and RFC 38: no IE11
	leaves("Angular", `angular`, 13),                                         // blog.angular.dev, Angular v13, no IE11
	leaves("Svelte", `svelte`, 5),                                            // svelte.dev/docs/svelte/v5-migration-guide: needs proxies; no IE
	leaves("Next.js", `next(?:\.js)`, 13, "64", "12", "67"),                  // nextjs.org/docs, upgrading to 13: no IE; Chrome 64, Firefox 67, Safari 12
	leaves("Bootstrap", `bootstrap`, 5, "60", "12", "60"),                    // getbootstrap.com/docs/5.0/migration: no IE
	leaves("Ember", `ember(?:\.js)?`, 4),                                     // emberjs.com/browser-support: 4.0 and later have no IE11
	leaves("Tailwind", `tailwind(?: ?css)?`, 4, "111", "16.4", "128"),        // tailwindcss.com/docs/compatibility: Chrome 111, Safari 16.4, Firefox 128
	leaves("Alpine", `alpine(?:\.js)`, 3),                                    // alpinejs.dev/upgrade-guide: no IE11
	leaves("htmx", `htmx`, 2),                                                // htmx.org/migration-guide-htmx-1: no IE in 2.x
	leaves("Lit", `lit`, 3),                                                  // lit.dev/docs/releases/upgrade: no IE11
	leaves("Material UI", `(?:material[- ]ui|mui)`, 6, "109", "15.4", "115"), // mui.com, supported platforms of 6: no IE11
	leaves("Vuetify", `vuetify`, 3),                                          // vuetifyjs.com, browser support of 3: Vue 3, no IE11
}

var (
	explorer  = lazyregexp.New(`\b(?:ie ?-?(?:9|10|11)?|internet explorer(?: (?:9|10|11))?)\b`)
	browserAt = lazyregexp.New(`\b(chrome|safari|firefox) ?(?:>=|≥|v|version )? ?(\d{2,3}(?:\.\d+)?)\b`)
	supported = lazyregexp.New(`\b(?:oldest|supports?|supported|works?|working|runs?|must|needs?|has to|have to|` +
		`browsers?|älteste[rsn]?|unterstützt\w*|navigateurs?|navegador\w*|antiguo|compatible)\b`)
	itself  = lazyregexp.New(`^ (?:has|have|had|no longer|does|drops?|dropped|removed?s?|lacks?|needs|requires)\b`) // it is spoken of, not used
	lacking = lazyregexp.New(`\b(?:which|because|since|has no|have no|hat keine)\b`)
	floor   = lazyregexp.New(`\b(?:oldest|minimum|lowest|min\.)[^.;,]{0,30}\b(?:browsers?|versions?|supported|required)\b|\bor (?:newer|later|higher)\b`)
	newest  = lazyregexp.New(`\b(?:last|latest|newest|tested with|bug in)\b`)
)

func readBrowser(s *sentence) []Fact {
	var out []Fact
	for _, fw := range frameworks {
		for _, m := range fw.word.FindAllStringSubmatchIndex(s.low, -1) {
			n, _ := strconv.Atoi(s.low[m[2]:m[3]])
			if n < fw.from || glued(s.low, m[0], m[0]) || stance(s.low, m[0], m[1]) != wanted || itself.MatchString(s.low[m[1]:]) {
				continue
			}
			value := fmt.Sprintf("%s %d", fw.name, n)
			out = append(out, Fact{Key: "ie", Value: value, role: "leaves"})
			for name, floor := range map[string]string{"chrome": fw.chrome, "safari": fw.safari, "firefox": fw.firefox} {
				if floor != "" {
					out = append(out, Fact{Key: name, Value: value, role: "leaves", low: parse(floor)})
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Fact) int { return strings.Compare(a.Key, b.Key) }) // a map has no order
	for _, at := range explorer.FindAllStringIndex(s.low, -1) {
		switch how := stance(s.low, at[0], at[1]); {
		case glued(s.low, at[0], at[1]): // "ie-polyfill"
		case how == wanted && supported.MatchString(s.low):
			out = append(out, Fact{Key: "ie", Value: "IE", role: "holds"})
		case how == refused && !lacking.MatchString(s.low):
			out = append(out, Fact{Key: "ie", Value: "no IE", role: "leaves"})
		}
	}
	for _, m := range browserAt.FindAllStringSubmatchIndex(s.low, -1) {
		if !glued(s.low, m[0], m[3]) && supported.MatchString(s.low) && !newest.MatchString(s.low) && stance(s.low, m[0], m[1]) == wanted {
			f := Fact{Key: s.low[m[2]:m[3]], Value: s.low[m[0]:m[1]], role: "holds", low: parse(s.low[m[4]:m[5]])}
			out = append(out, f)
			if floor.MatchString(s.low) { // and no older one
				f.role = "floor"
				out = append(out, f)
			}
		}
	}
	return out
}

func clashBrowser(x, y *Fact, peers bool) bool {
	if !aligned(x, y) || x.role == y.role {
		return false
	}
	if !peers && x.role == "floor" { // what works in older ones, too, fits
		return false
	}
	held, left := x, y
	if held.role != "holds" {
		held, left = y, x
	}
	return held.role == "holds" && (left.low == nil || held.low.compare(left.low) < 0)
}
