package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/learn"
	"forge/learn/impact"
	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

const (
	// scopeLimit is how many learnings a repository may hold; those of the least
	// worth go.
	scopeLimit = 2000
	// worthWithin is how far back runs say what learnings are worth: with one run in
	// ten left without it, it takes some months to be sure of anything.
	worthWithin = 365 * 24 * time.Hour
)

// Maintain keeps the memory small and true: what says the same is merged, what runs did
// worse with goes, and so does what a full scope can do without (lessons 20).
func (m *Learner) Maintain(ctx context.Context) error {
	known, err := m.o.DB.Learnings(ctx, store.MemoryFilter{Limit: 100_000})
	if err != nil {
		return err
	}
	outcomes, err := m.o.DB.Outcomes(ctx, "", m.o.Now().Add(-worthWithin))
	if err != nil {
		return err
	}
	now := m.o.Now().UTC().Truncate(time.Microsecond)
	byScope := map[string][]pipeline.Learning{}
	for _, l := range known {
		byScope[l.Scope] = append(byScope[l.Scope], l)
	}
	effects := effectsOf(outcomes)
	merged, retired := 0, 0
	for _, list := range byScope {
		gone, err := m.merge(ctx, list, now)
		if err != nil {
			return err
		}
		merged += len(gone)
		for _, r := range learn.Retire(list, effects, scopeLimit, now) {
			if gone[r.Learning.ID] {
				continue
			}
			err := m.o.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
				return m.o.DB.RetireLearning(ctx, tx, r.Learning.ID, now, r.Why)
			})
			if err != nil {
				return err
			}
			retired++
		}
		for _, q := range learn.Questioned(list, effects) {
			if err := m.question(ctx, q, now); err != nil {
				return err
			}
		}
	}
	if err := m.share(ctx, byScope, now); err != nil {
		return err
	}
	drawn, err := m.o.DB.Drawn(ctx, "")
	if err != nil {
		return err
	}
	if w := impact.WholeOf(drawn); w.Worse() {
		m.o.Log.WarnContext(ctx, "runs do worse with memory; "+impact.WorseFix, "why", w.Says()+", "+w.FirstPass.Text(true))
	}
	asked, err := Asked(ctx, m.o.DB, now)
	if err != nil {
		return err
	}
	for repo, a := range asked {
		if a.Worse() {
			m.o.Log.WarnContext(ctx, "what would be held back is wanted: "+AskedFix, "repo", repo, "why", a.String())
		}
	}
	if merged+retired > 0 {
		m.o.Log.InfoContext(ctx, "the memory was maintained", "merged", merged, "retired", retired)
	}
	return m.refresh(ctx)
}

// merge makes one of learnings that say the same, and returns which are gone into others.
func (m *Learner) merge(ctx context.Context, list []pipeline.Learning, now time.Time) (gone map[int64]bool, err error) {
	gone = map[int64]bool{}
	for _, g := range learn.Consolidate(list) {
		var from []int64
		for _, l := range g.From {
			from = append(from, l.ID)
			gone[l.ID] = true
		}
		past, err := m.o.DB.Evidence(ctx, g.Into.ID)
		if err != nil {
			return nil, err
		}
		err = m.o.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			if err := m.o.DB.MergeLearnings(ctx, tx, g.Into, from, now); err != nil {
				return err
			}
			return m.o.DB.ApplyEvidence(ctx, tx, g.Into.Scope, learn.Fresh(past, g.Evidence))
		})
		if err != nil {
			return nil, err
		}
		for _, l := range g.From {
			m.o.Log.InfoContext(ctx, fmt.Sprintf("L%d of %s went into L%d, which says the same: %s", l.ID, l.Scope, g.Into.ID, OneLine(l.Content, 240)))
		}
	}
	return gone, nil
}

// questionedBy begins what the history of a learning says when it is questioned.
const questionedBy = "questioned: "

// question notes, once, what speaks against what a person said: they decide on that.
func (m *Learner) question(ctx context.Context, q learn.Retirement, now time.Time) error {
	past, err := m.o.DB.History(ctx, q.Learning.ID)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(past, func(c store.MemoryChange) bool { return strings.HasPrefix(c.What, questionedBy) }) {
		return nil
	}
	m.o.Log.WarnContext(ctx, fmt.Sprintf("what a person said (L%d) is questioned; they may want to look at it", q.Learning.ID), "why", q.Why)
	return m.o.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		return m.o.DB.NoteLearning(ctx, tx, q.Learning.ID, pipeline.Actor{}, now, questionedBy+q.Why)
	})
}

// effectsOf measures what having a learning changed in first reviews.
func effectsOf(outcomes []record.Outcome) learn.Effects {
	out := learn.Effects{}
	for _, e := range impact.Estimate(outcomes) {
		if e.Surely.Known {
			out[e.Learning] = struct{ Low, High float64 }{e.Surely.Low, e.Surely.High}
		}
	}
	return out
}
