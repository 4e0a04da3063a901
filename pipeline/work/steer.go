package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/text"
)

// reply is what somebody is told, and what became of the delivery.
type reply struct {
	text    string // "" for none
	outcome string
}

// answer is what a command does to a run. An answer that lets the run look for
// tests again carries the repository's settings as they are by then; when they
// cannot be read, that is said and nothing is answered.
func (e *Engine) answer(ctx context.Context, r *pipeline.Run, cmd command.Line, by pipeline.Actor, via string, comment int64, at time.Time) ([]pipeline.Event, string, error) {
	gate := r.Gate()
	events, text := r.Answer(cmd, by, via, comment, at)
	if e.Settings == nil || r.Part != nil || gate == nil || // a module keeps what its parent has: its own base is no branch of people
		gate.Guard == nil || gate.Guard.Name != pipeline.GuardNoTests && !ownModel(r, gate.Guard) {
		return events, text, nil
	}
	for i := range events {
		ev := &events[i]
		if ev.Type != pipeline.EventGateAnswered || ev.Data.Answer.Choice != "continue" {
			continue
		}
		cfg, err := e.Settings(ctx, r)
		var f *pipeline.Fault
		switch {
		case errors.As(err, &f):
			return nil, f.Message, nil
		case err != nil:
			return nil, "", fmt.Errorf("read the settings of %s again: %w", r.Repo.FullName(), err)
		}
		ev.Data.Config = &cfg
	}
	return events, text, nil
}

// ownModel reports whether a run stands because of a model that its repository chose:
// the answer has it read the choice again.
func ownModel(r *pipeline.Run, g *pipeline.Guard) bool {
	return g.Name == pipeline.GuardFaults && len(r.Config.Models) > 0 && r.Fault != nil && r.Fault.Class == pipeline.FaultProvider
}

