package role

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Clash is what the design and the user interface, which were written at the same time,
// contradict each other in: the words of an item on each side.
type Clash struct {
	Design string `json:"design"`
	UI     string `json:"ui"`
}

// String is the clash for people and prompts.
func (c Clash) String() string {
	return fmt.Sprintf("the design says %q, but the user interface says %q", c.Design, c.UI)
}

// Of is what a side says.
func (c Clash) Of(side Role) string {
	if side == UX {
		return c.UI
	}
	return c.Design
}

// Other is the side against one.
func (r Role) Other() Role {
	if r == UX {
		return Architect
	}
	return UX
}

// Stands reports whether both sides still say what contradicts.
func (c Clash) Stands(list []Artefact) bool {
	return says(Of(list, Architect), c.Design) >= 0 && says(Of(list, UX), c.UI) >= 0
}

// says is the item of an artefact that holds words, whatever their case and marks; -1: none.
func says(a *Artefact, words string) int {
	plain := func(s string) string {
		return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }), " ")
	}
	want := plain(words)
	if a == nil || want == "" {
		return -1
	}
	return slices.IndexFunc(a.Items, func(i Item) bool { return i.Kind != NonGoal && strings.Contains(" "+plain(i.Text)+" ", " "+want+" ") })
}

// Yield has a side say something else in the place of what contradicts the other, which holds.
func Yield(list []Artefact, c Clash, holds Role, instead, why string) []Artefact {
	a := Of(list, holds.Other())
	at := says(a, c.Of(holds.Other()))
	if at < 0 {
		return list
	}
	next := *a
	next.Items = slices.Clone(a.Items)
	next.Items[at].Text = instead
	if next.Items[at].Kind == Decision {
		next.Items[at].Why = why
	}
	return Put(list, next)
}
