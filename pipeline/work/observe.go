package work

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
)

// Observer sees what people do with what Forge said or made in a run (H1–H7).
// What it returns is the difference to known, the run's signals so far. Nothing of
// the run is changed or kept.
type Observer interface {
	// Signals looks because of a notice. run is nil for a pull request that no run
	// is about: what people do there is a signal of the repository alone.
	Signals(ctx context.Context, run *pipeline.Run, n pipeline.Notice, known []pipeline.Signal) ([]pipeline.Signal, error)

	// Poll looks for what no delivery tells, and for what was missed.
	Poll(ctx context.Context, run *pipeline.Run, known []pipeline.Signal) ([]pipeline.Signal, error)
}

const (
	// followFor is how long after its last event a run's pull request is watched.
	followFor = 30 * 24 * time.Hour
	// pollBatch is how many pull requests are looked at in a round; the next round
	// goes on behind them.
	pollBatch = 25
	// revertBatch is how many merged runs a push to the default branch is shown to,
	// the newest ones: each takes some calls of GitHub.
	revertBatch = 20
)

// observe asks what people did, and returns it as events with its outcome in words.
func (e *Engine) observe(ctx context.Context, run *pipeline.Run, look func(known []pipeline.Signal) ([]pipeline.Signal, error)) ([]pipeline.Event, []string, error) {
	events, err := e.store.Events(ctx, run.ID, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("read what is known of run %d: %w", run.ID, err)
	}
	signals, err := look(pipeline.KnownSignals(events))
	if err != nil {
		return nil, nil, fmt.Errorf("look what people did in run %d: %w", run.ID, err)
	}
	var words []string
	for i := range signals {
		s := &signals[i]
		s.Scope, s.Run, s.About = run.Repo.Scope(), run.ID, finding(run, s.Finding)
		words = append(words, signalText(s))
	}
	return pipeline.SignalEvents(signals), words, nil
}

// finding returns a copy of the run's finding with that fingerprint, or nil.
func finding(run *pipeline.Run, fingerprint string) *pipeline.Finding {
	for i := range run.Findings {
		if f := run.Findings[i].Finding; f != nil && fingerprint != "" && f.Fingerprint == fingerprint {
			copied := *f
			return &copied
		}
	}
	return nil
}

// signalText says what somebody did: "dismissed F1 by ann".
func signalText(s *pipeline.Signal) string {
	text := strings.ReplaceAll(string(s.Kind), "_", " ")
	switch {
	case s.About != nil && s.About.ID != "":
		text += " " + s.About.ID
	case s.File != "":
		text += " in " + s.File
	}
	if s.Off {
		text += ", taken back"
	}
	if s.Actor.Login != "" {
		text += " by " + s.Actor.Login
	}
	return text
}

// noticed is observe for a notice. When the notice has an effect of its own, what
// could not be looked at is left to the next poll: the effect does not wait for it.
func (e *Engine) noticed(ctx context.Context, run *pipeline.Run, p *inbound) ([]pipeline.Event, []string, error) {
	n := p.notice
	if e.Observer == nil || n.Feedback == nil {
		return nil, nil, nil
	}
	events, words, err := e.observe(ctx, run, func(known []pipeline.Signal) ([]pipeline.Signal, error) {
		return e.Observer.Signals(ctx, run, n, known)
	})
	if err != nil && n.Kind != pipeline.NoticeFeedback && ctx.Err() == nil {
		e.Logger.WarnContext(ctx, "looking what people did; the next poll does it again", logDelivery, p.GUID, logRun, run.ID, logError, err)
		return nil, nil, nil
	}
	return events, words, err
}