// current returns the run as it stands on GitHub: one that could be reopened, but
// whose pull request was closed or merged without Forge having heard of it, is over
// for good.
func (e *Engine) current(ctx context.Context, r *pipeline.Run) (*pipeline.Run, error) {
	for r.Reopenable() && e.Hub != nil && r.Published.Pull != nil {
		open, _, err := e.Hub.PullState(ctx, r.Repo, r.Published.Pull.Number)
		if err != nil {
			return nil, fmt.Errorf("see whether %s#%d is open: %w", r.Repo.FullName(), r.Published.Pull.Number, err)
		}
		if open {
			break
		}
		closed := pipeline.Event{ID: fmt.Sprintf("run/%d/closed/%d", r.ID, r.Seq), Type: pipeline.EventRunClosed, Data: pipeline.Data{Note: "its pull request is no longer open"}}
		err = e.append(ctx, r, []pipeline.Event{closed}, nil)
		if isConflict(err) {
			r, err = e.store.Load(ctx, r.ID)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// reopens reports whether a notice may let a run go on that has ended.
func reopens(n pipeline.Notice) bool {
	switch n.Kind {
	case pipeline.NoticePush, pipeline.NoticeReviewed, pipeline.NoticeStart:
		return true
	case pipeline.NoticeCommand:
		return command.Find(n.Command.Name).GoesOn
	case pipeline.NoticeFeedback:
		return n.Feedback != nil && n.Feedback.State == "changes_requested"
	}
	return false
}

// edited takes in that the task was edited, when whoever did it may change what the
// run does. Who may not is told so, once for each run.
func (e *Engine) edited(ctx context.Context, run *pipeline.Run, p *inbound) error {
	n := p.notice
	events, outcome := run.Notice(n, e.now())
	if len(events) == 0 {
		return e.conclude(ctx, p, fmt.Sprintf("run %d: %s", run.ID, outcome))
	}
	may, err := e.mayWrite(ctx, n)
	if err != nil {
		return err
	}
	if may && run.Reopenable() {
		if err := e.editedLate(ctx, run, p); err != nil {
			return err
		}
	}
	if may {
		return e.say(ctx, run, p, func(r *pipeline.Run, at time.Time) ([]pipeline.Event, reply, error) {
			events, outcome := r.Notice(n, at)
			return prefix(p.GUID, events), reply{outcome: fmt.Sprintf("run %d: %s", r.ID, outcome)}, nil
		})
	}
	text := fmt.Sprintf("@%s has edited this task, without write access to this repository: run %d goes on with the text as it was. Somebody with write access takes the change in by editing the text.", n.Actor.Login, run.ID)
	if err := e.replyOnce(ctx, p, text, fmt.Sprintf("run/%d/edited/%d", run.ID, n.Actor.ID)); err != nil {
		return err
	}
	return e.conclude(ctx, p, refusedEdit(run.ID, n.Actor.Login))
}

// editedLate says once for each run that an edit of its task after the verdict changes nothing by itself.
func (e *Engine) editedLate(ctx context.Context, run *pipeline.Run, p *inbound) error {
	key := fmt.Sprintf("run/%d/edited-late", run.ID)
	may, _, _, err := e.within(ctx, key, "", tells)
	if !may || err != nil {
		return err
	}
	what := fmt.Sprintf("`%s` with words on the lines below it", command.Write(run.Slug, "continue"))
	if pull := run.Published.Pull; pull != nil {
		what = fmt.Sprintf("Requested changes in a review of #%d, a push to it, or %s", pull.Number, what)
	}
	return e.replyOnce(ctx, p, fmt.Sprintf("Run %d is %s for the text as it was. %s makes it go on, and then it plans again for the text as it stands.", run.ID, run.State, what), key)
}

// acknowledge says what became of a /forge dismiss in the conversation about a finding.
func acknowledge(n pipeline.Notice, signals, follow []pipeline.Event) string {
	if n.Kind != pipeline.NoticeFeedback || n.Command.Name != "dismiss" {
		return ""
	}
	for _, ev := range signals {
		s := ev.Data.Signal
		if ev.Type != pipeline.EventDismissed || s == nil || s.Off || s.Actor.ID != n.Actor.ID || !(s.Weight > 0) {
			continue
		}
		words := "Dismissed by " + s.Actor.Login
		if s.About != nil {
			words += fmt.Sprintf(": %q no longer counts", text.Clip(text.FirstLine(s.About.Message), 120))
		}
		if s.Text == "" {
			words += ". A reason in a reply helps Forge not to say the like again"
		}
		if len(follow) > 0 {
			words += ". Nothing else keeps the run: it goes on"
		}
		return words + "."
	}
	return ""
}

// doubted answers words about what blocks that name a refusal, and may mean the opposite:
// what lets it pass after all. GitHub sends two deliveries of a reply, in any order; that of
// the comment is answered, in its conversation.
func (e *Engine) doubted(ctx context.Context, run *pipeline.Run, p *inbound, signals []pipeline.Event) (string, error) {
	f := p.notice.Feedback
	if p.notice.Kind != pipeline.NoticeFeedback || f == nil || f.Event != "pull_request_review_comment" || f.Action != "created" || f.ReplyTo == 0 || len(f.Comments) == 0 {
		return "", nil
	}
	if len(signals) == 0 {
		var err error
		if signals, err = e.store.Events(ctx, run.ID, 0); err != nil {
			return "", fmt.Errorf("read what is known of run %d: %w", run.ID, err)
		}
	}
	for _, ev := range signals {
		s := ev.Data.Signal
		if ev.Type != pipeline.EventAnswered || s == nil || !s.Unsure || s.Off || !(s.Weight > 0) || s.Comment != f.Comments[0] {
			continue
		}
		what := "This finding"
		if s.About != nil {
			what = fmt.Sprintf("%q", text.Clip(text.FirstLine(s.About.Message), 120))
		}
		p.notice.Thread, p.notice.Comment = f.ReplyTo, f.Comments[0]
		return fmt.Sprintf("%s keeps the pull request from being verified, and words alone do not let that pass: it still counts. `%s` here, with why, does, in your name.",
			what, command.Write(run.Slug, "dismiss")), nil
	}
	return "", nil
}

// dismissedAlready returns the dismissal that a /forge dismiss has made, and what
// followed from it, when another delivery about the same reply was taken in first:
// GitHub sends one of the comment and one of the review that it belongs to.
func (e *Engine) dismissedAlready(ctx context.Context, run *pipeline.Run, n pipeline.Notice) (signals, follow []pipeline.Event, err error) {
	if n.Kind != pipeline.NoticeFeedback || n.Command.Name != "dismiss" || n.Thread == 0 {
		return nil, nil, nil
	}
	events, err := e.store.Events(ctx, run.ID, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("read what is known of run %d: %w", run.ID, err)
	}
	for i := len(events) - 1; i >= 0; i-- {
		s := events[i].Data.Signal
		if events[i].Type != pipeline.EventDismissed || s == nil || s.Comment != n.Thread || s.Actor.ID != n.Actor.ID {
			continue
		}
		signals = events[i : i+1]
		if i+1 < len(events) && events[i+1].Type == pipeline.EventGateAnswered && events[i+1].Data.Answer.Choice == "dismiss" {
			follow = events[i+1 : i+2]
		}
		break
	}
	return signals, follow, nil
}

// busy is the outcome of what would have reopened a run beside an active one.
func busy(err error) (string, bool) {
	var active interface{ ActiveRun() int64 }
	if errors.As(err, &active) {
		return alreadyAt(active.ActiveRun()), true
	}
	return "", false
}

// awaitModel returns the event with which a phase waits for its model's provider. It
// costs no attempt and no worker, until it has waited too long: then the phase has
// failed for good, and a human is asked. known is the run as the phase found it, now
// as it stands.
func (e *Engine) awaitModel(known, run *pipeline.Run, act pipeline.Action, ref pipeline.PhaseRef, err error) (pipeline.Event, bool) {
	var f *pipeline.Fault
	if !errors.As(err, &f) || f.Class != pipeline.FaultProvider || f.Final || f.RetryAt.IsZero() {
		return pipeline.Event{}, false
	}
	now := e.now()
	w := pipeline.Await{Model: true, Since: now, Service: f.Service, Refused: now}
	if was := known.Await; was != nil {
		w.Tests = was.Tests
		if was.Model && run.Steps[ref.Phase] == known.Steps[ref.Phase] { // else it has answered since
			w.Since, w.Looks = was.Since, was.Looks
		}
	}
	w.Looks, w.Until = w.Looks+1, w.Since.Add(e.ModelPatience)
	if !now.Before(w.Until) {
		gone := *f
		gone.Final, gone.Message = true, fmt.Sprintf("the model's provider has not answered for %s: %s", text.Clock(now.Sub(w.Since)), f.Message)
		return phaseFailed(act, ref, &gone), true
	}
	// A wait that the provider asks for may be longer than the patience: people are told
	// the time that comes first, and then asked.
	w.Next = f.RetryAt.UTC().Add(time.Microsecond - 1).Truncate(time.Microsecond) // the clock's step: less is waited for again and again
	if w.Until.Before(w.Next) {
		w.Next = w.Until.UTC()
	}
	if soon := now.Add(time.Second); w.Next.Before(soon) {
		w.Next = soon
	}
	w.What = fmt.Sprintf(forProvider+" until %s (%s)", w.Next.Format("15:04 UTC"), text.Clip(text.FirstLine(f.Message), 120))
	ref.Millis = 0
	e.awaited.Store(run.ID, true)
	return pipeline.Event{ID: fmt.Sprintf("%s/away/%d", act.Key, run.Seq), Type: pipeline.EventPhaseWaiting, Source: "forge",
		Data: pipeline.Data{Phase: &ref, Await: &w}}, true
}

// awaitGitHub returns the event with which a phase waits until GitHub, which was called too
// often, may be called again. That is nobody's fault and passes: no attempt is counted, and no
// human is asked.
func (e *Engine) awaitGitHub(known, run *pipeline.Run, act pipeline.Action, ref pipeline.PhaseRef, err error) (pipeline.Event, bool) {
	var limit interface{ Limited() bool }
	if !errors.As(err, &limit) || !limit.Limited() {
		return pipeline.Event{}, false
	}
	now := e.now()
	w := pipeline.Await{GitHub: true, Since: now}
	if was := known.Await; was != nil {
		w.Tests = was.Tests
		if was.GitHub {
			w.Since, w.Looks = was.Since, was.Looks
		}
	}
	w.Looks++
	w.Next = now.Add(e.backoff(w.Looks, err)).UTC().Truncate(time.Microsecond).Add(time.Microsecond)
	w.Until = w.Next
	w.What = fmt.Sprintf("GitHub, whose rate limit is reached, until %s", w.Next.Format("15:04 UTC"))
	ref.Millis = 0
	return pipeline.Event{ID: fmt.Sprintf("%s/limited/%d", act.Key, run.Seq), Type: pipeline.EventPhaseWaiting, Source: "forge",
		Data: pipeline.Data{Phase: &ref, Await: &w}}, true
}

// dated gives what an event records the event's own time.
func dated(ev pipeline.Event) pipeline.Event {
	if b := ev.Data.Bounce; b != nil && b.At.IsZero() {
		own := *b
		own.At = ev.Time
		ev.Data.Bounce = &own
	}
	if g := ev.Data.Gate; g != nil && g.Opened.IsZero() {
		own := *g
		own.Opened = ev.Time
		ev.Data.Gate = &own
	}
	return ev
}

func viaOf(n pipeline.Notice) string { return cmp.Or(n.Command.Via, "comment") }

// Begin starts a run that no delivery asks for, on the word of the server's own rules,
// which know that it may be. The key names its cause: with it there is one run. A run
// that works on the issue already is the answer, too. A final [pipeline.Fault] says why
// there is none.
func (e *Engine) Begin(ctx context.Context, key string, n pipeline.Notice) (int64, error) {
	run, err := e.find(ctx, n)
	if err != nil || run != nil && !run.State.Ended() {
		return idOf(run), err
	}
	start, err := e.Hub.Prepare(ctx, n)
	if err != nil {
		return 0, fmt.Errorf("prepare a run for %s#%d: %w", n.Repo.FullName(), n.Issue, err)
	}
	run, err = e.store.CreateRun(ctx, key, start, e.now(), e.Trace(), func(ctx context.Context, tx *Tx, id int64) error { return e.enqueue(ctx, tx, id, laneNew, false) })
	var active interface{ ActiveRun() int64 }
	if errors.As(err, &active) {
		return active.ActiveRun(), nil
	}
	if err == nil {
		e.Logger.InfoContext(ctx, "run created", logRun, run.ID, "cause", key, logRepo, run.Repo.FullName())
	}
	return idOf(run), err
}

func idOf(run *pipeline.Run) int64 {
	if run == nil {
		return 0
	}
	return run.ID
}
