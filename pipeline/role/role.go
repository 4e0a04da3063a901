// Package role names those who write down, before anybody plans it, what is wanted and how
// it is to be built, and holds what they write: requirements, criteria, a design, a user
// interface. What a model writes is checked here by rules alone.
package role

import (
	"fmt"
	"slices"
	"strings"
)

// Role is who answers for an artefact.
type Role string

// The roles, in the order in which they act: the last two at the same time.
const (
	Analyst   Role = "analyst"   // the requirements, each with the words that it comes from
	Product   Role = "product"   // the acceptance criteria, and what is no goal
	Architect Role = "architect" // the design: decisions with what was weighed, constraints
	UX        Role = "ux"        // the user interface: screens, states, breakpoints
)

// All returns every role.
func All() []Role { return []Role{Analyst, Product, Architect, UX} }

// Person is the role as people speak of it.
func (r Role) Person() string {
	switch r {
	case Product:
		return "product manager"
	case UX:
		return "designer of the user interface"
	}
	return string(r)
}

// What an artefact may hold at most.
const (
	MaxBody  = 20 << 10 // bytes of all its texts
	MaxItems = 60
)

// The kinds of items. Criteria have none.
const (
	Functional    = "functional"
	Quality       = "quality"
	NonGoal       = "non-goal"
	Decision      = "decision"
	Constraint    = "constraint"
	Screen        = "screen"
	State         = "state"
	Breakpoint    = "breakpoint"
	Accessibility = "accessibility"
)

// Artefact is what a role has written.
type Artefact struct {
	Role  Role   `json:"role"`
	Rev   int    `json:"rev"` // from 1
	Body  string `json:"body"`
	Items []Item `json:"items,omitempty"`

	Stale bool `json:"stale,omitempty"` // the task has changed since: it is to be written again

	// Of the architect's.
	Infeasible []Claim `json:"infeasible,omitempty"` // criteria that cannot be met as they are, before anything is built
	Clashes    []Clash `json:"clashes,omitempty"`    // with the user interface
}

// Claim is that something cannot be, with ways out.
type Claim struct {
	About   []string `json:"about"` // ids of criteria
	Text    string   `json:"text"`
	Options []Option `json:"options,omitempty"`
}

// Option is a way out.
type Option struct {
	Text   string `json:"text"`
	Effort string `json:"effort,omitempty"` // low, medium, high
	Impact string `json:"impact,omitempty"` // what follows from it
}

// Item is one thing of an artefact.
type Item struct {
	ID      string   `json:"id"` // "REQ1", "AC1", "NG1", "DEC1", "CON1", "UI1"
	Kind    string   `json:"kind,omitempty"`
	Text    string   `json:"text"`
	Quote   string   `json:"quote,omitempty"`   // of a requirement: the task's words that it comes from
	For     string   `json:"for,omitempty"`     // of a criterion: the requirement
	Why     string   `json:"why,omitempty"`     // of a decision
	Weighed []string `json:"weighed,omitempty"` // of a decision: other ways, and why not
}

// String is the item in a line.
func (i Item) String() string {
	s := i.ID + ": " + i.Text
	if i.Kind != "" {
		s = fmt.Sprintf("%s (%s): %s", i.ID, i.Kind, i.Text)
	}
	if i.For != "" {
		s += " (for " + i.For + ")"
	}
	if i.Quote != "" {
		s += fmt.Sprintf(" (“%s”)", i.Quote)
	}
	if i.Why != "" {
		s += ", because " + i.Why
	}
	if len(i.Weighed) > 0 {
		s += "; weighed: " + strings.Join(i.Weighed, "; ")
	}
	return strings.Join(strings.Fields(s), " ")
}

// prefixes begin the ids of items by kind; of a role's others it is the role's.
var prefixes = map[string]string{NonGoal: "NG", Decision: "DEC", Constraint: "CON"}

