package learn

import (
	"cmp"
	"maps"
	"slices"

	"forge/pipeline"
)

// Memory is a memory in memory: the learnings, the latest signal of each key and
// the evidence, as the database keeps them.
type Memory struct {
	learnings map[[2]string]pipeline.Learning            // by scope and key
	signals   map[[2]string]pipeline.Signal              // by scope and key
	evidence  map[[2]string]map[string]pipeline.Evidence // by scope and key of the learning, then by key
}

// NewMemory returns a memory that holds learnings which come from no signal.
func NewMemory(seeds ...pipeline.Learning) *Memory {
	m := &Memory{map[[2]string]pipeline.Learning{}, map[[2]string]pipeline.Signal{}, map[[2]string]map[string]pipeline.Evidence{}}
	for _, l := range seeds {
		if l.State == "" {
			l.State = pipeline.LearningActive
		}
		m.learnings[[2]string{l.Scope, l.Key}] = l
		m.weigh([2]string{l.Scope, l.Key})
	}
	return m
}

func (m *Memory) put(scope string, e pipeline.Evidence) {
	of := [2]string{scope, e.Of}
	if m.evidence[of] == nil {
		m.evidence[of] = map[string]pipeline.Evidence{}
	}
	m.evidence[of][e.Key] = e
}

// Take takes a signal in and reports whether that changed anything: a repeat, or
// one that came too late, does not.
func (m *Memory) Take(s pipeline.Signal) bool {
	at := [2]string{s.Scope, s.Key}
	if old, ok := m.signals[at]; ok && !s.Supersedes(old) {
		return false
	}
	m.signals[at] = s
	var others []pipeline.Signal
	for k, o := range m.signals {
		if k != at && o.Scope == s.Scope && o.At.After(s.At) { // earlier ones say nothing about what it bears
			others = append(others, o)
		}
	}
	var known []pipeline.Learning
	for _, l := range m.learnings {
		if l.Scope == s.Scope {
			known = append(known, l)
		}
	}
	m.settle(s, Judge(s, known, others))
	return true
}

// Apply puts evidence in that comes from no signal, instead of what there was
// with the same keys.
func (m *Memory) Apply(scope string, evidence []pipeline.Evidence) {
	for _, e := range evidence {
		m.put(scope, e)
		m.weigh([2]string{scope, e.Of})
	}
}

// Signals returns the latest signal of each key, by scope and key.
func (m *Memory) Signals() []pipeline.Signal {
	var out []pipeline.Signal
	for _, s := range m.signals {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b pipeline.Signal) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key))
	})
	return out
}

// settle does what a judgement says, and weighs the learnings that it touches.
func (m *Memory) settle(s pipeline.Signal, j Judgement) {
	touched := map[[2]string]bool{}
	for k, l := range m.learnings {
		if l.Scope == s.Scope && l.Signal == s.Key {
			l.State = pipeline.LearningWithdrawn
			m.learnings[k] = l
			touched[k] = true
		}
	}
	for _, l := range j.Learnings {
		k := [2]string{l.Scope, l.Key}
		m.learnings[k] = l
		delete(m.evidence, k)
		touched[k] = true
	}
	for k, list := range m.evidence {
		if _, ok := list[s.Key]; ok && k[0] == s.Scope {
			delete(list, s.Key)
			touched[k] = true
		}
	}
	for _, e := range j.Evidence {
		m.put(s.Scope, e)
		touched[[2]string{s.Scope, e.Of}] = true
	}
	for k := range touched {
		m.weigh(k)
	}
}

func (m *Memory) weigh(at [2]string) {
	if l, ok := m.learnings[at]; ok {
		l.Weigh(m.Evidence(at[0], at[1]))
		m.learnings[at] = l
	}
}

// Evidence returns what there is for and against a learning, by key.
func (m *Memory) Evidence(scope, learning string) []pipeline.Evidence {
	return slices.SortedFunc(maps.Values(m.evidence[[2]string{scope, learning}]), func(a, b pipeline.Evidence) int { return cmp.Compare(a.Key, b.Key) })
}

// Learnings returns what is remembered, by scope and key; what was withdrawn is
// not.
func (m *Memory) Learnings() []pipeline.Learning {
	var out []pipeline.Learning
	for _, l := range m.learnings {
		if l.State != pipeline.LearningWithdrawn {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b pipeline.Learning) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key))
	})
	return out
}
