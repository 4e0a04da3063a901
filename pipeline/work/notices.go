package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/text"
)

// begin starts a run for a label or a /forge run, when the actor may do that.
func (e *Engine) begin(ctx context.Context, p *inbound) error {
	n := p.notice
	if n.Actor.Bot {
		return e.conclude(ctx, p, refusedBot(n.Actor.Login, "bots start nothing"))
	}
	run, err := e.find(ctx, n)
	if err != nil {
		return err
	}
	if run != nil && !run.State.Ended() {
		return e.conclude(ctx, p, alreadyAt(run.ID))
	}
	may, err := e.mayWrite(ctx, n)
	if err != nil {
		return err
	}
	if !may {
		outcome := refusedReader(n.Actor.Login, "start runs")
		if n.Comment == 0 { // a label was set with triage; a comment can be anyone's, and gets no answer
			if err := e.reply(ctx, p, fmt.Sprintf("Forge starts on the word of people with write access to this repository; @%s has not got it. Someone who has can take the label off and put it on again.", n.Actor.Login)); err != nil {
				return err
			}
		}
		return e.conclude(ctx, p, outcome)
	}
	p.allowed = true
	if run != nil {
		if run, err = e.current(ctx, run); err != nil {
			return err
		}
		if run.Reopenable() { // a second pull request for one issue helps nobody
			_, words := run.Answer(command.Line{Name: "run"}, n.Actor, viaOf(n), n.Comment, e.now())
			if err := e.reply(ctx, p, words); err != nil {
				return err
			}
			return e.conclude(ctx, p, "not started: "+text.Clip(text.FirstLine(words), 120))
		}
	}
	start, err := e.Hub.Prepare(ctx, n)
	var f *pipeline.Fault
	switch {
	case errors.As(err, &f):
		if err := e.reply(ctx, p, "Forge did not start: "+f.Message); err != nil {
			return err
		}
		return e.conclude(ctx, p, "not started: "+f.Message)
	case err != nil:
		return fmt.Errorf("prepare a run for %s#%d: %w", n.Repo.FullName(), n.Issue, err)
	}
	if run != nil && run.State == pipeline.StateCancelled {
		start.Notes = run.Unmet()
	}
	run, err = e.store.CreateRun(ctx, p.GUID, start, e.now(), e.Trace(), func(ctx context.Context, tx *Tx, id int64) error {
		if err := e.enqueue(ctx, tx, id, laneNew, false); err != nil {
			return err
		}
		return e.finish(ctx, tx, p, fmt.Sprintf("run %d started by %s", id, n.Actor.Login))
	})
	if outcome, another := busy(err); another {
		return e.conclude(ctx, p, outcome)
	}
	if err != nil {
		return err
	}
	e.Logger.InfoContext(ctx, "run created", logRun, run.ID, logDelivery, p.GUID, logRepo, run.Repo.FullName())
	return nil
}

func alreadyAt(run int64) string { return fmt.Sprintf("run %d is already working on it", run) }

// giveUp tells people that there will be no run, after the last try. A comment can
// be anyone's, and gets no answer unless its author is known to have a say.
func (e *Engine) giveUp(ctx context.Context, p *inbound, err error) {
	if p.notice.Comment != 0 && !p.allowed {
		return
	}
	words := fmt.Sprintf("Forge could not start. It tried %d times, the last time it ended with: %s\n\nOnce that is mended, take the label off and put it on again, or give the command again; "+
		"the server's operator can also use `forge deliveries --retry %s`.", tries, text.Clip(text.FirstLine(err.Error()), 120), p.GUID)
	if err := e.replyOnce(ctx, p, words, p.GUID+"/dead"); err != nil { // no further try: GitHub may be what is away
		e.Logger.ErrorContext(ctx, "telling that a run could not be started", logDelivery, p.GUID, logError, err)
	}
}

