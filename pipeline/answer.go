package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// gateWords are the commands that only answer a question.
var gateWords = []string{"continue", "accept", "choose", "approve", "raise", "take-over", "simplify"}

// Answer turns a slash command into what it does to the run: the events to append
// (their IDs are unique within one command) and the text to reply with, "" for
// none. The caller has checked that the actor may command (write access) at this
// very moment.
func (r *Run) Answer(cmd SlashCommand, actor Actor, via string, comment int64, at time.Time) ([]Event, string) {
	if cmd.Error != "" {
		return nil, cmd.Error
	}
	a := &Answer{Choice: cmd.Name, Text: strings.TrimSpace(cmd.Text), By: actor, Via: via, Comment: comment, At: at}
	switch cmd.Name {
	case "status":
		return nil, r.Summary()
	case "help":
		return nil, Help()
	case "explain":
		return nil, Explain(r)
	case "history":
		if g := r.Gate(); g == nil || !g.accepts("history") {
			return nil, Scratchpad(r)
		}
	}
	if cmd.Name == "retry" { // another word for what makes it go on
		cmd.Name = "continue"
		if r.State == StateStopped {
			cmd.Name = "resume"
		}
		a.Choice = cmd.Name
	}
	if text := r.tooLate(cmd); text != "" {
		return nil, text
	}
	ev := func(t EventType) Event {
		return Event{ID: string(t), Type: t, Source: "human:" + actor.Login, Time: at, Data: Data{Answer: a}}
	}
	switch cmd.Name {
	case "stop":
		if r.State == StateStopped {
			return nil, "This run is stopped already. `/forge resume` lets it go on."
		}
		return []Event{ev(EventRunStopped)}, ""
	case "resume":
		if r.State != StateStopped {
			return nil, "This run is not stopped: " + r.Summary()
		}
		return []Event{ev(EventRunResumed)}, ""
	case "reset":
		return []Event{ev(EventRunReset)}, ""
	case "cancel":
		return []Event{ev(EventRunCancelled)}, ""
	}
	g := r.Gate()
	if g == nil {
		return nil, "Nothing waits for an answer: " + r.Summary()
	}
	a.Gate = g.ID
	if !g.accepts(cmd.Name) {
		return nil, fmt.Sprintf("`%s` is not one of the choices here. They are: %s.", cmd.Name, g.words())
	}
	if wrong := g.read(a, cmd); wrong != "" {
		return nil, wrong
	}
	if cmd.Name == "accept" {
		return []Event{ev(EventGateAnswered), ev(EventGateOverride), ev(EventRunAccepted)}, ""
	}
	return []Event{ev(EventGateAnswered)}, ""
}

// tooLate is the answer to a command that comes after the matter was settled: by
// the run's end, or by somebody else's answer.
func (r *Run) tooLate(cmd SlashCommand) string {
	if r.State.Ended() {
		return fmt.Sprintf("Run %d has ended (%s: %s), so `%s` changes nothing. Take the label off and put it on again to start a new run.", r.ID, r.State, r.Ended, cmd.Name)
	}
	g := r.Gate()
	if g != nil && (cmd.Gate == "" || cmd.Gate == g.ID) || !slices.Contains(gateWords, cmd.Name) {
		return ""
	}
	for i := len(r.Gates) - 1; i >= 0; i-- {
		past := &r.Gates[i]
		if !past.Closed || len(past.Answers) == 0 || cmd.Gate != "" && past.ID != cmd.Gate {
			continue
		}
		a := past.Answers[len(past.Answers)-1]
		return fmt.Sprintf("Thank you, but that question was answered already: %s said `%s` on %s. So `%s` changes nothing now. %s",
			a.By.Login, a.Choice, a.At.UTC().Format("2006-01-02 15:04 UTC"), cmd.Name, r.Summary())
	}
	return ""
}

// Help lists the commands.
func Help() string {
	return "Forge understands, as the first line of a comment by someone with write access:\n\n" +
		"| command | what it does |\n| --- | --- |\n" +
		"| `/forge run` | start work on this issue |\n" +
		"| `/forge status` · `/forge explain` | where the run stands, and why |\n" +
		"| `/forge stop` · `/forge resume` | pause it, let it go on |\n" +
		"| `/forge continue N` | N more iterations; words on further lines go along |\n" +
		"| `/forge retry` | try again what broke down, or was stopped |\n" +
		"| `/forge accept` | take it as it is, with its known issues |\n" +
		"| `/forge choose OPTION` | answer a question |\n" +
		"| `/forge approve` · `/forge approve all` | let a step begin; all later ones, too |\n" +
		"| `/forge raise USD` | raise the budget |\n" +
		"| `/forge take-over` | stop, to mend it by hand on the branch |\n" +
		"| `/forge simplify WORDS` | plan again with a simpler specification |\n" +
		"| `/forge reset` | let the guards count from the beginning |\n" +
		"| `/forge history` | everything that was tried |\n" +
		"| `/forge cancel` | give it up |\n" +
		"| `/forge memory` · `/forge memory WORDS` | what Forge remembers of this repository, about the words |\n" +
		"| `/forge remember WORDS` | tell it something to remember |\n" +
		"| `/forge forget ID` | take a learning out of use |\n"
}
