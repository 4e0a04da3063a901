package role

import (
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

var (
	listed     = lazyregexp.New(`^\s*(?:[-*+•‣◦–]|\d{1,2}[.)])\s+(?:\[[ xX]\]\s+)?(.*\S)`)
	named      = lazyregexp.New(`(?i)\bREQ\d+\b`)
	forNamed   = lazyregexp.New(`(?i)\s*\((?:for )?REQ\d+(?:(?:,| and|, and) REQ\d+)*\)`)
	nonGoal    = lazyregexp.New(`(?i)^(?:[*_]*\(?(?:non[- ]?goal|no[- ]goal)s?(?:\)|\s*:[*_]*|[*_]+\s*:))\s*`)
	constraint = lazyregexp.New(`(?i)^[*_]*constraints?\s*(?::[*_]*|[*_]+\s*:)\s*`)
)

// FromWords is the artefact that a person has written in the place of a role. What is over the
// caps is cut.
func FromWords(r Role, words, login string, requirements []Item) Artefact {
	a := Artefact{Role: r, By: login}
	a.Items, a.Body = readList(r, words, requirements)
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

// readList makes an item of each line of a list, with the lines that are indented below it,
// or one of all the words.
func readList(r Role, words string, requirements []Item) (items []Item, body string) {
	var rest, list []string
	in := false // an item
	for line := range strings.SplitSeq(words, "\n") {
		m := listed.FindStringSubmatch(line)
		in = m != nil || in && (strings.TrimSpace(line) == "" || strings.ContainsRune(" \t", rune(line[0])))
		switch {
		case m != nil:
			list = append(list, m[1])
		case in:
			list[len(list)-1] += " " + line
		default:
			rest = append(rest, line)
		}
	}
	if len(list) == 0 {
		return itemsOf(r, words, requirements), ""
	}
	for _, words := range list {
		items = append(items, itemsOf(r, words, requirements)...)
	}
	return items, strings.TrimSpace(strings.Join(rest, "\n"))
}

// itemsOf is what some words say: one item, but a criterion for each of the requirements
// that are named in brackets.
func itemsOf(r Role, words string, requirements []Item) []Item {
	words = strings.Join(strings.Fields(words), " ")
	i := Item{Text: words, Kind: map[Role]string{Analyst: Functional, Architect: Decision, UX: Screen}[r]}
	switch {
	case r == Product && nonGoal.MatchString(words):
		i.Kind, i.Text = NonGoal, nonGoal.ReplaceAllString(words, "")
	case r == Architect && constraint.MatchString(words):
		i.Kind, i.Text = Constraint, constraint.ReplaceAllString(words, "")
	case r == Product:
		return criteria(words, requirements)
	case r == Analyst:
		i.Quote = words // a person's own words
	}
	return []Item{i}
}

func criteria(words string, requirements []Item) []Item {
	known := func(in string) (ids []string, all bool) {
		all = true
		for _, id := range named.FindAllString(in, -1) {
			id = strings.ToUpper(id)
			there := slices.ContainsFunc(requirements, func(q Item) bool { return q.ID == id })
			if all = all && there; there && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		return ids, all
	}
	var ids []string
	text := forNamed.ReplaceAllStringFunc(words, func(in string) string {
		more, all := known(in)
		if !all {
			return in
		}
		ids = append(ids, more...)
		return ""
	})
	if text = strings.TrimSpace(text); text == "" {
		text = words // it is all there is
	}
	if len(ids) == 0 {
		if ids, _ = known(words); len(ids) == 0 {
			return []Item{{Text: words}}
		}
		ids = ids[:1] // the others may be spoken of alone
	}
	var out []Item
	for i, id := range ids {
		if !slices.Contains(ids[:i], id) {
			out = append(out, Item{Text: text, For: id})
		}
	}
	return out
}
