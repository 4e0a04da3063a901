package upstream

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"forge/pipeline/lazyregexp"
)

// Item is a criterion as it stands.
type Item struct{ ID, Text string }

// Spec is what an answer is held against.
type Spec struct {
	Quotes   func(words string) bool    // whether words stand in the task, and are enough to show something
	Says     func(text string) bool     // whether a text is a whole sentence of the task
	Asked    func(id, text string) bool // whether it is the one that a criterion was written for; nil: nobody knows
	Criteria []Item
	Steps    []string
}

// Of what an agent writes.
const (
	MaxText  = 500 // bytes
	maxSteps = 30
)

// Check says what is wrong with an owner's answer, and drops what does not belong to it.
func (s Spec) Check(f *Feedback, r *Reply) (bad []string) {
	r.Criterion, r.Text, r.Quote, r.Why = strings.TrimSpace(r.Criterion), strings.TrimSpace(r.Text), strings.TrimSpace(r.Quote), strings.TrimSpace(r.Why)
	say := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	if r.Why == "" {
		say("why is missing")
	}
	if len(r.Text) > MaxText || len(r.Quote) > MaxText {
		say("text and quote may have %d bytes each", MaxText)
	}
	if f.Kind == Inconsistency {
		if r.Criterion, r.Quote, r.Steps = "", "", nil; r.Choice != Settle && r.Choice != Fix || r.Choice == Settle && (holders[r.Holds] == "" || r.Text == "") {
			say("an inconsistency is settled by one side that holds, and what the other says instead")
		}
		return bad
	}
	if f.Kind == Infeasible && r.Choice == Design {
		say("there is no plan yet whose steps could change")
	}
	if f.Kind == Uncovered && r.Choice != Add && r.Choice != Limit {
		say("the task asks for what no criterion has: the choice is add, or limit, which a human is asked about")
	}
	old := ""
	switch r.Choice {
	case Clarify, Tighten, Limit:
		r.Steps, r.Quote = nil, ""
		if f.Kind == Uncovered {
			r.Criterion, r.Text = "", ""
			return bad
		}
		i := slices.IndexFunc(s.Criteria, func(c Item) bool { return c.ID == r.Criterion })
		switch {
		case i < 0:
			say("there is no criterion %q", r.Criterion)
			return bad
		case !slices.Contains(f.About, r.Criterion) && !slices.Contains(f.About, Plan):
			say("the feedback is not about %s, but about %s", r.Criterion, strings.Join(f.About, ", "))
		}
		old = s.Criteria[i].Text
		switch {
		case r.Choice == Limit:
			r.Text = ""
		case r.Text == "" || same(r.Text, old):
			say("text must say what %s is to be; it is the same as before, or missing", r.Criterion)
		}
	case Add:
		r.Criterion, r.Steps = "", nil
		if r.Text == "" || slices.ContainsFunc(s.Criteria, func(c Item) bool { return same(c.Text, r.Text) }) {
			say("text must say what the new criterion is; it is missing, or one that there is already")
		}
		if !s.Quotes(r.Quote) {
			say("quote %q does not stand in the task, or is too short: copy the words that ask for it", r.Quote)
		}
	case Design:
		r.Criterion, r.Text, r.Quote = "", "", ""
		long := slices.ContainsFunc(r.Steps, func(step string) bool { return strings.TrimSpace(step) == "" || len(step) > MaxText })
		if len(r.Steps) == 0 || len(r.Steps) > maxSteps || long || slices.EqualFunc(r.Steps, s.Steps, same) {
			say("steps must be all of the plan's as they are to be, 1 to %d of at most %d bytes, and not those that there are", maxSteps, MaxText)
		}
	case Fix:
		r.Criterion, r.Text, r.Quote, r.Steps = "", "", "", nil
	default:
		say("the choice %q is none of %s", r.Choice, strings.Join(Choices(), ", "))
	}
	return bad
}

// Weaker says why an answer may take away from what is asked for; then a human decides. ""
// where it surely does not, which is little: words that weaken a text are endless, in every
// language, so that none are looked for.
func (s Spec) Weaker(r *Reply) string {
	switch r.Choice {
	case Limit:
		return "it takes something away that is asked for"
	case Clarify, Tighten:
		i := slices.IndexFunc(s.Criteria, func(c Item) bool { return c.ID == r.Criterion })
		verbatim := i >= 0 && s.Asked != nil && s.Asked(r.Criterion, r.Text) && !s.names(r.Text)
		if !verbatim {
			return "another text of a criterion may ask for less"
		}
	case Add:
		switch {
		case s.names(r.Text):
			return "the new criterion names another, and may take something away from it"
		case s.Says == nil || !s.Says(r.Text):
			return "the new criterion is not a whole sentence of the task, and may take something away from the others"
		}
	case Design:
		for _, step := range r.Steps {
			if !slices.ContainsFunc(s.Steps, func(old string) bool { return same(old, step) }) && s.names(step) {
				return fmt.Sprintf("the new step %q names a criterion, and may leave it out", oneLine(step))
			}
		}
	}
	return ""
}

// Unconfirmed says why an answer that the rules let pass is a human's all the same, or "":
// who checks it, another than who gave it, has to agree.
func (r *Reply) Unconfirmed() string {
	switch {
	case !r.Choice.Checked():
		return ""
	case r.Objection != "":
		return "the " + Reviewer + ", who checked the answer, says: " + oneLine(r.Objection)
	case !r.Confirmed:
		return "nobody has confirmed that the answer takes nothing away"
	}
	return ""
}

// Checked reports whether an answer changes what is asked for or how, so that another agent
// has to agree.
func (c Choice) Checked() bool { return c == Add || c == Clarify || c == Tighten || c == Design }

// names reports whether a text names a criterion: AC1, ac 1, AC-1.
func (s Spec) names(text string) bool {
	return slices.ContainsFunc(s.Criteria, func(c Item) bool {
		return slices.ContainsFunc(named.FindAllString(text, -1), func(m string) bool { return strings.EqualFold(bare(m), bare(c.ID)) })
	})
}

// named finds what may be an id, and bare leaves out what may stand within one.
var named = lazyregexp.New(`[\p{L}]+[\s_.#-]*\d+`)

func bare(id string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return c
		}
		return -1
	}, id)
}

// same reports whether two texts differ in nothing but case, white space and a last point.
func same(a, b string) bool {
	return strings.EqualFold(strings.TrimSuffix(oneLine(a), "."), strings.TrimSuffix(oneLine(b), "."))
}

// Same is same for lists and texts outside of here.
func Same(a, b []string) bool { return slices.EqualFunc(a, b, same) }
