package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/module"
	"forge/pipeline/text"
	"forge/pipeline/upstream"
)

// Answer turns a slash command into what it does to the run: the events to append
// (their IDs are unique within one command) and the text to reply with, "" for
// none. The caller has checked that the actor may command (write access) at this
// very moment.
func (r *Run) Answer(cmd command.Line, actor Actor, via string, comment int64, at time.Time) ([]Event, string) {
	if cmd.Error != "" {
		return nil, cmd.Error
	}
	if why := r.doubt(cmd, via); why != "" {
		return nil, why
	}
	a := &Answer{Choice: cmd.Name, Text: strings.TrimSpace(cmd.Text), By: actor, Via: via, Comment: comment, At: at}
	if cmd.Part != "" && r.Part == nil {
		return r.toUnbegun(cmd, a)
	}
	switch cmd.Name {
	case "status":
		return nil, r.Summary()
	case "help":
		return nil, command.Help(r.Slug)
	case "explain":
		return nil, r.Explain()
	case "history":
		if g := r.Gate(); g == nil || !g.accepts("history") {
			return nil, r.Scratchpad()
		}
	}
	if cmd.Name == "dismiss" {
		return r.dismissByName(cmd, a)
	}
	if r.State.Ended() {
		if text := r.tooLate(cmd); text != "" && cmd.Gate != "" { // a button of a question that is answered
			return nil, text
		}
		return r.answerAfter(cmd, a)
	}
	if w := r.Await; cmd.Name == "retry" && r.State == StateRunning && w != nil && w.Away() {
		return []Event{{ID: string(EventPhaseWoken), Type: EventPhaseWoken, Source: "human:" + actor.Login, Time: at,
			Data: Data{Actor: &actor, Note: "asked for by " + actor.Login}}}, a.reply("It is tried again now.")
	}
	if g := r.Gate(); cmd.Name == "retry" && !(g != nil && g.accepts("retry") && r.State == StateWaiting) { // another word for what makes it go on
		cmd.Name = "continue"
		if r.State == StateStopped {
			cmd.Name = "resume"
		}
		a.Choice = cmd.Name
	}
	if cmd.Name == "approve" && cmd.Args == "all" && cmd.Gate == "" && r.Gate() == nil && r.Config.Mode == config.ModeManual {
		return r.approveAhead(a)
	}
	if text := r.tooLate(cmd); text != "" {
		return nil, text
	}
	switch cmd.Name {
	case "stop":
		if r.State == StateStopped {
			return nil, "This run is stopped already. " + r.typed("resume") + " lets it go on."
		}
		return []Event{answering(EventRunStopped, a)}, ""
	case "resume":
		if r.State != StateStopped {
			return nil, "This run is not stopped: " + r.Summary()
		}
		return []Event{answering(EventRunResumed, a)}, a.reply(r.resumed())
	case "reset":
		return []Event{answering(EventRunReset, a)}, a.reply(fmt.Sprintf("%s: the guards count from the beginning, as of now.", r.called()))
	case "cancel":
		return []Event{answering(EventRunCancelled, a)}, ""
	}
	g := r.Gate()
	if g == nil {
		for _, p := range r.Parts {
			if p.Gate != "" && p.Left == "" {
				return nil, fmt.Sprintf("The run itself asks nothing; its module %s does: answer with its name, as in %s.", p.ID, r.typed(p.ID+" "+cmd.Name))
			}
		}
		return nil, "Nothing waits for an answer: " + r.Summary()
	}
	a.Gate = g.ID
	if !g.accepts(cmd.Name) {
		return nil, fmt.Sprintf("`%s` is not one of the choices here. They are: %s.", cmd.Name, g.words(r.Slug))
	}
	if wrong := g.read(a, cmd, r.Slug); wrong != "" {
		return nil, wrong
	}
	if why := r.undecided(g, a, cmd.Text); why != "" {
		return nil, why
	}
	if p := r.leavable(g.Guard); p != nil && (cmd.Name == module.Later || cmd.Name == module.Without) {
		left := answering(EventModuleLeft, a)
		left.Data.Part = &module.Part{ID: p.ID, Left: "left out by " + actor.Login, How: cmd.Name, By: actor.Login}
		return []Event{answering(EventGateAnswered, a), left}, ""
	}
	if cmd.Name == module.Later || cmd.Name == module.Without {
		return []Event{answering(EventGateAnswered, a), answering(EventRunCancelled, a)}, ""
	}
	if cmd.Name == "accept" {
		return []Event{answering(EventGateAnswered, a), answering(EventGateOverride, a), answering(EventRunAccepted, a)}, ""
	}
	return []Event{answering(EventGateAnswered, a)}, a.reply(r.goesOn(g, a))
}

