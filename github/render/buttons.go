package render

import (
	"strconv"
	"strings"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/text"

	gh "github.com/google/go-github/v62/github"
)

// GitHub's limits on the buttons of a check run, in characters.
const (
	maxButtons     = 3
	maxButtonLabel = 20
	maxButtonText  = 40
	maxButtonName  = 20
)

// buttonWords are what the buttons of known choices say. Others say their name.
var buttonWords = map[string][2]string{
	"continue":  {"Continue", "Go on for one more iteration"},
	"raise":     {"Raise the budget", "Raise the budget and go on"},
	"approve":   {"Approve", "You have looked: go on"},
	"take-over": {"Take over", "Stop, to mend it by hand"},
	"later":     {"Later", "Leave it out; an issue keeps it"},
	"without":   {"Without", "Leave it out; revise the plan"},
	"accept":    {"Accept", "Take it as it is, with known issues"},
	"history":   {"History", "Show everything that was tried"},
	"cancel":    {"Cancel", "Give it up"},
}

// buttons are the choices of the open gate that need no words of a person's, as
// buttons of the check run. A number is 1. Each name ends with the number of its
// gate, so that a press on a page of yesterday does not answer today's question.
func (v Renderer) buttons() []*gh.CheckRunAction {
	g := v.Run.Gate()
	if g == nil || v.Run.State.Ended() {
		return nil
	}
	var out []*gh.CheckRunAction
	var history *gh.CheckRunAction
	for _, c := range g.Choices {
		b := button(g, c)
		switch {
		case b == nil:
		case c.Name == "history": // the least of them: a link shows it as well
			history = b
		case len(out) < maxButtons:
			out = append(out, b)
		}
	}
	if history != nil && len(out) < maxButtons {
		out = append(out, history)
	}
	return out
}

func button(g *pipeline.Gate, c pipeline.Choice) *gh.CheckRunAction {
	name := c.Name
	switch _, err := strconv.Atoi(c.Arg); {
	case c.Arg == "":
	case c.Arg == "N":
		name += ":1"
	case err == nil:
		name += ":" + c.Arg
	default:
		return nil // it takes words
	}
	name += "@" + strings.TrimPrefix(g.ID, "gate/")
	words, known := buttonWords[c.Name]
	if !known && c.Name != "" {
		words = [2]string{strings.ToUpper(c.Name[:1]) + c.Name[1:], c.Label}
	}
	if c.Name == "continue" && g.Guard != nil {
		switch g.Guard.Name {
		case pipeline.GuardFaults, pipeline.GuardPublish, pipeline.GuardNoTests:
			words = [2]string{"Try again", "Try again, now that it is mended"}
		}
	}
	b := &gh.CheckRunAction{Label: clip(words[0], maxButtonLabel), Description: clip(words[1], maxButtonText), Identifier: name}
	if !command.Button.MatchString(name) || len(name) > maxButtonName || b.Label == "" || b.Description == "" {
		return nil
	}
	return b
}

// clip cuts a line to n bytes at the end of a word.
func clip(s string, n int) string {
	s = text.OneLine(Visible(s))
	if len(s) <= n {
		return s
	}
	s = strings.ToValidUTF8(s[:n], "")
	if i := strings.LastIndexByte(s, ' '); i > 0 {
		s = s[:i]
	}
	return strings.TrimRight(s, " ,;:")
}
