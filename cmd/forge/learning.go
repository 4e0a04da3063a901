package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"forge/learn"
	"forge/learn/recall"
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/store"
	"forge/pipeline/work"
)

// memory is how a server learns and remembers. The database is the truth; the index
// answers what matters for a change, and is brought up to date before it is asked.
type memory struct {
	db     *store.DB
	agent  *agent.Agent
	log    *slog.Logger
	now    func() time.Time
	record record

	reflection bool    // look back at runs
	withhold   float64 // share of what is recalled that is left out, to measure what it is worth

	index *recall.Index
	mu    sync.Mutex // of since
	since int64      // see store.ChangedLearnings

	wake   chan struct{}
	endsMu sync.Mutex
	ends   []int64 // runs that have ended and were not looked back at
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
	out := []string{work.Scope(r)}
	if r.Owner != "" {
		out = append(out, "org:"+r.Owner)
	}
	return out
}

// refresh takes into the index what has changed in the database.
func (m *memory) refresh(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, err := m.db.ChangedLearnings(ctx, m.since, m.index.Put)
	if err != nil {
		return fmt.Errorf("bring the index of learnings up to date: %w", err)
	}
	m.since = next
	return nil
}

// onEvents notes what there is to learn from.
func (m *memory) onEvents(run *pipeline.Run, events []pipeline.Event) {
	ended, feedback := false, false
	for _, e := range events {
		ended = ended || strings.HasPrefix(string(e.Type), "run.") || e.Type == pipeline.EventGateOverride
		feedback = feedback || e.Data.Signal != nil
	}
	if ended && run.State.Ended() {
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

// work learns until ctx is done: at once what was left over, then what comes.
func (m *memory) work(ctx context.Context) {
	if err := m.catchUp(ctx); err != nil && ctx.Err() == nil {
		m.log.WarnContext(ctx, "look for runs to look back at", "error", err)
	}
	t := time.NewTicker(learnEvery)
	defer t.Stop()
	for {
		if err := m.learn(ctx); err != nil && ctx.Err() == nil {
			m.log.WarnContext(ctx, "learn from what people did", "error", err)
		}
		for _, id := range m.takeEnds() {
			if err := m.ended(ctx, id); err != nil && ctx.Err() == nil {
				m.log.WarnContext(ctx, "look back at a run", "run", id, "error", err)
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

func (m *memory) takeEnds() []int64 {
	m.endsMu.Lock()
	defer m.endsMu.Unlock()
	list := m.ends
	m.ends = nil
	return list
}

// learn takes the feedback in that nobody has learnt from yet. What a crash cut off
// is done again: every part of it is the same the second time.
func (m *memory) learn(ctx context.Context) error {
	rated := map[string]bool{}
	for {
		events, err := m.db.Unlearned(ctx, cursorLearn, 0)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			if err := m.learnFrom(ctx, e); err != nil {
				return fmt.Errorf("event %d of run %d: %w", e.Seq, e.Run, err)
			}
			if s := e.Data.Signal; s != nil && (s.Kind == pipeline.SignalApplied || s.Kind == pipeline.SignalRewritten || s.Kind == pipeline.SignalIgnored) {
				rated[s.Scope] = true
			}
		}
	}
	for scope := range rated {
		if err := m.rate(ctx, scope); err != nil {
			return err
		}
	}
	return m.refresh(ctx)
}

// learnFrom does to the memory what one event says, and writes into the run what
// that did to confidence (H1, H2).
func (m *memory) learnFrom(ctx context.Context, e pipeline.Event) error {
	pass := func(ctx context.Context, tx *store.Tx) error {
		return m.db.AdvanceCursor(ctx, tx, cursorLearn, e.Run, e.Seq)
	}
	s := e.Data.Signal
	if s == nil || s.Scope == "" || s.Key == "" || s.At.IsZero() { // a gate's answer, or what an older Forge wrote
		return m.db.Tx(ctx, pass)
	}
	err := m.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := m.db.LearnSignal(ctx, tx, *s, judge)
		return err
	})
	if err != nil {
		return err
	}
	evidence, err := m.db.EvidenceFrom(ctx, s.Scope, s.Key)
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
		return m.db.Tx(ctx, pass)
	}
	return m.record(ctx, e.Run, events, pass)
}

func judge(s pipeline.Signal, known []pipeline.Learning, later []pipeline.Signal) ([]pipeline.Learning, []pipeline.Evidence) {
	j := learn.Judge(s, known, later)
	return j.Learnings, j.Evidence
}

// rate lets the share of applied suggestions count (H6).
func (m *memory) rate(ctx context.Context, scope string) error {
	signals, err := m.db.Signals(ctx, scope)
	if err != nil {
		return err
	}
	known, err := m.db.Learnings(ctx, store.MemoryFilter{Scopes: []string{scope}})
	if err != nil {
		return err
	}
	now := m.now().UTC().Truncate(time.Microsecond)
	var evidence []pipeline.Evidence
	for _, r := range learn.Rates(signals, now) {
		evidence = append(evidence, r.Evidence(known, now)...)
	}
	if len(evidence) == 0 {
		return nil
	}
	return m.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return m.db.ApplyEvidence(ctx, tx, scope, evidence) })
}

// filter holds back what people have dismissed before, and lists it in the
// review. A missed acceptance criterion is never held back: what is verified meets
// all of them.
func (m *memory) filter(ctx context.Context, run *pipeline.Run, review *pipeline.Review) {
	if m == nil || len(review.Findings) == 0 {
		return
	}
	known, err := m.db.Learnings(ctx, store.MemoryFilter{Scopes: scopes(run.Repo), Source: learn.SourceDismissal})
	if err != nil {
		m.log.WarnContext(ctx, "look up what was dismissed; every finding is posted", "run", run.ID, "error", err)
		return
	}
	signals, err := m.db.Signals(ctx, scopes(run.Repo)[0])
	if err != nil {
		m.log.WarnContext(ctx, "look up what people did with findings; every finding is posted", "run", run.ID, "error", err)
		return
	}
	predictor := learn.NewPredictor(learn.Decisions(signals), run.Config.Learn.DismissalTarget, m.now())
	var kept []pipeline.Finding
	for _, f := range review.Findings {
		if f.Criterion != "" {
			kept = append(kept, f)
			continue
		}
		k, held := learn.Filter([]pipeline.Finding{f}, known, predictor)
		kept = append(kept, k...)
		for _, h := range held {
			review.Held = append(review.Held, pipeline.HeldBack{Finding: h.Finding, Why: h.Why, Learning: h.Learning})
		}
	}
	review.Findings = kept
}
