// Package upstream is what an agent tells those whose decisions it builds on: that
// something cannot be, was missed, or is not met again. The owner revises what it
// decided, or a human is asked. It holds the words for that, the states that a feedback
// goes through, and the rules by which an answer is judged without a model.
package upstream

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// State says where a feedback stands.
type State string

// The states of a feedback.
const (
	Idle       State = ""           // there is none
	Notifying  State = "notifying"  // it is shown to people; nothing else of the run begins
	Waiting    State = "waiting"    // for its owner
	Resolving  State = "resolving"  // the owner is at it
	Validating State = "validating" // code looks at the answer
	Resolved   State = "resolved"   // the run goes on with the decision
	Escalating State = "escalating" // a human decides
)

// Event is what may happen to a feedback.
type Event string

// The events.
const (
	Raised       Event = "raised"
	Notified     Event = "notified"
	Acknowledged Event = "acknowledged" // its owner has begun
	Answered     Event = "answered"
	TimedOut     Event = "timed_out"
	Failed       Event = "failed"   // its owner broke down
	Accepted     Event = "accepted" // by the rules, or a human has chosen
	Rejected     Event = "rejected" // no agent may decide it
)

// table is all that can happen.
var table = map[State]map[Event]State{
	Idle:       {Raised: Notifying},
	Notifying:  {Notified: Waiting, Rejected: Escalating},
	Waiting:    {Acknowledged: Resolving, TimedOut: Escalating},
	Resolving:  {Answered: Validating, TimedOut: Escalating, Failed: Escalating},
	Validating: {Accepted: Resolved, Rejected: Escalating},
	Escalating: {Accepted: Resolved},
}

// After is the state after an event; one that does not fit changes nothing.
func (s State) After(e Event) State {
	if to, fits := table[s][e]; fits {
		return to
	}
	return s
}

// Open reports whether the run has to wait for it.
func (s State) Open() bool { return s != Idle && s != Resolved }

// Severity is how much a feedback keeps its sender from going on.
type Severity string

// The severities.
const (
	Low      Severity = "low"
	Medium   Severity = "medium"
	High     Severity = "high"
	Critical Severity = "critical"
	Blocking Severity = "blocking"
)

// Severities lists them, from harmless to worst.
func Severities() []string {
	return []string{string(Low), string(Medium), string(High), string(Critical), string(Blocking)}
}

// Waits reports whether it is soon enough before the run is verified.
func (s Severity) Waits() bool { return s == Low || s == Medium }

// Kind says what a feedback is.
type Kind string

// The kinds.
const (
	Constraint   Kind = "constraint"   // what is wanted cannot be built as it is planned
	Missed       Kind = "missed"       // a criterion is not met, again
	Uncovered    Kind = "uncovered"    // the task asks for what no criterion has
	Contradicted Kind = "contradicted" // a test asks for the contrary of a criterion
	Quality      Kind = "quality"      // a gate of quality is missed that others than the implementer answer for

	// Before the plan, on the full track.
	Infeasible    Kind = "infeasible"    // a criterion cannot be met, says who designs it
	Inconsistency Kind = "inconsistency" // what was written at the same time contradicts itself
)

// Early reports whether it is about what roles wrote, which no plan has taken in yet.
func (k Kind) Early() bool { return k == Infeasible || k == Inconsistency }

// The roles that raise and answer on the quick track.
const (
	Implementer = "implementer"
	Reviewer    = "reviewer"
	Tester      = "tester"
	Planner     = "planner"

	Architect = "architect"
	UX        = "ux"
	Alignment = "alignment"           // holds what is written at the same time against each other
	Sides     = Architect + ", " + UX // who answer for it, together
)

// Plan stands among what a feedback is about for the plan as a whole.
const Plan = "plan"

// Option is a way out, as who raises a feedback sees it.
type Option struct {
	Text   string `json:"text"`
	Effort string `json:"effort,omitempty"` // low, medium, high
	Impact string `json:"impact,omitempty"` // what follows from it
}

// String is the option in a line.
func (o Option) String() string {
	var more []string
	if o.Effort != "" {
		more = append(more, "effort "+o.Effort)
	}
	if o.Impact != "" {
		more = append(more, o.Impact)
	}
	if len(more) == 0 {
		return o.Text
	}
	return o.Text + " (" + strings.Join(more, "; ") + ")"
}

// Ask is what an agent wants to be told to the owner.
type Ask struct {
	About    []string `json:"about,omitempty"` // ids of criteria, or Plan
	Text     string   `json:"text"`
	Severity Severity `json:"severity,omitempty"`
	Quote    string   `json:"quote,omitempty"` // of what is uncovered: the task's own words
	Options  []Option `json:"options,omitempty"`
}