// endedRuns shows a push to the default branch to the runs that have ended: it may take
// the work back of those that were merged there, and conflict with that of the others.
func (e *Engine) endedRuns(ctx context.Context, p *inbound) (outcomes []string, err error) {
	if p.notice.Feedback == nil {
		return nil, nil
	}
	ids, err := e.store.Followed(ctx, p.notice.Repo.ID, e.now().Add(-followFor), 0, revertBatch)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		run, err := e.store.Load(ctx, id)
		if err != nil {
			return nil, err
		}
		if !run.State.Ended() {
			continue
		}
		stands, err := e.standing(ctx, run)
		if err != nil { // the next poll looks again
			e.Logger.WarnContext(ctx, "looking how a pull request stands to its base", logDelivery, p.GUID, logRun, id, logError, err)
		}
		if stands != "" {
			outcomes = append(outcomes, fmt.Sprintf("run %d: %s", id, stands))
		}
		events, words, err := e.noticed(ctx, run, p)
		for heard := true; heard && len(events) > 0 && err == nil; { // a poll may see the same, or somebody may explain it
			seen := run.Seq
			if run, err = e.store.Load(ctx, id); err == nil {
				heard, err = e.heardSince(ctx, run, seen)
			}
			if heard && err == nil {
				events, words, err = e.noticed(ctx, run, p)
			}
		}
		if err == nil && len(events) > 0 {
			err = e.Record(ctx, id, events, nil)
		}
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			continue
		}
		outcomes = append(outcomes, fmt.Sprintf("run %d: %s", id, strings.Join(words, ", ")))
	}
	return outcomes, nil
}

// standing looks how what was verified or accepted stands to the base branch by now,
// and records what is new about it, in words, too.
func (e *Engine) standing(ctx context.Context, run *pipeline.Run) (outcome string, err error) {
	if e.Hub == nil || !run.Reopenable() || run.Published.Pull == nil {
		return "", nil
	}
	m, err := e.Hub.Mergeable(ctx, run.Repo, run.Published.Pull.Number)
	if err != nil {
		return "", fmt.Errorf("see how %s#%d stands to %s: %w", run.Repo.FullName(), run.Published.Pull.Number, run.Repo.DefaultBranch, err)
	}
	n := pipeline.Notice{Kind: pipeline.NoticeBaseMoved, Repo: run.Repo, Branch: run.Repo.DefaultBranch, Head: m.Base, Mergeable: &m}
	again := true // unless another run is at work on the issue
	look := func(r *pipeline.Run) ([]pipeline.Event, error) {
		outcome = ""
		if !r.State.Ended() {
			return nil, nil
		}
		events, words := r.Notice(n, e.now())
		if len(events) > 1 && !again {
			events = events[:1]
		}
		if len(events) > 0 {
			outcome = words
		}
		return prefix(fmt.Sprintf("run/%d/seq/%d", r.ID, r.Seq), events), nil
	}
	_, err = e.appendIf(ctx, run, nil, look)
	if _, another := busy(err); another {
		again = false
		_, err = e.appendIf(ctx, run, nil, look)
	}
	return outcome, err
}

// visible reports whether people are shown what happens to a run that has ended.
func visible(e pipeline.Event) bool {
	return e.Type == pipeline.EventRollout || e.Type == pipeline.EventShipDeployed || e.Type == pipeline.EventEscaped
}

// Record appends events to a run on top of whatever has happened meanwhile, and
// calls also in the same transaction. Events whose ID the run knows already are
// passed over. also may be nil, and may be called more than once: of several
// calls the last one counts.
func (e *Engine) Record(ctx context.Context, run int64, events []pipeline.Event, also func(context.Context, *Tx) error) error {
	r, err := e.store.Load(ctx, run)
	for err == nil {
		if !r.State.Ended() || slices.ContainsFunc(events, visible) {
			_, err = e.appendIf(ctx, r, also, func(*pipeline.Run) ([]pipeline.Event, error) { return events, nil })
			break
		}
		// Nobody has to be woken for it: a store that no server has used has no job tables.
		if err = e.append(ctx, r, events, also); !isConflict(err) {
			break
		}
		r, err = e.store.Load(ctx, run)
	}
	if err != nil {
		return fmt.Errorf("record in run %d: %w", run, err)
	}
	return nil
}

