// Package memory is how a server learns and remembers: it learns from what people do
// (learning.go), also in words that only a model can read (reading.go), and from runs
// that ended (retrospective.go), gives phases what matters
// for them (recall.go), keeps what is remembered small and true (maintenance.go), and
// answers people who ask for it (commands.go). The database holds all of it.
package memory

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"forge/learn"
	"forge/learn/nearest"
	"forge/learn/recall"
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// Record appends events to a run; see work.Engine.Record.
type Record = func(ctx context.Context, run int64, events []pipeline.Event, also func(context.Context, *store.Tx) error) error

// Reflector looks back at a run, and reads what people answered in it.
type Reflector interface {
	Reflects(run *pipeline.Run) (model string) // by which; "" for none
	Reflect(ctx context.Context, job agent.Job, question agent.Retrospective) (string, pipeline.Usage, error)
	ReadAnswer(ctx context.Context, job agent.Job, question agent.Answer) (string, pipeline.Usage, error)
}

// Options are what a learner needs.
type Options struct {
	DB        *store.DB
	Reflector Reflector
	Record    Record
	File      func(ctx context.Context, repo pipeline.Repo, sha, path string) ([]byte, error)      // of a commit; may be nil
	Weight    func(ctx context.Context, repo pipeline.Repo, actor pipeline.Actor) (float64, error) // of a person's word, 0 to 1; nil: all tasks are the operator's
	Log       *slog.Logger
	Now       func() time.Time

	Reflection bool    // look back at runs
	Withhold   float64 // share of what is recalled that is left out, to measure what it is worth
}

// Learner learns, and recalls. The database is the truth; the index answers what
// matters for a change, and is brought up to date before it is asked.
type Learner struct {
	o Options

	index *recall.Index
	mu    sync.Mutex // of since
	since int64      // see store.ChangedLearnings

	wake   chan struct{}
	endsMu sync.Mutex
	ends   []int64 // runs that have ended and were not looked back at
}

// New returns a learner. It recalls at once, and learns while it runs.
func New(o Options) *Learner {
	return &Learner{o: o, index: recall.New(), wake: make(chan struct{}, 1)}
}

// The names of the readers of the event log.
const (
	cursorLearn   = "learn"
	cursorReflect = "reflect"
)

// learnEvery is how often feedback is looked for that another server has taken in.
const learnEvery = time.Minute

// scopes are those whose learnings matter in a repository.
func scopes(r pipeline.Repo) []string {
	out := []string{r.Scope()}
	if r.Owner != "" {
		out = append(out, record.ScopeOf(r.Owner))
	}
	return out
}

// refresh takes into the index what has changed in the database.
func (m *Learner) refresh(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, err := m.o.DB.ChangedLearnings(ctx, m.since, m.index.Put)
	if err != nil {
		return fmt.Errorf("bring the index of learnings up to date: %w", err)
	}
	m.since = next
	return nil
}