// command carries out a slash command, when the actor may give it at this moment.
func (e *Engine) command(ctx context.Context, p *inbound) error {
	n := p.notice
	if n.Actor.Bot {
		return e.conclude(ctx, p, refusedBot(n.Actor.Login, "Forge does not listen to bots"))
	}
	may, err := e.mayWrite(ctx, n)
	if err != nil {
		return err
	}
	if !may {
		return e.conclude(ctx, p, refusedReader(n.Actor.Login, "command Forge"))
	}
	run, err := e.find(ctx, n)
	if err != nil {
		return err
	}
	if words := n.Command.Error; words != "" {
		if of, err := e.misnamed(ctx, run, n.Command); err != nil {
			return err
		} else if of != "" {
			words = of
		}
		if err := e.reply(ctx, p, words); err != nil {
			return err
		}
		return e.conclude(ctx, p, "answered: "+text.Clip(text.FirstLine(words), 120))
	}
	if command.Find(n.Command.Name).Memory && n.Command.Via != viaBox {
		return e.remember(ctx, p, run)
	}
	if command.Find(n.Command.Name).Outside {
		return e.outside(ctx, p, run)
	}
	if run == nil {
		words, outcome := fmt.Sprintf("There is no run here. The label, or `%s`, starts one.", command.Write(e.Slug, "run")), "answered: no run here"
		if n.Command.Name == "help" {
			words, outcome = command.Help(e.Slug), "answered: help"
		}
		if err := e.reply(ctx, p, words); err != nil {
			return err
		}
		return e.conclude(ctx, p, outcome)
	}
	return e.obey(ctx, p, run)
}

// obey has the run that a command addresses answer it.
func (e *Engine) obey(ctx context.Context, p *inbound, run *pipeline.Run) error {
	n := p.notice
	run, words, err := e.addressed(ctx, run, n.Command)
	if err != nil {
		return err
	}
	if done, err := e.before(ctx, run, p); err != nil {
		return err
	} else if done {
		return e.conclude(ctx, p, fmt.Sprintf("run %d: %s", run.ID, n.Command.Name))
	}
	if words != "" {
		if err := e.reply(ctx, p, words); err != nil {
			return err
		}
		return e.conclude(ctx, p, "answered: "+text.Clip(text.FirstLine(words), 120))
	}
	if n.Command.Via == viaBox && !run.Offers(n.Command) {
		words := fmt.Sprintf("Nothing was done: that box is of no question that run %d asks now.", run.ID)
		if err := e.reply(ctx, p, words); err != nil {
			return err
		}
		return e.conclude(ctx, p, "answered: the box is of no open question")
	}
	if reopens(n) {
		if run, err = e.current(ctx, run); err != nil {
			return err
		}
	}
	return e.say(ctx, run, p, func(r *pipeline.Run, at time.Time) ([]pipeline.Event, reply, error) {
		events, words, err := e.answer(ctx, r, n.Command, n.Actor, viaOf(n), n.Comment, at)
		outcome := fmt.Sprintf("run %d: %s", r.ID, n.Command.Name)
		if len(events) == 0 && words != "" {
			outcome = fmt.Sprintf("run %d: answered: %s", r.ID, text.Clip(text.FirstLine(words), 120))
		}
		return prefix(p.GUID, events), reply{words, outcome}, err
	})
}

// viaBox is how a command came that was a box, and not somebody's own words.
const viaBox = "box"

// remember carries out a command about what is remembered, which needs no run.
func (e *Engine) remember(ctx context.Context, p *inbound, run *pipeline.Run) (err error) {
	n := p.notice
	words := "This server remembers nothing."
	w := Word{Repo: n.Repo, Actor: n.Actor, Text: n.Command.Text, Was: n.Command.Was, Cause: p.GUID}
	if run != nil {
		w.Run = run.ID
	}
	switch c := n.Command; {
	case e.Memory == nil:
	case c.Name == "memory":
		words, err = e.Memory.Memory(ctx, n.Repo, c.Text)
	case c.Name == "remember":
		words, err = e.Memory.Remember(ctx, w)
	default:
		words, err = e.forget(ctx, w, strings.Fields(c.Args))
	}
	if err != nil {
		return fmt.Errorf("%s of %s: %w", n.Command.Name, n.Repo.FullName(), err)
	}
	if err := e.reply(ctx, p, words); err != nil {
		return err
	}
	return e.conclude(ctx, p, n.Command.Name+": answered: "+text.Clip(text.FirstLine(words), 120))
}