// poll looks again and again at the pull requests of runs for what no delivery
// tells. A round is bounded; the next one goes on where it ended.
func (e *Engine) poll(ctx context.Context) {
	t := time.NewTicker(e.PollEvery)
	defer t.Stop()
	var before int64
	for {
		select {
		case <-e.drain:
			return
		case <-ctx.Done():
			return
		case <-t.C:
		}
		var err error
		if before, err = e.pollRound(ctx, before); err != nil && ctx.Err() == nil {
			e.Logger.WarnContext(ctx, "looking what people did", logError, err)
		}
	}
}

// pollRound looks at the runs that come before the given one, newest first, and
// returns where the next round begins; 0 is at the newest.
func (e *Engine) pollRound(ctx context.Context, before int64) (next int64, err error) {
	ids, err := e.store.Followed(ctx, 0, e.now().Add(-followFor), before, pollBatch)
	if err != nil {
		return before, err
	}
	for _, id := range ids {
		if e.draining() {
			return before, nil
		}
		if err := e.pollRun(ctx, id); err != nil {
			if ctx.Err() != nil {
				return before, err
			}
			e.Logger.WarnContext(ctx, "looking what people did", logRun, id, logError, err)
		}
	}
	if len(ids) < pollBatch {
		return 0, nil
	}
	return ids[len(ids)-1], nil
}

func (e *Engine) pollRun(ctx context.Context, id int64) error {
	run, err := e.store.Load(ctx, id)
	if err != nil {
		return err
	}
	if _, err := e.standing(ctx, run); err != nil {
		return err
	}
	events, words, err := e.observe(ctx, run, func(known []pipeline.Signal) ([]pipeline.Signal, error) {
		return e.Observer.Poll(ctx, run, known)
	})
	if err != nil || len(events) == 0 {
		return err
	}
	seen := run.Seq
	e.Logger.InfoContext(ctx, "people did", logRun, id, "what", strings.Join(words, ", "))
	if len(run.Dismissals(events, e.now())) > 0 {
		if run, err = e.current(ctx, run); err != nil {
			return err
		}
	}
	_, err = e.appendIf(ctx, run, nil, func(r *pipeline.Run) ([]pipeline.Event, error) {
		if heard, err := e.heardSince(ctx, r, seen); heard || err != nil {
			return nil, err // what it was compared with is not all that is known any more: the next poll looks again
		}
		return append(slices.Clip(events), prefix(events[0].ID, r.Dismissals(events, e.now()))...), nil
	})
	if _, another := busy(err); another { // it stays as it is
		err = e.Record(ctx, id, events, nil)
	}
	return err
}

// heardSince reports whether the run's log has a signal of people behind a place in it.
func (e *Engine) heardSince(ctx context.Context, run *pipeline.Run, seq int64) (bool, error) {
	if run.Seq == seq {
		return false, nil
	}
	events, err := e.store.Events(ctx, run.ID, seq)
	return slices.ContainsFunc(events, func(ev pipeline.Event) bool { return ev.Data.Signal != nil }), err
}

// otherPull takes in what people do on a pull request that no run is about, in the
// transaction of the delivery's outcome.
func (e *Engine) otherPull(ctx context.Context, p *inbound) error {
	n := p.notice
	ignored := fmt.Sprintf("no run is about it (%s)", n.Kind)
	if e.Observer == nil || n.Kind != pipeline.NoticeFeedback {
		return e.ignore(ctx, p, ignored)
	}
	if may, err := e.remarked(ctx, p, "ignored"); !may || err != nil {
		return err
	}
	signals, err := e.Observer.Signals(ctx, nil, n, nil)
	if err != nil {
		return fmt.Errorf("look what people did on %s#%d: %w", n.Repo.FullName(), n.Pull, err)
	}
	if len(signals) == 0 {
		return e.ignore(ctx, p, ignored)
	}
	var words []string
	for i := range signals {
		signals[i].Scope = n.Repo.Scope()
		words = append(words, signalText(&signals[i]))
	}
	return e.store.Tx(ctx, func(ctx context.Context, tx *Tx) error {
		if err := e.store.Learn(ctx, tx, signals); err != nil {
			return err
		}
		return e.finish(ctx, tx, p, fmt.Sprintf("#%d, which is not Forge's: %s", n.Pull, strings.Join(words, ", ")))
	})
}