// OnEvents notes what there is to learn from.
func (m *Learner) OnEvents(run *pipeline.Run, events []pipeline.Event) {
	ended, feedback := false, false
	for _, e := range events {
		ended = ended || strings.HasPrefix(string(e.Type), "run.") || e.Type == pipeline.EventGateOverride
		feedback = feedback || e.Data.Signal != nil
	}
	// What people do after the verdict is part of what became of it. A module is looked
	// back at with the run that planned it.
	if (ended || feedback) && run.State.Ended() && run.Part == nil {
		m.endsMu.Lock()
		if !slices.Contains(m.ends, run.ID) {
			m.ends = append(m.ends, run.ID)
		}
		m.endsMu.Unlock()
	} else if !feedback {
		return
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Run learns until ctx is done: at once what was left over, then what comes.
func (m *Learner) Run(ctx context.Context) {
	if err := m.catchUp(ctx); err != nil && ctx.Err() == nil {
		m.o.Log.WarnContext(ctx, "look for runs to look back at", "error", err)
	}
	t := time.NewTicker(learnEvery)
	defer t.Stop()
	for {
		if err := m.learn(ctx); err != nil && ctx.Err() == nil {
			m.o.Log.WarnContext(ctx, "learn from what people did", "error", err)
		}
		for _, id := range m.takeEnds(ctx) {
			if err := m.RunEnded(ctx, id); err != nil && ctx.Err() == nil {
				m.o.Log.WarnContext(ctx, "look back at a run", "run", id, "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-t.C:
		}
	}
}

// takeEnds returns the runs to look back at. A model is asked about them, so that those
// of a repository whose work is paused wait.
func (m *Learner) takeEnds(ctx context.Context) (ready []int64) {
	m.endsMu.Lock()
	list := m.ends
	m.ends = nil
	m.endsMu.Unlock()
	var held []int64
	for _, id := range list {
		run, err := m.o.DB.Load(ctx, id)
		paused := false
		if err == nil {
			paused, err = m.o.DB.Paused(ctx, run.Repo.FullName())
		}
		if err != nil && ctx.Err() == nil {
			m.o.Log.WarnContext(ctx, "look back at a run", "run", id, "error", err)
		}
		if paused || err != nil {
			held = append(held, id)
		} else {
			ready = append(ready, id)
		}
	}
	m.endsMu.Lock()
	defer m.endsMu.Unlock()
	m.ends = append(held, m.ends...)
	return ready
}

// learn takes the feedback in that nobody has learnt from yet. What a crash cut off
// is done again: every part of it is the same the second time.
func (m *Learner) learn(ctx context.Context) error {
	rated, gaps, refused := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for {
		events, err := m.o.DB.Unlearned(ctx, cursorLearn, 0)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			if err := m.learnOrPass(ctx, e); err != nil {
				return fmt.Errorf("event %d of run %d: %w", e.Seq, e.Run, err)
			}
			if s := e.Data.Signal; s != nil {
				rated[s.Scope] = rated[s.Scope] || learn.Rated(*s)
				gaps[s.Scope] = gaps[s.Scope] || s.Kind == pipeline.SignalGap
				refused[s.Scope] = refused[s.Scope] || s.Kind == pipeline.SignalDismissed || s.Kind == pipeline.SignalRefused
			}
		}
	}
	for _, then := range []struct {
		scopes map[string]bool
		do     func(context.Context, string) error
	}{{rated, m.rate}, {gaps, m.mergeGaps}, {refused, m.questionSaid}} {
		for scope, is := range then.scopes {
			if !is {
				continue
			}
			if err := then.do(ctx, scope); err != nil {
				return err
			}
		}
	}
	return m.refresh(ctx)
}

// questionSaid notes at once what others dismiss of that which people said or did.
func (m *Learner) questionSaid(ctx context.Context, scope string) error {
	known, err := m.o.DB.Learnings(ctx, store.MemoryFilter{Scopes: []string{scope}, Limit: Everything})
	if err != nil {
		return err
	}
	for _, q := range learn.Questioned(known, nil) {
		if err := m.question(ctx, q, m.o.Now().UTC().Truncate(time.Microsecond)); err != nil {
			return err
		}
	}
	return nil
}

// mergeGaps keeps once what several remarks bear in the same words.
func (m *Learner) mergeGaps(ctx context.Context, scope string) error {
	known, err := m.o.DB.Learnings(ctx, store.MemoryFilter{Scopes: []string{scope}, Source: pipeline.SourceGap, Limit: Everything})
	if err == nil {
		_, err = m.merge(ctx, known, m.o.Now().UTC().Truncate(time.Microsecond))
	}
	return err
}

// learnOrPass learns from one event. What panics would do so again: it is passed over, so
// that others are learnt from.
func (m *Learner) learnOrPass(ctx context.Context, e pipeline.Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			m.o.Log.ErrorContext(ctx, "learning from an event panicked; it is passed over", "run", e.Run, "error", fmt.Sprintf("event %d: %v", e.Seq, p), "stack", string(debug.Stack()))
			err = m.o.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
				return m.o.DB.AdvanceCursor(ctx, tx, cursorLearn, e.Run, e.Seq)
			})
		}
	}()
	return m.learnFrom(ctx, e)
}

