package role

import (
	"regexp"
	"slices"
	"strings"
)

var (
	listed     = regexp.MustCompile(`^\s*(?:[-*+]|\d{1,2}[.)])\s+(?:\[[ xX]\]\s+)?(.*\S)`)
	named      = regexp.MustCompile(`\bREQ\d+\b`)
	forNamed   = regexp.MustCompile(`\s*\((?:for )?REQ\d+\)`)
	nonGoal    = regexp.MustCompile(`(?i)^(?:non-goal|no goal)s?:\s*`)
	constraint = regexp.MustCompile(`(?i)^constraints?:\s*`)
)

// FromWords is the artefact that a person has written in the place of a role: an item for
// each line of a list, or one of all the words. What is over the caps is cut.
func FromWords(r Role, words, login string, requirements []Item) Artefact {
	a := Artefact{Role: r, By: login}
	var rest []string
	for line := range strings.SplitSeq(words, "\n") {
		if m := listed.FindStringSubmatch(line); m != nil {
			a.Items = append(a.Items, itemOf(r, m[1], requirements))
		} else {
			rest = append(rest, line)
		}
	}
	if a.Body = strings.TrimSpace(strings.Join(rest, "\n")); len(a.Items) == 0 {
		a.Items = append(a.Items, itemOf(r, strings.Join(strings.Fields(words), " "), requirements))
		a.Body = ""
	}
	a.Items = a.Items[:min(len(a.Items), MaxItems)]
	for len(a.Items) > 1 && len(a.Text()) > MaxBody {
		a.Items = a.Items[:len(a.Items)-1]
	}
	if over := len(a.Text()) - MaxBody; over > 0 {
		a.Body = strings.ToValidUTF8(a.Body[:max(0, len(a.Body)-over)], "")
	}
	if over := len(a.Text()) - MaxBody; over > 0 {
		last := &a.Items[0]
		last.Text = strings.ToValidUTF8(last.Text[:max(0, len(last.Text)-over)], "")
	}
	a.number()
	return a
}

func itemOf(r Role, words string, requirements []Item) Item {
	i := Item{Text: words, Kind: map[Role]string{Analyst: Functional, Architect: Decision, UX: Screen}[r]}
	switch {
	case r == Product && nonGoal.MatchString(words):
		i.Kind, i.Text = NonGoal, nonGoal.ReplaceAllString(words, "")
	case r == Architect && constraint.MatchString(words):
		i.Kind, i.Text = Constraint, constraint.ReplaceAllString(words, "")
	case r == Product:
		id := named.FindString(words)
		if slices.ContainsFunc(requirements, func(q Item) bool { return q.ID == id }) {
			i.For, i.Text = id, forNamed.ReplaceAllString(words, "")
		}
	case r == Analyst:
		i.Quote = words // a person's own words
	}
	return i
}