// Feedback is one matter on its way to a decision.
type Feedback struct {
	ID   string `json:"id"` // "up/1"
	Kind Kind   `json:"kind,omitempty"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	Ask
	Part      string `json:"part,omitempty"` // the module whose agents say it to the run that planned it
	Told      bool   `json:"told,omitempty"` // then: the module has the decision
	Iteration int    `json:"iteration,omitempty"`
	Source    string `json:"source,omitempty"` // the execution whose result it is of
	Head      string `json:"head,omitempty"`   // the commit that was made when it was raised: it can be judged as it is

	State    State     `json:"state,omitempty"`
	Raised   time.Time `json:"raised,omitzero"`
	Notified time.Time `json:"notified,omitzero"`
	Taken    time.Time `json:"taken,omitzero"` // when its owner began
	Done     time.Time `json:"done,omitzero"`
	Until    time.Time `json:"until,omitzero"` // its owner's time limit
	Why      string    `json:"why,omitempty"`  // why a human is asked
	Reply    *Reply    `json:"reply,omitempty"`
	Decision *Reply    `json:"decision,omitempty"` // what was decided: the owner's reply, or a human's choice
	Was      string    `json:"was,omitempty"`      // the text of the criterion before it

	Says [2]string `json:"says,omitzero"` // of an inconsistency: the words of the architect, and of the designer of the user interface
}

// Who is who says it, for people.
func (f *Feedback) Who() string {
	if f.Part != "" {
		return f.From + " of the module " + f.Part
	}
	return f.From
}

// Apart reports whether it is about no iteration of the run that decides it.
func (f *Feedback) Apart() bool { return f.Kind.Early() || f.Part != "" }

// OfTests reports whether it comes of the tests: the work goes back with what failed, whatever
// is decided.
func (k Kind) OfTests() bool { return k == Contradicted || k == Quality }

// Choice says how a feedback is decided.
type Choice string

// The choices. Only a human may take what is asked for away.
const (
	Fix     Choice = "fix"     // all stays as it is: the implementer goes on, with what is said
	Add     Choice = "add"     // a criterion that was missing
	Clarify Choice = "clarify" // a criterion says more exactly what it said
	Tighten Choice = "tighten" // a criterion asks for more
	Design  Choice = "design"  // other steps to the same end
	Limit   Choice = "limit"   // a known limitation: nobody checks the criterion any more
	Settle  Choice = "settle"  // of an inconsistency: one side holds, the other says something else
)

// Choices lists them, except Settle, which an inconsistency alone has.
func Choices() []string {
	return []string{string(Fix), string(Add), string(Clarify), string(Tighten), string(Design), string(Limit)}
}

// Reply is an answer.
type Reply struct {
	Choice    Choice   `json:"choice"`
	Criterion string   `json:"criterion,omitempty"`
	Text      string   `json:"text,omitempty"`  // the criterion's, as it is to be
	Quote     string   `json:"quote,omitempty"` // of an added one: the task's own words
	Steps     []string `json:"steps,omitempty"` // the plan's, all of them
	Why       string   `json:"why,omitempty"`
	Weighed   []string `json:"weighed,omitempty"`   // what else there was, and why not
	Confirmed bool     `json:"confirmed,omitempty"` // by who checked it: it takes nothing away
	Objection string   `json:"objection,omitempty"` // of who checked it
	By        string   `json:"by,omitempty"`        // the role, or the human's login
	Human     bool     `json:"human,omitempty"`
	Again     bool     `json:"again,omitempty"` // of fix, where nothing waited for it: the work goes on with its words all the same
	Holds     string   `json:"holds,omitempty"` // of what is settled: the role that is right; Text is what the other says instead
}

// holders are what the two roles that a clash is between have written.
var holders = map[string]string{Architect: "design", UX: "user interface"}

// String says in a sentence what is decided.
func (r *Reply) String() string {
	said := ""
	switch r.Choice {
	case Fix:
		said = fmt.Sprintf("all stays as it is, and the %s goes on", cmp.Or(r.Holds, Implementer))
	case Add:
		said = fmt.Sprintf("the criterion %s is added: %s", cmp.Or(r.Criterion, "that was missing"), r.Text)
	case Clarify:
		said = fmt.Sprintf("%s says more exactly: %s", r.Criterion, r.Text)
	case Tighten:
		said = fmt.Sprintf("%s asks for more: %s", r.Criterion, r.Text)
	case Design:
		said = "the plan has other steps: " + strings.Join(r.Steps, "; ")
	case Settle:
		said = fmt.Sprintf("the %s holds; instead of the other: %s", holders[r.Holds], r.Text)
	case Limit:
		said = fmt.Sprintf("%s is a known limitation, and is not checked", cmp.Or(r.Criterion, "what is asked for"))
	}
	if r.Why != "" {
		said += " (" + r.Why + ")"
	}
	return said
}

// String is a decided feedback for people and prompts. What an agent says stands in quotes:
// it is a claim, and what the planner tells the implementer is for nobody else.
func (f *Feedback) String() string {
	s := fmt.Sprintf("%s, the %s%s says: %q.", f.ID, f.Who(), f.on(), oneLine(f.Text))
	d := f.Decision
	switch {
	case d == nil:
		return s
	case d.Human:
		s += fmt.Sprintf(" Decided by %s: %s.", d.By, oneLine(d.String()))
	default:
		bare := *d
		bare.Why = ""
		s += fmt.Sprintf(" Decided by %s: %s.", d.By, oneLine(bare.String()))
		if d.Choice != Fix {
			s += fmt.Sprintf(" Its reason: %q.", oneLine(d.Why))
		}
	}
	if len(d.Weighed) > 0 && (d.Human || d.Choice != Fix) {
		s += fmt.Sprintf(" Weighed: %q.", oneLine(strings.Join(d.Weighed, "; ")))
	}
	return s
}

// Advice is what an owner told the implementer, or the architect before, where all stays as
// it is; "" for nothing.
func (f *Feedback) Advice() string {
	if d := f.Decision; d != nil && d.Choice == Fix && !d.Human && d.Why != "" {
		return fmt.Sprintf("The %s on %s, which changes no criterion: %q.", d.By, f.ID, oneLine(d.Why))
	}
	return ""
}

// oneLine is text.OneLine: importing text would put this package a step too deep for those
// above pipeline.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Sentence is a text with the point that a sentence ends in.
func Sentence(s string) string {
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".?!") {
		return s
	}
	return s + "."
}

func (f *Feedback) on() string {
	if len(f.About) == 0 {
		return ""
	}
	return " on " + strings.Join(f.About, ", ")
}

// Offer is one answer that a human can give, by its letter.
type Offer struct {
	Letter, Label string
	Reply         Reply
}

// Offers are the answers that a human is shown: what the owner recommends, the ways out
// of who raised it, a limitation, and that all stays as it is.
func (f *Feedback) Offers() []Offer {
	var out []Offer
	offer := func(label string, r Reply) {
		out = append(out, Offer{Letter: string(rune('a' + len(out))), Label: label, Reply: r})
	}
	if f.Reply != nil {
		offer(fmt.Sprintf("as the %s recommends: %s", f.To, oneLine(f.Reply.String())), *f.Reply)
	}
	if f.Kind == Inconsistency {
		for i, holds := range []string{Architect, UX} {
			offer(fmt.Sprintf("the %s holds: %s", holders[holds], f.Says[i]), Reply{Choice: Settle, Holds: holds, Text: f.Says[i]})
		}
		return out
	}
	for _, o := range f.Options {
		offer(o.String(), Reply{Choice: Fix, Why: o.Text})
	}
	recommended := f.Reply != nil && f.Reply.Choice == Limit
	for _, id := range f.About {
		if id != Plan && !(recommended && f.Reply.Criterion == id) {
			offer(id+" is a known limitation, in your name: nobody checks it", Reply{Choice: Limit, Criterion: id})
		}
	}
	if f.Kind == Uncovered && !recommended {
		offer("it is left out, in your name: "+oneLine(f.Quote), Reply{Choice: Limit})
	}
	goesOn := Implementer
	if f.Kind == Infeasible {
		goesOn = f.From
	}
	offer("all stays as it is: the "+goesOn+" goes on", Reply{Choice: Fix})
	return out
}

// Chosen is what a human's words choose: the letter of an offer, alone on its line, with
// words on further ones, or words of their own. Wrong says what is wrong with them.
func (f *Feedback) Chosen(words string) (r Reply, wrong string) {
	first, rest, _ := strings.Cut(strings.TrimSpace(words), "\n")
	name, more, _ := strings.Cut(strings.Trim(first, " .`\"'()"), " ")
	if len(name) != 1 {
		return Reply{Choice: Fix, Why: strings.TrimSpace(words)}, ""
	}
	offers := f.Offers()
	i := slices.IndexFunc(offers, func(o Offer) bool { return strings.EqualFold(o.Letter, name) })
	if i < 0 || more != "" {
		return Reply{}, fmt.Sprintf("%q is no letter of an answer", first)
	}
	r = offers[i].Reply
	if rest = strings.TrimSpace(rest); rest != "" {
		r.Why = rest
	}
	return r, ""
}

// Way is the way out that a letter stands for which comes with words on further lines; ""
// where there is none, or the words alone say all.
func (f *Feedback) Way(words string) string {
	letter, more, _ := strings.Cut(strings.TrimSpace(words), "\n")
	bare, wrong := f.Chosen(letter)
	if wrong != "" || strings.TrimSpace(more) == "" || bare.Choice != Fix {
		return ""
	}
	return bare.Why
}
