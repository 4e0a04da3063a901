package role

import (
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

// How words were read before answers said by which method: what was answered then is read
// like this for as long as its log is replayed, and nothing here may change.
var (
	lineListed     = lazyregexp.New(`^\s*(?:[-*+]|\d{1,2}[.)])\s+(?:\[[ xX]\]\s+)?(.*\S)`)
	lineNamed      = lazyregexp.New(`\bREQ\d+\b`)
	lineForNamed   = lazyregexp.New(`\s*\((?:for )?REQ\d+\)`)
	lineNonGoal    = lazyregexp.New(`(?i)^(?:non-goal|no goal)s?:\s*`)
	lineConstraint = lazyregexp.New(`(?i)^constraints?:\s*`)
)

// readLines makes an item of each line of a list, of that line alone, or one of all the words.
func readLines(r Role, words string, requirements []Item) (items []Item, body string) {
	var rest []string
	for line := range strings.SplitSeq(words, "\n") {
		if m := lineListed.FindStringSubmatch(line); m != nil {
			items = append(items, lineItem(r, m[1], requirements))
		} else {
			rest = append(rest, line)
		}
	}
	if len(items) == 0 {
		return []Item{lineItem(r, strings.Join(strings.Fields(words), " "), requirements)}, ""
	}
	return items, strings.TrimSpace(strings.Join(rest, "\n"))
}

func lineItem(r Role, words string, requirements []Item) Item {
	i := Item{Text: words, Kind: map[Role]string{Analyst: Functional, Architect: Decision, UX: Screen}[r]}
	switch {
	case r == Product && lineNonGoal.MatchString(words):
		i.Kind, i.Text = NonGoal, lineNonGoal.ReplaceAllString(words, "")
	case r == Architect && lineConstraint.MatchString(words):
		i.Kind, i.Text = Constraint, lineConstraint.ReplaceAllString(words, "")
	case r == Product:
		id := lineNamed.FindString(words)
		if slices.ContainsFunc(requirements, func(q Item) bool { return q.ID == id }) {
			i.For, i.Text = id, lineForNamed.ReplaceAllString(words, "")
		}
	case r == Analyst:
		i.Quote = words // a person's own words
	}
	return i
}
