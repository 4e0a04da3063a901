package secrets

import (
	"cmp"
	_ "embed"
	"encoding/base64"
	"net/url"
	"strings"
	"sync"
	"unicode"

	"github.com/BurntSushi/toml"

	"forge/pipeline/lazyregexp"
)

// rule is a shape of credentials; rules.toml says what its fields mean.
type rule struct {
	Name   string
	Keys   []string
	Find   string
	Least  float64
	Weak   bool
	Whole  bool
	Lines  bool
	After  string
	Refuse string

	look   func(string) [][]int    // what it finds, with its first group
	refuse func(group string) bool // nil: nothing
}

//go:embed rules.toml
var rulesTOML string

// refusals are what rules.toml names under refuse.
var refusals = map[string]func(string) bool{"notMixed": notMixed, "notPassword": notPassword, "notBasic": notBasic, "notJWT": notJWT, "notMnemonic": notMnemonic}

// rules reads the shapes when they are first asked for: every command in the sandbox starts
// this program anew, and few look for secrets.
var rules = sync.OnceValue(func() []rule {
	var file struct{ Rule []rule }
	if _, err := toml.Decode(rulesTOML, &file); err != nil {
		panic(err)
	}
	for i := range file.Rule {
		r := &file.Rule[i]
		r.Least = cmp.Or(r.Least, 3)
		r.refuse = refusals[r.Refuse]
		find := lazyregexp.New(r.Find)
		r.look = func(s string) [][]int { return find.FindAllStringSubmatchIndex(s, -1) }
	}
	return append(file.Rule, rule{Name: assignedRule, Weak: true, Whole: true, Least: 2.5, look: assigned,
		Keys: strings.Fields("ecret ECRET ass ASS wd WD oken OKEN key Key KEY redential REDENTIAL auth AUTH Auth")})
})

// notMixed refuses what has not letters of both cases and digits, or is a path, a
// name or words rather than characters drawn by chance.
func notMixed(v string) bool {
	lower, upper, digit, _ := classes(v)
	if !lower || !upper || !digit {
		return true
	}
	return strings.Count(v, "/") > 2 && strings.Count(v, "/")*8 > len(v) || strings.Count(v, ".") > 2 || words(v)
}

// words reports whether most of a value is made of words: runs of small letters, as
// in a name of many parts. Chance makes short ones, too, but not that many.
func words(v string) bool {
	share := 4 // quarters of the value, without anything between its parts three of them
	if strings.ContainsAny(v, "-_./") {
		share = 6
	}
	in, run := 0, 0
	for i := range len(v) + 1 {
		if i < len(v) && v[i] >= 'a' && v[i] <= 'z' {
			run++
			continue
		}
		if run >= 4 {
			in += run
		}
		run = 0
	}
	return in*share >= 3*len(v)
}

// notPassword refuses what stands for a password.
func notPassword(v string) bool {
	if strings.ContainsAny(v, "<>{}$()[]*") || strings.Contains(v, "%s") || strings.Contains(v, "%v") || strings.Contains(v, "...") {
		return true
	}
	if plain, err := url.PathUnescape(v); err == nil {
		v = plain
	}
	letters := strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, v)
	for _, w := range []string{"password", "passwd", "passord", "mypass", "secret", "postgres", "mysql", "token", "username", "hunter", "opensesame"} {
		if strings.Contains(letters, w) || strings.Contains(strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "@", "a", "$", "s", "5",
			"s").Replace(strings.ToLower(v)), w) {
			return true
		}
	}
	if words(v) {
		return true
	}
	small, upper, digit, other := classes(v)
	kinds := 0
	for _, has := range []bool{small, upper, digit, other} {
		if has {
			kinds++
		}
	}
	return kinds < 2 || !digit && !other
}

// notBasic refuses what is not a name and a password that could be somebody's.
func notBasic(v string) bool {
	user, password, ok := strings.Cut(unbase64(strings.TrimRight(v, "=")), ":")
	return !ok || !legible(user+password) || len(password) < 8 || notPassword(password) || !plausible(password, 2.75)
}

