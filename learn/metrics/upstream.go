package metrics

import (
	"slices"

	"forge/pipeline"
	"forge/pipeline/upstream"
)

// finishUpstream adds what agents of a run that ended told the planner, and what came of
// it.
func (m *measurer) finishUpstream() {
	early := func(f upstream.Feedback) bool { return f.Kind.Early() }
	if m.run.Part != nil { // it counts where it is decided
		return
	}
	if !m.run.Config.Upstream.Enabled && !slices.ContainsFunc(m.run.Upstream, early) {
		return
	}
	counts := map[upstream.Kind]int64{}
	for i := range m.run.Upstream {
		f := &m.run.Upstream[i]
		kind := string(f.Kind)
		counts[f.Kind]++
		if !f.Taken.IsZero() {
			m.sums.add(f.Raised, UpstreamResponse, kind, max(0, f.Taken.Sub(f.Raised).Milliseconds()))
		}
		m.sums.add(f.Raised, UpstreamEscalation, kind, one(f.Why != ""))
		if f.State == upstream.Resolved {
			m.sums.add(f.Raised, UpstreamHeld, kind, one(m.run.State == pipeline.StateVerified && !m.run.CameBack(i)))
		}
	}
	m.sums.add(m.ended, Upstream, "", int64(len(m.run.Upstream)))
	for _, kind := range []upstream.Kind{upstream.Constraint, upstream.Missed, upstream.Uncovered, upstream.Infeasible,
		upstream.Inconsistency, upstream.Contradicted, upstream.Quality} {
		if (kind.Early() || kind.OfTests()) && counts[kind] == 0 {
			continue // on the full track alone, or rare
		}
		m.sums.add(m.ended, Upstream, string(kind), counts[kind])
	}
}