// forget takes learnings out of use, each a change of its own, and says so of each.
func (e *Engine) forget(ctx context.Context, w Word, ids []string) (string, error) {
	var said []string
	for i, number := range ids {
		id, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return "", err
		}
		each := w
		if i > 0 {
			each.Cause += "/" + number
		}
		words, err := e.Memory.Forget(ctx, each, id)
		if err != nil {
			return "", err
		}
		said = append(said, words)
	}
	return strings.Join(said, "\n"), nil
}

// outside carries out a command that something beside the run answers.
func (e *Engine) outside(ctx context.Context, p *inbound, run *pipeline.Run) (err error) {
	n := p.notice
	name := n.Command.Name
	words := fmt.Sprintf("This server knows nothing to do about %q.", name)
	if to := e.Outside[name]; to != nil {
		w := Word{Repo: n.Repo, Actor: n.Actor, Text: n.Command.Args, Notes: n.Command.Text, Issue: cmp.Or(n.Pull, n.Issue), Cause: p.GUID}
		if run != nil {
			w.Run = run.ID
		}
		if words, err = to.Answer(ctx, w); err != nil {
			return fmt.Errorf("answer %s in %s: %w", name, n.Repo.FullName(), err)
		}
	}
	if err := e.reply(ctx, p, words); err != nil {
		return err
	}
	return e.conclude(ctx, p, name+": answered: "+text.Clip(text.FirstLine(words), 120))
}

// happened takes in what people did on GitHub by other ways than a command.
func (e *Engine) happened(ctx context.Context, p *inbound) error {
	n := p.notice
	run, err := e.find(ctx, n)
	if err != nil {
		return err
	}
	if n.Feedback != nil && n.Feedback.Event == "issue_comment" && n.Pull == 0 {
		return e.onIssue(ctx, run, p)
	}
	if run == nil {
		return e.otherPull(ctx, p)
	}
	if reopens(n) {
		if run, err = e.current(ctx, run); err != nil {
			return err
		}
	}
	if n.Kind == pipeline.NoticeIssueEdited {
		return e.edited(ctx, run, p)
	}
	if n.Kind == pipeline.NoticeIssueClosed && !run.State.Ended() && run.Published.Pull != nil && e.Hub != nil {
		// A merge closes the issue, too, and GitHub may tell of that first.
		if _, n.Merged, err = e.Hub.PullState(ctx, run.Repo, run.Published.Pull.Number); err != nil {
			return fmt.Errorf("see whether %s#%d was merged: %w", run.Repo.FullName(), run.Published.Pull.Number, err)
		}
	}
	if n, err = e.reviewed(ctx, run, n); err != nil {
		return err
	}
	if may, err := e.remarked(ctx, p, "left to the next look"); !may || err != nil {
		return err
	}
	seen := run.Seq
	signals, words, err := e.noticed(ctx, run, p)
	if err != nil {
		return err
	}
	if len(run.Dismissals(signals, e.now())) > 0 {
		if run, err = e.current(ctx, run); err != nil {
			return err
		}
	}
	told, err := e.told(ctx, run, p, signals)
	if err != nil {
		return err
	}
	hint := ""
	if told == "" && n.Kind != pipeline.NoticeAskedAnew {
		if hint, err = e.unheard(ctx, run, p); err != nil {
			return err
		}
	}
	return e.say(ctx, run, p, func(r *pipeline.Run, at time.Time) ([]pipeline.Event, reply, error) {
		heard, err := e.heardSince(ctx, r, seen)
		if seen = r.Seq; heard && err == nil { // a poll may have seen the same, or somebody explained it
			signals, words, err = e.noticed(ctx, r, p)
		}
		if err != nil {
			return nil, reply{}, err
		}
		follow := prefix(p.cause(), r.Dismissals(signals, at))
		all, text := append(slices.Clip(signals), follow...), cmp.Or(told, acknowledge(n, signals, follow))
		if n.Kind == pipeline.NoticeFeedback && e.Observer != nil {
			if len(words) == 0 {
				return nil, reply{text, fmt.Sprintf("run %d: nothing new: %s%s", r.ID, n.Why, hint)}, nil
			}
			return all, reply{text, fmt.Sprintf("run %d: %s%s", r.ID, strings.Join(words, ", "), hint)}, nil
		}
		if n.Kind == pipeline.NoticeAskedAnew { // as it stands now: of two deliveries, the other may have been faster
			if n.Review, err = e.requested(ctx, n); err != nil {
				return nil, reply{}, err
			}
		}
		events, outcome := r.Notice(n, at)
		return append(prefix(p.cause(), events), all...), reply{text, fmt.Sprintf("run %d: %s", r.ID, strings.Join(append([]string{outcome}, words...), ", ")+hint)}, nil
	})
}

