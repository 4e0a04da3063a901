package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/panics"
	"forge/pipeline/record"
)

// intakeBatch is how many waiting deliveries are read at once.
const intakeBatch = 100

// inbound is a delivery on its way through the intake.
type inbound struct {
	record.Delivery
	notice  pipeline.Notice
	readErr error
	key     string // parcels with the same key are handled one after the other
	allowed bool   // the actor is known to have write access
	half    bool   // more of it is still to be taken in: nothing is settled yet
	said    string // outcome of its first half
}

// errHandled says that someone else finished the delivery; what was about to be
// done for it is rolled back.
var errHandled = errors.New("the delivery was handled before")

// takeIn handles deliveries as they come: those of one issue one after the other
// in order of arrival, different ones at the same time.
func (e *Engine) takeIn(ctx context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go e.graceful(ctx, cancel)
	t := time.NewTicker(e.Tick)
	defer t.Stop()
	q := &intakeQueue{known: map[string]bool{}, busy: map[string]bool{}}
	done := make(chan *inbound)
	look := true
	for {
		if look && !e.draining() {
			more, err := e.fetch(ctx, q)
			if err != nil && ctx.Err() == nil {
				e.Logger.WarnContext(ctx, "looking for deliveries", logError, err)
			}
			look = more && len(q.waiting) == 0
		}
		for q.running < e.Intake && !e.draining() {
			p := q.next()
			if p == nil {
				break
			}
			go func() { e.accept(ctx, p); done <- p }()
		}
		if look && q.running == 0 && !e.draining() {
			continue
		}
		if e.draining() && q.running == 0 {
			return
		}
		drain := e.drain
		if e.draining() {
			drain = nil
		}
		select {
		case p := <-done:
			q.finished(p)
			look = look || len(q.waiting) == 0
		case <-e.wake:
			look = true
		case <-t.C:
			look = true
		case <-drain:
		}
	}
}

// intakeQueue holds the parcels that were fetched and not finished. It belongs
// to one goroutine.
type intakeQueue struct {
	waiting []*inbound
	known   map[string]bool // waiting or being handled, by GUID
	busy    map[string]bool // keys that are being handled
	running int
}

// next takes the first delivery whose key is not busy; nil when there is none.
func (q *intakeQueue) next() *inbound {
	for i, p := range q.waiting {
		if q.busy[p.key] {
			continue
		}
		q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
		q.busy[p.key] = true
		q.running++
		return p
	}
	return nil
}

func (q *intakeQueue) finished(p *inbound) {
	delete(q.busy, p.key)
	delete(q.known, p.GUID)
	q.running--
}

// fetch reads waiting deliveries. Those that mean nothing are finished together;
// the others are queued. more says that there may be more of them.
func (e *Engine) fetch(ctx context.Context, q *intakeQueue) (more bool, err error) {
	list, err := e.store.WaitingDeliveries(ctx, e.now(), intakeBatch+len(q.known))
	if err != nil {
		return false, fmt.Errorf("list waiting deliveries: %w", err)
	}
	more = len(list) >= intakeBatch+len(q.known)
	var nothing []*inbound
	for _, d := range list {
		if q.known[d.GUID] {
			continue
		}
		p := &inbound{Delivery: d}
		p.notice, p.readErr = e.read(d)
		if p.readErr == nil && (p.notice.Kind == pipeline.NoticeNone || p.notice.Kind == pipeline.NoticeInstallation && len(p.notice.Left) == 0) {
			nothing = append(nothing, p)
			continue
		}
		p.key = keyOf(p)
		q.known[d.GUID] = true
		q.waiting = append(q.waiting, p)
	}
	return more, e.finishAll(ctx, nothing)
}

