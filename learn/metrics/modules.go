package metrics

import (
	"time"

	"forge/pipeline"
	"forge/pipeline/module"
)

// pacing is how the building of a run's modules goes: until all of them are merged for the
// first time. What the integration sends back is counted by rounds.
type pacing struct {
	begun, last time.Time // the first module's begin, the last merge
	prev        time.Time // the event before
	away        int64     // milliseconds in which all waited for people
	idle        bool      // they have, since prev

	wall, serial, critical int64 // as of the last merge, in milliseconds
}

// pace takes in an event of a run with modules.
func (m *measurer) pace(e *pipeline.Event) {
	if len(m.run.Parts) == 0 || m.run.Part != nil {
		return
	}
	p := &m.pacing
	if p.idle {
		p.away += e.Time.Sub(p.prev).Milliseconds()
	}
	p.prev, p.idle = e.Time, m.waits()
	if p.begun.IsZero() {
		p.begun = e.Time
	}
	d := e.Data
	if e.Type != pipeline.EventPhaseCompleted || d.Phase == nil || d.Phase.Phase != pipeline.PhaseMerge || d.Update == nil {
		return
	}
	clash := len(d.Update.Conflicts) > 0 || d.Tests != nil && len(d.Tests.Failures) > 0
	m.sums.add(e.Time, ModuleConflicts, "", one(clash))
	if clash || len(m.run.Iterations) > 0 {
		return
	}
	p.last, p.wall = e.Time, e.Time.Sub(p.begun).Milliseconds()-p.away
	p.serial = m.run.Millis[pipeline.PhaseMerge]
	for i := range m.run.Parts {
		p.serial += m.run.Parts[i].Millis
	}
	p.critical = m.chain()
}

// waits reports whether nothing goes on before a person says something.
func (m *measurer) waits() bool {
	if m.run.State == pipeline.StateStopped {
		return true
	}
	asks := m.run.State == pipeline.StateWaiting
	for i := range m.run.Parts {
		switch p := &m.run.Parts[i]; {
		case p.Question != "" && p.Left == "":
			asks = true
		case !p.Done() && p.State == string(pipeline.StateRunning):
			return false
		}
	}
	return asks && m.run.Active == nil
}

// chain is the work of the modules that need each other which takes longest.
func (m *measurer) chain() (longest int64) {
	if m.run.Plan == nil || m.run.Plan.Split == nil {
		return 0
	}
	s, took := m.run.Plan.Split, map[string]int64{}
	for range s.Modules { // enough for the longest chain
		for _, mod := range s.Modules {
			var before, own int64
			for _, n := range mod.Needs {
				before = max(before, took[n])
			}
			if p := module.Find(m.run.Parts, mod.ID); p != nil {
				own = p.Millis
			}
			took[mod.ID] = before + own
			longest = max(longest, took[mod.ID])
		}
	}
	return longest
}

// finishModules adds what can be told of the modules of a run that has ended.
func (m *measurer) finishModules() {
	for i := range m.run.Parts {
		p := &m.run.Parts[i]
		m.sums.add(m.ended, ModulesLeftOut, "", one(p.Left != "" && p.Merged == ""))
		if p.Merged != "" {
			m.sums.add(m.ended, ModuleRounds, "", int64(p.Round))
		}
	}
	if p := &m.pacing; p.wall > 0 {
		m.sums.add(m.ended, ModuleSpeedup, "", 100*p.serial/p.wall)
		m.sums.add(m.ended, ModuleCritical, "", 100*p.critical/p.wall)
	}
}