// told is what people are answered whatever the run makes of what they did: that it was known
// already, or that it was not taken for a dismissal. "" for nothing.
func (e *Engine) told(ctx context.Context, run *pipeline.Run, p *inbound, signals []pipeline.Event) (string, error) {
	if len(signals) == 0 {
		before, followed, err := e.dismissedAlready(ctx, run, p.notice)
		if err != nil {
			return "", err
		}
		if words := acknowledge(p.notice, before, followed); words != "" {
			return words, nil
		}
	}
	return e.doubted(ctx, run, p, signals)
}

// everyRun takes in what concerns all that is being worked on in a repository: its
// default branch moved, a check of some commit ended.
func (e *Engine) everyRun(ctx context.Context, p *inbound) error {
	ids, err := e.store.Active(ctx, p.notice.Repo.ID)
	if err != nil {
		return err
	}
	var outcomes []string
	for _, id := range ids {
		run, err := e.store.Load(ctx, id)
		if err != nil {
			return err
		}
		outcome := ""
		done, err := e.appendIf(ctx, run, nil, func(r *pipeline.Run) (events []pipeline.Event, _ error) {
			events, outcome = r.Notice(p.notice, e.now())
			return prefix(p.GUID, events), nil
		})
		if err != nil {
			return err
		}
		if done {
			outcomes = append(outcomes, fmt.Sprintf("run %d: %s", id, outcome))
		}
	}
	ended, err := e.endedRuns(ctx, p)
	if err != nil {
		return err
	}
	if outcomes = append(outcomes, ended...); len(outcomes) == 0 {
		return e.ignore(ctx, p, fmt.Sprintf("no run waits for it (%s)", p.notice.Why))
	}
	return e.conclude(ctx, p, strings.Join(outcomes, "; "))
}

// say appends to the run what words returns, together with a job and the
// delivery's outcome, after giving the answer that it returns as well. When
// another writer is faster, it looks at the run again.
func (e *Engine) say(ctx context.Context, run *pipeline.Run, p *inbound, words func(*pipeline.Run, time.Time) ([]pipeline.Event, reply, error)) error {
	var said reply
	done, err := e.appendIf(ctx, run, func(ctx context.Context, tx *Tx) error { return e.finish(ctx, tx, p, said.outcome) }, func(r *pipeline.Run) (events []pipeline.Event, err error) {
		if events, said, err = words(r, e.now()); err != nil || said.text == "" {
			return events, err
		}
		return events, e.reply(ctx, p, said.text)
	})
	if outcome, another := busy(err); another {
		return e.conclude(ctx, p, outcome)
	}
	if err == nil && !done {
		err = e.conclude(ctx, p, said.outcome)
	}
	return err
}

