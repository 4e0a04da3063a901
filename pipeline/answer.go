package pipeline

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxGrant is the most iterations that one answer can grant.
const maxGrant = 20

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
	if r.State.Ended() {
		return nil, fmt.Sprintf("Run %d has ended (%s: %s), so `%s` changes nothing. Take the label off and put it on again to start a new run.", r.ID, r.State, r.Ended, cmd.Name)
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
	return g.answer(a, cmd, ev)
}

// answer makes the events of a choice that the gate accepts.
func (g *Gate) answer(a *Answer, cmd SlashCommand, ev func(EventType) Event) ([]Event, string) {
	switch cmd.Name {
	case "continue":
		a.N = 1
		if cmd.Args != "" {
			n, err := strconv.Atoi(cmd.Args)
			if err != nil || n < 1 || n > maxGrant {
				return nil, fmt.Sprintf("`continue` takes a number from 1 to %d, got %q: for example `/forge continue 2`.", maxGrant, cmd.Args)
			}
			a.N = n
		}
	case "choose":
		if cmd.Args == "" {
			return nil, "`choose` takes the answer: `/forge choose OPTION`. " + g.Question
		}
		a.Text = strings.TrimSpace(cmd.Args + "\n" + a.Text)
	case "accept":
		return []Event{ev(EventGateAnswered), ev(EventGateOverride), ev(EventRunAccepted)}, ""
	}
	return []Event{ev(EventGateAnswered)}, ""
}

func (g *Gate) accepts(name string) bool {
	for _, c := range g.Choices {
		if c.Name == name {
			return true
		}
	}
	return false
}

// words lists the gate's choices as commands.
func (g *Gate) words() string {
	var out []string
	for _, c := range g.Choices {
		out = append(out, "`"+c.Command()+"`")
	}
	return strings.Join(out, ", ")
}

// Command returns the choice as people type it.
func (c Choice) Command() string { return strings.TrimSpace("/forge " + c.Name + " " + c.Arg) }

// answered folds an answer into the run: it closes the gate, except that showing
// the history leaves it open, and resets exactly the counter that fired.
func (r *Run) answered(a *Answer) {
	g := r.Gate()
	if a == nil || g == nil || a.Gate != g.ID {
		return
	}
	g.Answers = append(g.Answers, *a)
	if a.Choice == "history" {
		return
	}
	g.Closed = true
	if a.Text != "" {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: %s", a.By.Login, a.Text))
	}
	if r.State == StateWaiting {
		r.State = StateRunning
	}
	if g.Guard != nil && a.Choice != "accept" {
		r.grant(*g.Guard, max(1, a.N))
	}
}

// grant lets the run go on for n more iterations: until then the guards of the
// loop hold still, all of them, because a second one that fires right after the
// first was answered would only ask the same question again. Each iteration
// brings its share of the budget; what else fired is reset, and nothing more.
func (r *Run) grant(g Guard, n int) {
	c, it := &r.Counters, r.Current()
	c.Granted += n
	if it == nil {
		it = &Iteration{} // before the first iteration there is nothing to reset in it
	} else {
		c.Until = it.Number + n
	}
	switch g.Name {
	case GuardFaults, GuardBudget, GuardWall:
		c.Faults, r.Fault = 0, nil
	case GuardPublish:
		c.PublishFaults, r.Fault = 0, nil
	case GuardMoved:
		c.Moved = 0
	case GuardPlan:
		r.Approved = true
	case GuardNoProgress, GuardUnable:
		c.Stale, it.Impl = 0, nil
	case GuardNoTests:
		it.Tests = nil
	case GuardHuman:
		it.Forced = true
	}
}

// Notice turns what happened on GitHub into events of the run, and into the
// outcome of its delivery in words.
func (r *Run) Notice(n Notice, at time.Time) ([]Event, string) {
	ev := func(t EventType, d Data) []Event {
		return []Event{{ID: string(t), Type: t, Source: "human:" + n.Actor.Login, Time: at, Data: d}}
	}
	who := &Answer{By: n.Actor, Via: string(n.Kind), At: at}
	if r.State.Ended() {
		return nil, fmt.Sprintf("run %d has ended: %s", r.ID, r.Ended)
	}
	switch n.Kind {
	case NoticeUnlabelled:
		who.Choice = "cancel"
		return ev(EventRunCancelled, Data{Answer: who, Note: "the label was taken away"}), "run cancelled"
	case NoticeIssueClosed:
		who.Choice = "cancel"
		return ev(EventRunCancelled, Data{Answer: who, Note: "the issue was closed"}), "run cancelled"
	case NoticePullClosed:
		who.Choice = "cancel"
		note := "the pull request was closed"
		if n.Merged {
			who.Choice, note = "accept", "the pull request was merged before it was verified"
			return ev(EventRunAccepted, Data{Answer: who, Note: note}), note
		}
		return ev(EventRunCancelled, Data{Answer: who, Note: note}), "run cancelled"
	case NoticePush:
		if n.Branch != r.Branch {
			return nil, "push to " + n.Branch + ": not the branch of the run"
		}
		if n.Head == r.Head || n.Head == r.Published.Head {
			return nil, "push of what the run knows already"
		}
		actor := n.Actor
		return ev(EventBranchMoved, Data{Head: n.Head, Actor: &actor}), "the run goes on from " + short(n.Head)
	case NoticeIssueEdited:
		task := n.Task
		return ev(EventIssueEdited, Data{Task: &task}), "noted for the next attempt"
	}
	return nil, fmt.Sprintf("a notice of kind %q changes nothing in a run", n.Kind)
}

// Help lists the commands.
func Help() string {
	return "Forge understands, as the first line of a comment by someone with write access:\n\n" +
		"| command | what it does |\n| --- | --- |\n" +
		"| `/forge run` | start work on this issue |\n" +
		"| `/forge status` | where the run stands |\n" +
		"| `/forge stop` · `/forge resume` | pause it, let it go on |\n" +
		"| `/forge continue N` | N more iterations; words on further lines go along |\n" +
		"| `/forge retry` | try again what broke down, or was stopped |\n" +
		"| `/forge accept` | take it as it is, with its known issues |\n" +
		"| `/forge choose OPTION` | answer a question |\n" +
		"| `/forge approve` | approve the plan |\n" +
		"| `/forge history` | everything that was tried |\n" +
		"| `/forge cancel` | give it up |\n"
}
