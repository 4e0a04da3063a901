package align

import (
	"strings"

	"forge/pipeline/lazyregexp"
)

// A call that returns when all is done, or before.
var (
	async = lazyregexp.New(`(?i)\basync(?:hronous(?:ly)?)?\b|\bputs? on (?:the|a) queue\b|\bput on (?:the|` +
		`a) queue\b|\breturns at once\b|\bfire[- ]and[- ]forget\b|\basynchron\b`)
	blocking   = lazyregexp.New(`(?i)\bsync(?:hronous(?:ly)?)?\b|\bblocks until\b|\bsynchron\b`)
	identifier = lazyregexp.New("\\b[a-z]+(?:[A-Z][a-z0-9]*)+\\b|\\b[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+\\b|" +
		"\\b\\w+(?:\\.\\w+)*\\(\\)|`[\\w./ -]+`|\\b[a-z]+_[a-z_]+\\b")
)

// What runs how, in a whole sentence: "The export is synchronous", "Export runs in the
// background"; the name is the first group.
var runs = []*lazyregexp.Regexp{
	lazyregexp.New(`^(?:the |an? |each |every )?([\pL][\pL -]{1,40}?) (?:is|are|runs?|happens?|works?|stays?|must be|has to be|have to be)` +
		`(?: (?:done|run|made|handled|processed|always|fully|strictly))* (?:asynchronous(?:ly)?|in the background|by a background (?:job|worker))(?:$|[,.:;])`),
	lazyregexp.New(`^(?:the |an? |each |every )?([\pL][\pL -]{1,40}?) (?:is|are|runs?|happens?|works?|stays?|must be|has to be|have to be)` +
		`(?: (?:done|run|made|handled|processed|always|fully|strictly))* synchronous(?:ly)?(?:$|[,.:;])`),
}

// What is waited for, and what is done while nobody waits, or at once: the thing and its deed.
var (
	waitsFor = lazyregexp.New(`\bwaits? (?:for|until) (?:the |an? |all )?([\pL-]+) (?:to be|is|are|has been|have been) ([\pL]+)\b`)
	behind   = lazyregexp.New(`^(?:the |an? |all )?([\pL-]+) (?:is|are) ([\pL]+) (?:asynchronously|in the background|(?:later )?by a (?:background )?(?:job|worker))$`)
	atOnce   = lazyregexp.New(`^(?:the |an? |all )?([\pL-]+) (?:is|are) ([\pL]+) synchronously$`)
)

func readCall(s *sentence) []Fact {
	var out []Fact
	values := []string{"asynchronous", "synchronous"}
	for part := range strings.SplitSeq(s.text, ", ") {
		low := strings.ToLower(part)
		for i, re := range []*lazyregexp.Regexp{async, blocking} {
			at := re.FindStringIndex(part)
			if at == nil || len(low) != len(part) || glued(low, at[0], at[1]) || stance(low, at[0], at[1]) != wanted {
				continue
			}
			for _, name := range identifier.FindAllString(part, -1) {
				out = append(out, Fact{Key: strings.Trim(name, "`()"), Value: values[i]})
			}
		}
	}
	low := strings.Join(strings.Fields(s.low), " ")
	for i, re := range runs {
		if m := re.FindStringSubmatch(low); m != nil && !denied.MatchString(m[0]) {
			out = append(out, Fact{Key: named(m[1]), Value: values[i]})
		}
	}
	for i, re := range []*lazyregexp.Regexp{behind, waitsFor, atOnce} {
		if m := re.FindStringSubmatchIndex(low); m != nil && !denied.MatchString(low[:m[2]]) {
			out = append(out, Fact{Key: named(low[m[2]:m[3]] + " " + low[m[4]:m[5]]), Value: values[min(i, 1)]})
		}
	}
	return out
}

// named is what some words name, however many of it there are.
func named(words string) string {
	list := strings.Fields(words)
	for i, w := range list {
		list[i] = stem(w)
	}
	return strings.Join(list, " ")
}

// clashCall compares what is said of the same thing. That one runs in the background is here
// what is said of it, not what it is apart from.
func clashCall(x, y *Fact, _ bool) bool {
	a, b := *x, *y
	for _, f := range []*Fact{&a, &b} {
		f.aside, f.part = without(f.aside, "background"), without(f.part, "background")
	}
	return x.Value != y.Value && aligned(&a, &b)
}

func without(list []string, word string) []string {
	var out []string
	for _, w := range list {
		if w != word {
			out = append(out, w)
		}
	}
	return out
}
