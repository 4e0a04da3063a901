package metrics

import "forge/pipeline"

// gates notes what the gates of quality of a tested head came to.
func (m *measurer) gates(e *pipeline.Event) {
	if e.Data.Tests == nil || e.Data.Phase == nil || e.Data.Phase.Phase != pipeline.PhaseTest {
		return
	}
	for _, g := range e.Data.Tests.Measures {
		m.sums.add(e.Time, QualityFailure, g.Name, one(!g.OK))
		if m.missed == nil {
			m.missed = map[string]bool{}
		}
		if _, once := m.missed[g.Name]; once || !g.OK {
			m.missed[g.Name] = !g.OK
		}
	}
}

// finishGates says of the gates that were missed whether they are met in the end.
func (m *measurer) finishGates() {
	for name, still := range m.missed {
		m.sums.add(m.ended, QualityRecovered, name, one(!still))
	}
}