// learnFrom does to the memory what one event says, and writes into the run what
// that did to confidence (H1, H2).
func (m *Learner) learnFrom(ctx context.Context, e pipeline.Event) error {
	pass := func(ctx context.Context, tx *store.Tx) error {
		return m.o.DB.AdvanceCursor(ctx, tx, cursorLearn, e.Run, e.Seq)
	}
	s := e.Data.Signal
	if s == nil || s.Scope == "" || s.Key == "" || s.At.IsZero() { // a gate's answer
		return m.o.DB.Tx(ctx, pass)
	}
	err := m.o.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := m.o.DB.LearnSignal(ctx, tx, *s, Judge)
		return err
	})
	if err != nil {
		return err
	}
	evidence, err := m.o.DB.EvidenceFrom(ctx, s.Scope, s.Key)
	if err != nil {
		return err
	}
	var events []pipeline.Event
	for _, v := range evidence {
		if v.Off != s.Off || v.Delta == 0 { // of another version of the signal
			continue
		}
		t := pipeline.EventMore
		if (v.Delta < 0) != v.Off { // what is taken back had the other sign
			t = pipeline.EventLess
		}
		events = append(events, pipeline.Event{ID: fmt.Sprintf("confidence/%d/%s", v.Learning, e.ID), Type: t, Source: e.Source, Data: pipeline.Data{Evidence: &v}})
	}
	if len(events) == 0 {
		return m.o.DB.Tx(ctx, pass)
	}
	return m.o.Record(ctx, e.Run, events, pass)
}

// Judge says what a signal teaches; see learn.Judge.
func Judge(s pipeline.Signal, known []pipeline.Learning, later []pipeline.Signal) ([]pipeline.Learning, []pipeline.Evidence) {
	j := learn.Judge(s, known, later)
	return j.Learnings, j.Evidence
}

// rate lets the share of applied suggestions count (H6).
func (m *Learner) rate(ctx context.Context, scope string) error {
	signals, err := m.o.DB.Signals(ctx, scope)
	if err != nil {
		return err
	}
	known, err := m.o.DB.Learnings(ctx, store.MemoryFilter{Scopes: []string{scope}})
	if err != nil {
		return err
	}
	now := m.o.Now().UTC().Truncate(time.Microsecond)
	var evidence []pipeline.Evidence
	for _, r := range learn.Rates(signals, now) {
		evidence = append(evidence, r.Evidence(known, now)...)
	}
	if len(evidence) == 0 {
		return nil
	}
	return m.o.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return m.o.DB.ApplyEvidence(ctx, tx, scope, evidence) })
}

// Filter holds back what people have dismissed before, and lists it in the
// review. A missed acceptance criterion is never held back: what is verified meets
// all of them.
func (m *Learner) Filter(ctx context.Context, run *pipeline.Run, review *pipeline.Review) {
	if len(review.Findings) == 0 {
		return
	}
	known, err := m.o.DB.Learnings(ctx, store.MemoryFilter{Scopes: scopes(run.Repo), Source: pipeline.SourceDismissal})
	if err != nil {
		m.o.Log.WarnContext(ctx, "look up what was dismissed; every finding is posted", "run", run.ID, "error", err)
		return
	}
	known = m.followed(ctx, run, known, review.Findings)
	signals, err := m.o.DB.Signals(ctx, scopes(run.Repo)[0])
	if err != nil {
		m.o.Log.WarnContext(ctx, "look up what people did with findings; every finding is posted", "run", run.ID, "error", err)
		return
	}
	refusals := nearest.New(nearest.Decisions(signals), m.o.Now())
	var kept []pipeline.Finding
	for _, f := range review.Findings {
		if f.Criterion != "" {
			kept = append(kept, f)
			continue
		}
		k, held := learn.Filter([]pipeline.Finding{f}, known, refusals)
		kept = append(kept, k...)
		for _, h := range held {
			back := pipeline.SuppressedFinding{Finding: h.Finding, Why: h.Why, Learning: h.Learning, By: h.By, At: h.At}
			if i := slices.IndexFunc(signals, func(s pipeline.Signal) bool { return h.Signal != "" && s.Key == h.Signal }); i >= 0 {
				back.Pull, back.Comment = signals[i].Pull, signals[i].Comment
			}
			review.Suppressed = append(review.Suppressed, back)
		}
	}
	review.Findings = kept
}