// finishAll records the outcome of deliveries that mean nothing to any run.
func (e *Engine) finishAll(ctx context.Context, parcels []*inbound) error {
	if len(parcels) == 0 {
		return nil
	}
	now := e.now()
	err := e.store.Tx(ctx, func(ctx context.Context, tx *Tx) error {
		for _, p := range parcels {
			outcome := p.notice.Why
			if outcome == "" {
				outcome = "nothing to do: " + string(p.notice.Kind)
			}
			if _, err := e.store.FinishDelivery(ctx, tx, p.GUID, outcome, p.notice.Kind == pipeline.NoticeNone, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("finish %d deliveries: %w", len(parcels), err)
	}
	return nil
}

// keyOf names what a delivery is about. What happens on an issue and what happens
// on its pull request have different keys: there, conflicts keep the order.
func keyOf(p *inbound) string {
	n := p.notice
	switch {
	case p.readErr != nil:
		return p.GUID
	case n.Kind == pipeline.NoticeMergeGroup: // tests run for them: one of a repository at a time
		return fmt.Sprintf("%d@queue", n.Repo.ID)
	case n.Issue != 0:
		return fmt.Sprintf("%d#%d", n.Repo.ID, n.Issue)
	case n.Pull != 0:
		return fmt.Sprintf("%d#%d", n.Repo.ID, n.Pull)
	}
	return fmt.Sprintf("%d@%s", n.Repo.ID, n.Branch)
}

func (e *Engine) read(d record.Delivery) (n pipeline.Notice, err error) {
	defer panics.AsError(context.Background(), e.Logger.With(logDelivery, d.GUID), &err, "reading a delivery")
	_, done := Working(context.Background(), labelDelivery+d.GUID)
	defer done()
	if n, err = e.Read(d.Event, d.Payload); err != nil {
		return n, fmt.Errorf("read %s: %w", d.Event, err)
	}
	return n, nil
}

// accept handles one delivery and records what became of it.
func (e *Engine) accept(ctx context.Context, p *inbound) {
	ctx, done := Working(ctx, labelDelivery+p.GUID)
	defer done()
	log := e.Logger.With(logDelivery, p.GUID, logRepo, p.notice.Repo.FullName())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if paused, err := e.Paused(ctx, p.Repo); paused || err != nil { // fetched before that: it waits on
		log.DebugContext(ctx, "a delivery waits: work is paused", logError, err)
		return
	}
	go e.heed(ctx, cancel, 0, p.Repo)
	err := e.handle(ctx, p)
	switch {
	case err == nil || errors.Is(err, errHandled):
		return
	case ctx.Err() != nil: // the engine stops: it goes on waiting
		return
	}
	next := e.now().Add(e.backoff(2*p.Attempts+1, err))
	log.WarnContext(ctx, "handling a delivery failed", logError, err, "attempt", p.Attempts+1, "attempts", tries)
	if p.Attempts+1 >= tries && p.notice.Kind == pipeline.NoticeStart {
		e.giveUp(ctx, p, err)
	}
	if err := e.store.FailDelivery(ctx, p.GUID, err.Error(), next); err != nil {
		log.ErrorContext(ctx, "recording that a delivery failed", logError, err)
	}
}

// handle does what a delivery asks for. A panic is its error.
func (e *Engine) handle(ctx context.Context, p *inbound) (err error) {
	defer panics.AsError(ctx, e.Logger.With(logDelivery, p.GUID), &err, "handling a delivery")
	if p.readErr != nil {
		return p.readErr
	}
	if len(p.notice.Left) > 0 {
		return e.leftBehind(ctx, p)
	}
	if gone, err := e.identify(ctx, &p.notice); err != nil {
		return err
	} else if gone {
		return e.conclude(ctx, p, "ignored: the repository is gone, or the App is not installed on it")
	}
	switch {
	case p.notice.Kind == pipeline.NoticeRepository:
		return e.conclude(ctx, p, p.notice.Why)
	case p.notice.Kind == pipeline.NoticeStart:
		return e.begin(ctx, p)
	case p.notice.Kind == pipeline.NoticeCommand && p.notice.Reviewed && p.notice.Feedback != nil:
		return e.verdict(ctx, p)
	case p.notice.Kind == pipeline.NoticeCommand:
		return e.command(ctx, p)
	case p.notice.Kind == pipeline.NoticeBaseMoved || p.notice.Kind == pipeline.NoticeChecks:
		return e.everyRun(ctx, p)
	}
	if p.notice.Kind == pipeline.NoticeMergeGroup {
		return e.mergeGroup(ctx, p)
	}
	return e.happened(ctx, p)
}

// verdict carries out the command that is the text of a review with a verdict, then takes
// in that verdict, and what the review requests on lines, as of any review.
func (e *Engine) verdict(ctx context.Context, p *inbound) error {
	p.half = true
	if err := e.command(ctx, p); err != nil {
		return err
	}
	p.half = false
	p.notice.Kind, p.notice.Command, p.notice.Comment = pipeline.NoticeFeedback, command.Line{}, 0
	return e.happened(ctx, p)
}

// cause begins the IDs of the events that follow: those of a verdict are not those of the
// command which came with it.
func (p *inbound) cause() string {
	if p.said != "" {
		return p.GUID + "/review"
	}
	return p.GUID
}

// before reports whether the command of a delivery has told the run something already: what
// came after it failed, and all is handled again.
func (e *Engine) before(ctx context.Context, run *pipeline.Run, p *inbound) (bool, error) {
	if !p.half || run == nil {
		return false, nil
	}
	events, err := e.store.Events(ctx, run.ID, 0)
	if err != nil {
		return false, fmt.Errorf("read what run %d was told: %w", run.ID, err)
	}
	return slices.ContainsFunc(events, func(ev pipeline.Event) bool { return strings.HasPrefix(ev.ID, p.GUID+"/") }), nil
}

// mergeGroup has the verdict on a merge group given.
func (e *Engine) mergeGroup(ctx context.Context, p *inbound) error {
	if e.Queue == nil {
		return e.ignore(ctx, p, p.notice.Why)
	}
	run, err := e.find(ctx, p.notice)
	if err != nil {
		return err
	}
	outcome, err := e.Queue.MergeGroup(ctx, p.notice, run)
	if err != nil {
		return err
	}
	return e.conclude(ctx, p, outcome)
}

// finish records the outcome in the transaction of what it came from.
func (e *Engine) finish(ctx context.Context, tx *Tx, p *inbound, outcome string) error {
	return e.settle(ctx, tx, p, outcome, false)
}

func (e *Engine) settle(ctx context.Context, tx *Tx, p *inbound, outcome string, quiet bool) error {
	if p.half {
		p.said = outcome + "; "
		return nil
	}
	if p.said != "" {
		outcome, quiet = p.said+outcome, false
	}
	ok, err := e.store.FinishDelivery(ctx, tx, p.GUID, outcome, quiet, e.now())
	if err != nil {
		return err
	}
	if !ok {
		return errHandled
	}
	e.Logger.InfoContext(ctx, "delivery", logDelivery, p.GUID, logRepo, p.notice.Repo.FullName(), "outcome", outcome)
	return nil
}

// conclude records an outcome that changes no run.
func (e *Engine) conclude(ctx context.Context, p *inbound, outcome string) error {
	return e.store.Tx(ctx, func(ctx context.Context, tx *Tx) error { return e.finish(ctx, tx, p, outcome) })
}

// ignore records why nothing follows from a delivery, as with most of them.
func (e *Engine) ignore(ctx context.Context, p *inbound, why string) error {
	return e.store.Tx(ctx, func(ctx context.Context, tx *Tx) error { return e.settle(ctx, tx, p, "ignored: "+why, true) })
}