// number gives every item its id.
func (a *Artefact) number() {
	own := map[Role]string{Analyst: "REQ", Product: "AC", Architect: "DEC", UX: "UI"}[a.Role]
	seen := map[string]int{}
	for i := range a.Items {
		prefix := own
		if p, other := prefixes[a.Items[i].Kind]; other {
			prefix = p
		}
		seen[prefix]++
		a.Items[i].ID = fmt.Sprintf("%s%d", prefix, seen[prefix])
	}
}

// Of returns the artefact of a role, nil where there is none that counts.
func Of(list []Artefact, r Role) *Artefact {
	for i := range list {
		if list[i].Role == r && !list[i].Stale {
			return &list[i]
		}
	}
	return nil
}

// Put adds an artefact to a list, in the place of an earlier one of its role.
func Put(list []Artefact, a Artefact) []Artefact {
	out := slices.Clone(list)
	a.Rev = 1
	if at := slices.IndexFunc(out, func(o Artefact) bool { return o.Role == a.Role }); at >= 0 {
		a.Rev = out[at].Rev + 1
		out[at] = a
		return out
	}
	return append(out, a)
}

// Items returns those of a kind of a role's artefact.
func Items(list []Artefact, r Role, kinds ...string) (out []Item) {
	if a := Of(list, r); a != nil {
		for _, i := range a.Items {
			if len(kinds) == 0 || slices.Contains(kinds, i.Kind) {
				out = append(out, i)
			}
		}
	}
	return out
}

// Text is all that an artefact says, an item a line.
func (a *Artefact) Text() string {
	lines := []string{a.Body}
	for _, i := range a.Items {
		lines = append(lines, i.String())
	}
	return strings.Join(lines, "\n")
}

// Check numbers the items and says what is wrong with an artefact. Before are those of the
// roles that have written already; quoted reports whether words stand in the task.
func (a *Artefact) Check(before []Artefact, quoted func(words string) bool) (bad []string) {
	a.number()
	if strings.TrimSpace(a.Body) == "" {
		bad = append(bad, "summary is missing")
	}
	if len(a.Items) == 0 {
		bad = append(bad, "there is no item: submit one at least")
	}
	if len(a.Items) > MaxItems {
		bad = append(bad, fmt.Sprintf("there are %d items, over %d: keep those that matter most", len(a.Items), MaxItems))
	}
	if n := len(a.Text()); n > MaxBody {
		bad = append(bad, fmt.Sprintf("the texts have %d bytes in all, over %d: say it shorter", n, MaxBody))
	}
	for _, i := range a.Items {
		switch {
		case strings.TrimSpace(i.Text) == "":
			bad = append(bad, i.ID+" has no text")
		case a.Role == Analyst && !quoted(i.Quote):
			bad = append(bad, fmt.Sprintf("%s: %.200q does not stand in the task, or is too short: copy the words that it comes from", i.ID, i.Quote))
		case i.Kind == Decision && (i.Why == "" || len(i.Weighed) == 0):
			bad = append(bad, i.ID+" needs why, and at least one other way that was weighed")
		}
	}
	if a.Role == Product {
		bad = append(bad, a.uncovered(Items(before, Analyst))...)
	}
	return bad
}

// uncovered says which criteria are for no requirement, and which requirements have none.
func (a *Artefact) uncovered(requirements []Item) (bad []string) {
	var ids []string
	for _, q := range requirements {
		ids = append(ids, q.ID)
	}
	has := map[string]bool{}
	criteria := 0
	for i := range a.Items {
		c := &a.Items[i]
		if c.Kind == NonGoal {
			continue
		}
		criteria++
		switch {
		case len(ids) == 0:
			c.For = ""
		case !slices.Contains(ids, c.For):
			bad = append(bad, fmt.Sprintf("%s is for %q, which is none of the requirements %s", c.ID, c.For, strings.Join(ids, ", ")))
		}
		has[c.For] = true
	}
	if criteria == 0 && len(a.Items) > 0 {
		bad = append(bad, "criteria are missing: without them nothing can be verified")
	}
	for _, id := range ids {
		if !has[id] {
			bad = append(bad, id+" has no criterion")
		}
	}
	return bad
}
