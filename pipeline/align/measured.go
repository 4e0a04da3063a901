package align

import (
	"regexp"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

// Measured is a value of time or size, and the name that it was measured under.
type Measured struct {
	Name   string // "search-p95"
	Size   bool   // in bytes; else in milliseconds
	Number float64
}

var partsOfName = lazyregexp.New(`[^\p{L}\p{N}]+`)

// Over returns the words of a text that bound what was measured, where it is over that; ""
// where nothing does. What a value is of is told by its name: it stands in the sentence
// as it is, where it is no single word, or has a word in common that says what both are about.
func (m Measured) Over(written string) string {
	words := partsOfName.ReplaceAllString(strings.ToLower(m.Name), " of ")
	y := Fact{scope: scopeOf(words)}
	y.about, y.next = subject(words)
	centiles, kinds := uniq(centile.FindAllString(words, -1)), uniq(measure.FindAllString(words, -1))
	var exact *regexp.Regexp
	if partsOfName.MatchString(m.Name) {
		exact = regexp.MustCompile(`(?i)(?:^|[^\pL\pN-])` + regexp.QuoteMeta(m.Name) + `(?:[^\pL\pN-]|$)`)
	}
	for _, s := range sentences(written) {
		caps := slices.DeleteFunc(readLimit(&s), func(f Fact) bool { return f.role != "cap" || (f.Key == "size") != m.Size })
		if len(caps) != 1 { // of several it is not clear which
			continue
		}
		x := &caps[0]
		x.scope = s.scope
		named := exact != nil && exact.MatchString(s.text)
		if !named && !(sameThing(x, &y) && (len(x.not) == 0 || meet(x.not, centiles)) && slices.Equal(weighed(x.has), weighed(kinds))) {
			continue
		}
		if m.Number > x.number {
			return s.text
		}
	}
	return ""
}

// sameThing reports whether a bound is for what has a name: a word that says something is in
// both, and the bound is for no part of it that the name does not have.
func sameThing(x, name *Fact) bool {
	return aligned(x, name) && meet(special(x.about), special(name.about))
}