// approveAhead lets all later steps begin in manual mode, said while no step waits for it:
// a module may be at work for an hour before the next question.
func (r *Run) approveAhead(a *Answer) ([]Event, string) {
	if r.ApprovedStep == everyStep {
		return nil, "Every later step may begin already. " + r.Summary()
	}
	a.N = -1
	words := r.called() + " no longer waits for a word before a step."
	if r.State == StateStopped {
		words += " It is still stopped: " + r.typed("resume") + " lets it go on."
	}
	return []Event{answering(EventGateAnswered, a)}, a.reply(words)
}

// doubt is [command.Line.Doubt] for what came in words. A box and a button are pressed
// by whoever means it, and a replay repeats what was taken.
func (r *Run) doubt(cmd command.Line, via string) string {
	switch via {
	case "comment":
		return cmd.Doubt(r.Slug, command.Below)
	case "cli":
		return cmd.Doubt(r.Slug, "behind `--words`")
	}
	return ""
}

// undecided says why the words of a choice choose nothing, or "". One of a fixed text or a
// letter is a decision, so that words which may turn it around are asked about; words of
// one's own go to the implementer as they are, unless they ask something. The way out that a
// letter stands for is kept with the answer: words on further lines say more of it.
func (r *Run) undecided(g *Gate, a *Answer, below string) string {
	f := r.Feedback()
	switch {
	case a.Choice != "choose":
		return ""
	case g.Guard != nil && g.Guard.Name == GuardSplit:
		return r.takenBack(onePiece, below, a.Via)
	case f == nil:
		return ""
	}
	notes := map[string]string{"cli": "behind `--words`", "dashboard": "in the field for words"}[a.Via]
	notes = cmp.Or(notes, command.Below)
	offers := f.Offers()
	how := fmt.Sprintf("write one letter alone, from a to %s, with words %s, or in words of your own how the implementer is to go on",
		offers[len(offers)-1].Letter, notes)
	first, note, _ := strings.Cut(a.Text, "\n")
	token, _, _ := strings.Cut(strings.TrimSpace(first), " ")
	bare := strings.TrimFunc(token, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	d, wrong := f.Chosen(a.Text)
	letter := utf8.RuneCountInString(bare) == 1
	switch {
	case command.Asks(first), !letter && command.Asks(note):
		return fmt.Sprintf("Nothing was done: a question decides nothing. To decide, %s.", how)
	case wrong != "", letter && d.Why == strings.TrimSpace(a.Text), !letter && aboutLetter(f, first):
		return fmt.Sprintf("Nothing was done: `choose` is %.100q; %s.", first, how)
	case letter:
		a.Way = f.Way(a.Text)
		return r.takenBack(strings.ToLower(bare), note, a.Via)
	}
	return ""
}

// aboutLetter reports whether words end with a letter of the ways out: the implementer, to whom
// words go, has never seen the letters.
func aboutLetter(f *upstream.Feedback, words string) bool {
	list := strings.FieldsFunc(words, func(c rune) bool { return !unicode.IsLetter(c) })
	return len(list) > 0 && slices.ContainsFunc(f.Offers(), func(o upstream.Offer) bool { return strings.EqualFold(o.Letter, list[len(list)-1]) })
}

// takenBack says by what words seem to take a choice back that is more than words, or "".
func (r *Run) takenBack(choice, note, via string) string {
	seen := command.TurnsAround(r.Slug, note)
	if seen == "" || via != "comment" && via != "cli" { // a box and a button are pressed by whoever means it
		return ""
	}
	return fmt.Sprintf("Nothing was done: the words that came with %s may take it back, because they %s. If you mean it, give it without them.",
		r.typed("choose "+choice), seen)
}

// Handle is the name by which people dismiss a finding of the run from anywhere, the
// same for as long as the run lives; "" for what is none of its findings.
func (r *Run) Handle(fingerprint string) string {
	for i := range r.Findings {
		if r.Findings[i].Fingerprint() == fingerprint {
			return fmt.Sprintf("F%d", i+1)
		}
	}
	return ""
}

// dismissByName dismisses an open finding in the name of somebody with write access: for
// what has no thread to reply in, and for what the tests say of the change.
func (r *Run) dismissByName(cmd command.Line, a *Answer) ([]Event, string) {
	name, why, _ := strings.Cut(cmd.Args, " ")
	var open []string
	for i := range r.Findings {
		is := &r.Findings[i]
		if is.State != IssueOpen || r.State.Ended() {
			continue
		}
		handle := fmt.Sprintf("F%d", i+1)
		if open = append(open, handle); !strings.EqualFold(handle, name) {
			continue
		}
		about := *is.Finding
		s := Signal{Key: fmt.Sprintf("dismissed/%d/%s", r.ID, is.Fingerprint()), Kind: SignalDismissed, At: a.At, Actor: a.By, Weight: 1, Finding: is.Fingerprint(),
			File: about.File, Line: about.Line, Text: strings.TrimSpace(why + "\n" + a.Text), Run: r.ID, About: &about}
		events := SignalEvents([]Signal{s})
		follow := r.Dismissals(events, a.At)
		words := fmt.Sprintf("Dismissed by %s: %q no longer counts.", a.By.Login, text.Clip(text.FirstLine(about.Message), 120))
		if len(follow) > 0 {
			words += " Nothing else keeps the run: it goes on."
		}
		return append(events, follow...), a.reply(words)
	}
	if len(open) == 0 {
		return nil, "No finding is open here, so there is none to dismiss."
	}
	return nil, fmt.Sprintf("%s works as a reply to one of Forge's comments on the diff, and anywhere with the name of a finding and the reason: %s. Open are %s.",
		r.typed("dismiss"), r.typed("dismiss "+open[0]+" WHY"), listed(open))
}

// answering is an event that an answer makes.
func answering(t EventType, a *Answer) Event {
	return Event{ID: string(t), Type: t, Source: "human:" + a.By.Login, Time: a.At, Data: Data{Answer: a}}
}

// reply is what a command did, for who typed it. Who ticks a box or presses a button
// sees it there.
func (a *Answer) reply(text string) string {
	if a.Via == "box" || a.Via == "button" {
		return ""
	}
	return text
}

// typed is a command of the run's as people type it.
func (r *Run) typed(words string) string { return "`" + command.Write(r.Slug, words) + "`" }

// resumed says what the run does when it is no longer stopped.
func (r *Run) resumed() string {
	switch g := r.Gate(); {
	case g != nil:
		return fmt.Sprintf("%s is no longer stopped; it waits for an answer: %s Choices: %s.", r.called(), g.Question, g.words(r.Slug))
	case r.Active != nil:
		return fmt.Sprintf("%s goes on where it was stopped, in the phase %s.", r.called(), r.Active.Phase)
	}
	return fmt.Sprintf("%s goes on where it was stopped.", r.called())
}

// goesOn says what an answer that lets the run go on does; "" for the others, whose
// name says it.
func (r *Run) goesOn(g *Gate, a *Answer) string {
	if r.State == StateStopped && a.Choice != "take-over" {
		return fmt.Sprintf("%s has your answer, and is still stopped: %s lets it go on with it.", r.called(), r.typed("resume"))
	}
	if a.Choice != "continue" && a.Choice != "retry" || g.Guard == nil {
		return ""
	}
	words := ""
	if a.Text != "" {
		words = ", with your words"
	}
	last := a.N
	if it := r.Current(); it != nil {
		last += it.Number
	}
	upTo := fmt.Sprintf("for up to %s (to iteration %d)", text.Plural(a.N, "more iteration", "more iterations"), last)
	switch g.Guard.Name {
	case GuardNoTests:
		return fmt.Sprintf("%s looks for tests again, with the repository's settings as they are now%s.", r.called(), words)
	case GuardUnclean:
		if a.Choice == "retry" {
			return fmt.Sprintf("%s runs the tests again.", r.called())
		}
	case GuardFaults, GuardPublish, GuardGone, GuardConflict, GuardBase:
		return fmt.Sprintf("%s tries again%s.", r.called(), words)
	case GuardSecret:
		return fmt.Sprintf("%s makes the commit again without it%s.", r.called(), words)
	case GuardKnown:
		return fmt.Sprintf("%s fixes them, too, %s%s.", r.called(), upTo, words)
	}
	return fmt.Sprintf("%s goes on %s%s.", r.called(), upTo, words)
}

// answerAfter is Answer for a run that has ended: what makes it go on does so when it
// can be reopened; all else is told why it changes nothing, and what does.
func (r *Run) answerAfter(cmd command.Line, a *Answer) ([]Event, string) {
	over := fmt.Sprintf("%s has ended (%s: %s)", r.called(), r.State, r.Ended)
	if !command.Find(cmd.Name).GoesOn {
		return nil, fmt.Sprintf("%s, so `%s` changes nothing. %s", over, cmd.Name, r.whatNow())
	}
	if !r.Reopenable() {
		return nil, fmt.Sprintf("%s, so there is nothing for `%s` to go on with. %s", over, cmd.Name, r.whatNow())
	}
	if r.Part != nil && a.Text == "" { // whatever the run that planned it knows of it by now
		how := "is verified"
		if r.State == StateAccepted {
			how = "was accepted by " + cmp.Or(r.endedBy(), "somebody")
		}
		return nil, fmt.Sprintf("The module %s %s, so there is nothing for `%s` to go on with. %s with words on further lines sends it back to work.",
			r.Part.Module.ID, how, cmd.Name, r.typed("continue"))
	}
	if cmd.Args != "" && cmd.Name == "continue" {
		if wrong := (&Gate{}).read(a, cmd, r.Slug); wrong != "" {
			return nil, wrong
		}
	}
	what := fmt.Sprintf("%s is reviewed and tested again", text.ShortSHA(r.Head))
	if a.Text != "" {
		what = "the work goes back with your words"
		a.Back = true
	}
	e := answering(EventRunReopened, a)
	e.Data.Actor, e.Data.Note = &a.By, a.By.Login+" said "+a.Choice
	return []Event{e}, a.reply(fmt.Sprintf("%s goes on: %s.", r.called(), what))
}

// whatNow says what makes a run go on that has ended, or what does in its place.
func (r *Run) whatNow() string {
	again := r.typed("run") + " in the issue starts a new run."
	if r.Task.Issue == 0 {
		again = "Start a new run for what is left to do."
	}
	switch {
	case r.Part != nil && !r.Reopenable():
		return fmt.Sprintf("Run %d, which planned it, does without it.", r.Part.Run)
	case r.Reopenable() && r.Published.Pull != nil:
		return fmt.Sprintf("Its pull request #%d is open: a push to it, requested changes, or %s with words on further lines make it go on. "+
			"To begin anew, close it, then give %s in the issue.", r.Published.Pull.Number, r.typed("continue"), r.typed("run"))
	case r.Reopenable():
		return r.typed("continue") + " with words makes it go on."
	case r.Closed != "":
		return strings.ToUpper(r.Closed[:1]) + r.Closed[1:] + ". " + again
	}
	return again
}

// tooLate is the answer to a command that comes after the matter was settled by
// somebody else's answer.
func (r *Run) tooLate(cmd command.Line) string {
	g := r.Gate()
	if g != nil && (cmd.Gate == "" || cmd.Gate == g.ID) || !command.Find(cmd.Name).Answers {
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