// appendIf appends to the run what events makes of it as it stands, together with a
// job and what also adds, if it is there. When another writer was faster, it looks
// at the run again. It reports whether there was anything to append.
func (e *Engine) appendIf(ctx context.Context, run *pipeline.Run, also func(context.Context, *Tx) error, events func(*pipeline.Run) ([]pipeline.Event, error)) (bool, error) {
	for {
		list, err := events(run)
		if err != nil || len(list) == 0 {
			return false, err
		}
		err = e.append(ctx, run, list, func(ctx context.Context, tx *Tx) error {
			if also != nil {
				if err := also(ctx, tx); err != nil {
					return err
				}
			}
			return e.enqueue(ctx, tx, run.ID, laneWake, run.Part != nil)
		})
		if err == nil {
			e.Notify(run.ID)
			return true, nil
		}
		if !isConflict(err) {
			return false, err
		}
		if run, err = e.store.Load(ctx, run.ID); err != nil {
			return false, err
		}
	}
}

// Tell carries out a command that came by another way than a delivery: from the
// dashboard or the command line. id makes a repeat be seen as one. The caller has
// checked that the actor may give it. It returns the answer in words, "" for none.
func (e *Engine) Tell(ctx context.Context, run int64, id string, cmd command.Line, by pipeline.Actor, via string) (text string, err error) {
	r, err := e.store.Load(ctx, run)
	if err == nil && reopens(pipeline.Notice{Kind: pipeline.NoticeCommand, Command: cmd}) {
		r, err = e.current(ctx, r)
	}
	if err == nil {
		_, err = e.appendIf(ctx, r, nil, func(r *pipeline.Run) (events []pipeline.Event, err error) {
			events, text, err = e.answer(ctx, r, cmd, by, via, 0, e.now())
			return prefix(id, events), err
		})
	}
	if outcome, another := busy(err); another {
		return outcome, nil
	}
	if err != nil {
		return "", fmt.Errorf("tell run %d to %s: %w", run, cmd.Name, err)
	}
	return text, nil
}

// prefix makes events' IDs those of their cause: told twice, they are the same.
func prefix(cause string, events []pipeline.Event) []pipeline.Event {
	for i := range events {
		events[i].ID = cause + "/" + events[i].ID
	}
	return events
}

// find returns the run that a notice is about, or nil.
func (e *Engine) find(ctx context.Context, n pipeline.Notice) (*pipeline.Run, error) {
	if n.Issue == 0 && n.Pull == 0 && n.Branch == "" {
		return nil, nil
	}
	id, err := e.store.Find(ctx, n.Repo.ID, n.Issue, n.Pull, n.Branch)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return e.store.Load(ctx, id)
}

// mayWrite asks GitHub, at this moment.
func (e *Engine) mayWrite(ctx context.Context, n pipeline.Notice) (bool, error) {
	perm, err := e.Hub.Permission(ctx, n.Repo, n.Actor)
	if err != nil {
		return false, fmt.Errorf("permission of %s on %s: %w", n.Actor.Login, n.Repo.FullName(), err)
	}
	return MayWrite(perm), nil
}

// MayWrite reports whether a permission lets its owner command Forge.
func MayWrite(permission string) bool {
	return permission == "admin" || permission == "maintain" || permission == "write"
}

// reply answers where the delivery came from, once.
func (e *Engine) reply(ctx context.Context, p *inbound, text string) error {
	return e.replyOnce(ctx, p, text, p.GUID)
}

// replyOnce answers where the delivery came from, once for each key.
func (e *Engine) replyOnce(ctx context.Context, p *inbound, text, key string) error {
	n := p.notice
	may, words, quiet, err := e.answers(ctx, p)
	if err != nil {
		return err
	}
	if !may {
		e.Logger.WarnContext(ctx, "a delivery gets no answer: too many were given there within an hour", logDelivery, p.GUID, logRepo, n.Repo.FullName())
		if text, key = words, quiet; words == "" {
			return nil
		}
	}
	if err := e.Hub.Reply(ctx, n, text, key); err != nil {
		return fmt.Errorf("reply on %s#%d: %w", n.Repo.FullName(), cmp.Or(n.Issue, n.Pull), err)
	}
	return nil
}
