package upstream

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Item is a criterion as it stands.
type Item struct{ ID, Text string }

// Spec is what an answer is held against.
type Spec struct {
	Quotes   func(words string) bool // whether words stand in the task
	Criteria []Item
	Steps    []string
}

// Of what an agent writes.
const (
	maxText  = 500
	maxSteps = 30
)

// Check says what is wrong with an owner's answer, and drops what does not belong to it.
func (s Spec) Check(f *Feedback, r *Reply) (bad []string) {
	r.Criterion, r.Text, r.Quote, r.Why = strings.TrimSpace(r.Criterion), strings.TrimSpace(r.Text), strings.TrimSpace(r.Quote), strings.TrimSpace(r.Why)
	say := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	if r.Why == "" {
		say("why is missing")
	}
	if len(r.Text) > maxText || len(r.Quote) > maxText {
		say("text and quote may have %d bytes each", maxText)
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
			say("quote %q does not stand in the task: copy the words that ask for it", r.Quote)
		}
	case Design:
		r.Criterion, r.Text, r.Quote = "", "", ""
		long := slices.ContainsFunc(r.Steps, func(step string) bool { return strings.TrimSpace(step) == "" || len(step) > maxText })
		if len(r.Steps) == 0 || len(r.Steps) > maxSteps || long || slices.EqualFunc(r.Steps, s.Steps, same) {
			say("steps must be all of the plan's as they are to be, 1 to %d of at most %d bytes, and not those that there are", maxSteps, maxText)
		}
	case Fix:
		r.Criterion, r.Text, r.Quote, r.Steps = "", "", "", nil
	default:
		say("the choice %q is none of %s", r.Choice, strings.Join(Choices(), ", "))
	}
	return bad
}

// Weaker says why an answer takes away from what is asked for, as far as that can be
// seen; then a human decides. "" for one that does not.
func (s Spec) Weaker(r *Reply) string {
	switch r.Choice {
	case Limit:
		return "it takes something away that is asked for"
	case Clarify, Tighten:
		for _, c := range s.Criteria {
			if c.ID == r.Criterion {
				return weaker(c.Text, r.Text)
			}
		}
	}
	return ""
}

// fillers say nothing about what a criterion asks for.
var fillers = strings.Fields("a an the is are be been of to in on it its and with for by as that this")

// hedges take something back, wherever they stand.
var hedges = strings.Fields(`when if unless except only where optional optionally may might should could can cannot not no without limitation best
	effort possible possibly later future either or some most usually normally typically often mostly about approximately roughly until but
	instead sometimes ideally attempt attempts try tries preferably partially partly % percent`)

var (
	token  = regexp.MustCompile(`[\p{L}][\p{L}\p{N}_'-]*|\d+(?:[.,]\d+)*|[<>≤≥%]=?`)
	atMost = strings.Fields("within under below most maximum max less fewer up ≤ < <=")
	least  = strings.Fields("least over above minimum min more ≥ > >=")
)

// weaker compares two texts of a criterion. A new one may add to the old one: it keeps
// each word that says something, adds none that takes something back, and a number that
// changes goes to the strict side of the bound that it is.
func weaker(old, now string) string {
	was, is := token.FindAllString(strings.ToLower(old), -1), token.FindAllString(strings.ToLower(now), -1)
	for _, w := range was {
		if !number(w) && !slices.Contains(fillers, w) && !slices.Contains(is, w) {
			return fmt.Sprintf("the new text drops %q", w)
		}
	}
	for _, w := range is {
		if slices.Contains(hedges, w) && count(is, w) > count(was, w) {
			return fmt.Sprintf("the new text adds %q, which may take something back", w)
		}
	}
	before, after := numbers(was), numbers(is)
	for i, b := range before {
		switch {
		case i >= len(after):
			return fmt.Sprintf("the new text drops %s", b.text)
		case after[i].text == b.text && after[i].unit == b.unit:
		case after[i].unit != b.unit, b.bound == 0, after[i].bound != b.bound,
			b.bound < 0 && after[i].value > b.value, b.bound > 0 && after[i].value < b.value:
			return fmt.Sprintf("%s %s became %s %s", b.text, b.unit, after[i].text, after[i].unit)
		}
	}
	return ""
}

// figure is a number of a criterion, with what stands around it.
type figure struct {
	text, unit string
	value      float64
	bound      int // -1: at most, 1: at least, 0: neither
}

func numbers(tokens []string) (out []figure) {
	for i, t := range tokens {
		if !number(t) {
			continue
		}
		f := figure{text: t}
		f.value, _ = strconv.ParseFloat(strings.ReplaceAll(t, ",", ""), 64)
		if i+1 < len(tokens) {
			f.unit = tokens[i+1]
		}
		for k := i - 1; k >= 0 && k >= i-3 && f.bound == 0; k-- {
			switch {
			case slices.Contains(atMost, tokens[k]):
				f.bound = -1
			case slices.Contains(least, tokens[k]):
				f.bound = 1
			}
			if k > 0 && slices.Contains([]string{"no", "not"}, tokens[k-1]) { // no more than
				f.bound = -f.bound
			}
		}
		out = append(out, f)
	}
	return out
}

func number(t string) bool { return t[0] >= '0' && t[0] <= '9' }

func count(list []string, w string) (n int) {
	for _, s := range list {
		if s == w {
			n++
		}
	}
	return n
}

// same reports whether two texts differ in nothing but case and white space.
func same(a, b string) bool {
	return strings.EqualFold(oneLine(a), oneLine(b))
}

// Same is same for lists and texts outside of here.
func Same(a, b []string) bool { return slices.EqualFunc(a, b, same) }