// notJWT refuses what is no JWT, and the one of which everybody's examples are made.
func notJWT(v string) bool {
	part := strings.Split(v, ".")
	head, err := base64.RawURLEncoding.DecodeString(part[0])
	if err != nil || !strings.Contains(string(head), `"alg"`) {
		return true
	}
	body, err := base64.RawURLEncoding.DecodeString(part[1])
	if err != nil {
		return true
	}
	for _, w := range []string{"John Doe", "1234567890", "example.com", `"admin":true`, "joe\"", "foo", `"bar"`, `"payload"`, `"iss":"test"`} {
		if strings.Contains(string(body), w) {
			return true
		}
	}
	return false
}

// notMnemonic refuses words among which some are there too often: of 2048, chance draws
// few twice; those that documentation shows are mostly one word.
func notMnemonic(v string) bool {
	all := strings.Fields(v)
	once := map[string]bool{}
	for _, w := range all {
		once[w] = true
	}
	return len(all)%3 != 0 || len(once) < len(all)-1
}

// shapes returns what in a text has the shape of a credential; strong alone without
// those that are too common.
func shapes(block string, strong bool) []match {
	var found []match
	list := rules()
	for i := range list {
		if r := &list[i]; !strong || !r.Weak {
			found = append(found, r.match(block)...)
		}
	}
	return found
}

// match returns what in a text has the rule's shape and could be real.
func (r *rule) match(block string) []match {
	if r.Lines {
		if !containsAny(block, r.Keys) {
			return nil
		}
		return r.matchIn(block, 0, nil)
	}
	var found []match
	next := make([]int, len(r.Keys)) // where each key is, from at on
	for i := range next {
		next[i] = -1
	}
	start, end := 0, 0 // of the line
	for at := 0; ; {
		key := len(block)
		for i, k := range r.Keys {
			if next[i] < at {
				if n := strings.Index(block[at:], k); n >= 0 {
					next[i] = at + n
				} else {
					next[i] = len(block)
				}
			}
			key = min(key, next[i])
		}
		if key == len(block) {
			break
		}
		if key >= end { // in another line than the one before
			start, end = strings.LastIndexByte(block[:key], '\n')+1, len(block)
			if i := strings.IndexByte(block[key:], '\n'); i >= 0 {
				end = key + i
			}
		}
		if end-start > longLine {
			found, at = r.matchNear(block, key, start, end, found)
		} else {
			found = r.matchIn(block[start:end], start, found)
			at = end + 1
		}
		if at >= len(block) {
			break
		}
	}
	return found
}

// Of a line that is longer than longLine, as minifiers make it, only what is near a key
// is looked at: so much before it, and after it more where a match goes on.
const (
	longLine    = 4 << 10
	reachBefore = 200
	reachAfter  = 600
	mostReach   = 64 << 10
)

// matchNear adds the matches near a key in a long line, and returns where to go on.
func (r *rule) matchNear(block string, key, start, end int, found []match) ([]match, int) {
	from := max(start, key-reachBefore)
	if len(found) > 0 {
		from = max(from, found[len(found)-1].end)
	}
	for reach := reachAfter; ; reach *= 4 {
		to := min(end, key+reach)
		near := r.matchIn(block[from:to], from, nil)
		if to < end && reach < mostReach && len(near) > 0 && near[len(near)-1].end == to { // cut off
			continue
		}
		next := min(end, key+reach-reachBefore) // what begins in the last part is looked at whole
		if to == end {
			next = end
		}
		for _, m := range near {
			next = max(next, m.end)
		}
		return append(found, near...), max(next, key+1)
	}
}

// matchIn adds the matches in a part of a text that begins at offset.
func (r *rule) matchIn(part string, offset int, found []match) []match {
	for _, m := range r.look(part) {
		start, end := m[0], m[1]
		group := part[start:end]
		if len(m) > 3 && m[2] >= 0 {
			group = part[m[2]:m[3]]
		}
		if r.refuse != nil && r.refuse(group) || !plausible(group, r.Least) {
			continue
		}
		if r.After != "" && strings.Contains(part[max(0, start-100):start], r.After) {
			continue
		}
		shown := ""
		if r.Whole {
			start, end = m[2], m[3]
		} else if len(m) > 3 && m[2] > start {
			shown = strings.Trim(part[start:min(m[2], start+12)], " \t\r\n\"'`=:([{,")
		}
		found = append(found, match{rule: r.Name, shown: shown, start: offset + start, end: offset + end})
	}
	return found
}

func containsAny(block string, keys []string) bool {
	for _, k := range keys {
		if strings.Contains(block, k) {
			return true
		}
	}
	return false
}
