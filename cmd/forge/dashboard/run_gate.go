package dashboard

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/text"
)

// gatePanel is the open question of a run, with everything that an answer needs.
type gatePanel struct {
	*pipeline.Gate
	Key     string
	Value   string // what the guard counted
	Limit   string
	Meter   bool
	Tried   []triedRow
	Past    []string // earlier questions and their answers
	Choices []gateChoice
	Words   bool // some choice takes words
	Until   time.Time
	Then    string
	Remind  time.Time
	Form    url.Values // what was written before
}

// gateChoice is one answer as a button.
type gateChoice struct {
	Value string // of the form's field "choice": the command's word and its argument
	Name  string // on the button
	Label string
	Takes string // n, usd, or ""
	Class string
}

// triedRow is one iteration, as far as it matters for what to do next.
type triedRow struct {
	Iteration int
	Did       string
	Brief     string
	By        pipeline.Phase // that sent it back
	Weight    int
	Resolved  bool
	Back      bool
}

// gatePanel makes the panel of the open gate, or nil.
func (p *Pages) gatePanel(run *pipeline.Run, wrong *refusal) *gatePanel {
	g := run.Gate()
	if g == nil {
		return nil
	}
	out := &gatePanel{Gate: g, Key: formKey(), Tried: tried(run), Form: url.Values{}}
	if wrong != nil {
		out.Form = wrong.Form
	}
	if g.Guard != nil && g.Guard.Limit > 0 {
		out.Value, out.Limit, out.Meter = counted(g.Guard, g.Guard.Value), counted(g.Guard, g.Guard.Limit), true
	}
	for _, past := range run.Gates[:len(run.Gates)-1] {
		line := text.Clip(text.FirstLine(past.Question), 2*titleShown)
		for _, a := range past.Answers {
			line += fmt.Sprintf(" %s %s.", a.By.Login, answered(&a))
		}
		out.Past = append(out.Past, line)
	}
	for _, a := range g.Answers {
		out.Past = append(out.Past, fmt.Sprintf("%s %s, and it stayed open.", a.By.Login, answered(&a)))
	}
	for _, c := range g.Choices {
		if choice, ok := choiceOf(c); ok {
			choice.Class = map[string]string{"cancel": "danger"}[c.Name]
			if len(out.Choices) == 0 {
				choice.Class = "main"
			}
			out.Choices = append(out.Choices, choice)
		}
		out.Words = out.Words || slices.Contains([]string{"continue", "choose", "simplify", "accept"}, c.Name)
	}
	out.Until, out.Then = run.Deadline(), "the run is cancelled"
	if at, events := run.Alarm(); len(events) > 0 && events[0].Type == pipeline.EventGateReminded {
		out.Remind = at
	}
	return out
}

// Field is what was written into a field before.
func (g *gatePanel) Field(name string) string { return g.Form.Get(name) }

// counted is a guard's number with its unit.
func counted(g *pipeline.Guard, n int64) string {
	switch g.Unit {
	case "micro-USD":
		return text.USD(n)
	case "":
		return strconv.FormatInt(n, 10)
	}
	return strconv.FormatInt(n, 10) + " " + g.Unit
}

// choiceOf makes a button of a choice. The history stands on the page already.
func choiceOf(c pipeline.Choice) (gateChoice, bool) {
	// The label is written for comments; here words have a field of their own.
	label := strings.ReplaceAll(strings.TrimSuffix(c.Label, "; words on further lines go along"), "`", "")
	label = strings.TrimSuffix(label, ", with your words on further lines")
	out := gateChoice{Value: c.Name, Name: strings.ToUpper(c.Name[:min(1, len(c.Name))]) + c.Name[min(1, len(c.Name)):], Label: label}
	switch c.Name {
	case "history":
		return out, false
	case "continue":
		if c.Arg == "N" {
			out.Takes = "n"
		}
	case "raise":
		out.Takes = "usd"
	case "choose":
		out.Name = "Answer in words"
		if c.Arg != "ANSWER" {
			out.Value, out.Name, out.Label = "choose "+c.Arg, "Choose", c.Arg
		}
	case "simplify":
		out.Name = "Simplify"
	case "take-over":
		out.Name = "Take over"
	case "approve":
		if c.Arg == "all" {
			out.Value, out.Name = "approve all", "Approve all"
		}
	}
	return out, true
}

// tried sums up what was tried, by iteration.
func tried(run *pipeline.Run) (out []triedRow) {
	for i := range run.Iterations {
		it := &run.Iterations[i]
		row := triedRow{Iteration: it.Number, Did: "nothing yet", Brief: it.Brief}
		if it.Impl != nil {
			row.Did = text.Clip(text.FirstLine(it.Impl.Summary), 2*titleShown)
		}
		for _, b := range run.Bounces {
			if b.Iteration == it.Number {
				row.By, row.Weight, row.Resolved, row.Back = b.Phase, b.Weight, b.Resolved, true
				row.Brief = cmp.Or(row.Brief, text.Plural(b.Count, "issue", "issues"))
			}
		}
		out = append(out, row)
	}
	return out
}

// button is something that can be done to a run that has not ended, at any time.
type button struct {
	Key, Choice, Name, Label, Class string
}

// commands lists what can be done to a run beside answering its question.
func commands(run *pipeline.Run) (out []button) {
	if run.State.Ended() {
		return nil
	}
	if run.State == pipeline.StateStopped {
		out = append(out, button{formKey(), "resume", "Resume",
			"go on from here; without it the run is cancelled on " + run.Deadline().UTC().Format("2 January"), "main"})
	} else {
		out = append(out, button{formKey(), "stop", "Stop", "pause it; it can be resumed", ""})
	}
	if len(run.Iterations) > 0 {
		out = append(out, button{formKey(), "reset", "Reset", "let the guards count from the beginning", ""})
	}
	if g := run.Gate(); g != nil && slices.ContainsFunc(g.Choices, func(c pipeline.Choice) bool { return c.Name == "cancel" }) {
		return out // the question has it
	}
	return append(out, button{formKey(), "cancel", "Cancel", "end it; the branch stays", "danger"})
}
