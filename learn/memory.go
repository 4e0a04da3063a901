package learn

import (
	"cmp"
	"slices"

	"forge/pipeline"
)

// Memory is a memory in memory: the learnings, the latest signal of each key and
// the evidence, as the database keeps them. The zero value is empty.
type Memory struct {
	learnings map[[2]string]pipeline.Learning // by scope and key
	signals   map[[2]string]pipeline.Signal   // by scope and key
	evidence  map[[3]string]pipeline.Evidence // by scope, key of the learning, key
}

// Add puts a learning in that comes from no signal.
func (m *Memory) Add(l pipeline.Learning) {
	m.init()
	if l.State == "" {
		l.State = Active
	}
	m.learnings[[2]string{l.Scope, l.Key}] = l
	for _, s := range m.signals {
		if e, ok := Bears(s, &l); ok {
			m.evidence[[3]string{l.Scope, l.Key, e.Key}] = e
		}
	}
	m.weigh(l.Scope)
}

func (m *Memory) init() {
	if m.learnings == nil {
		m.learnings, m.signals, m.evidence = map[[2]string]pipeline.Learning{}, map[[2]string]pipeline.Signal{}, map[[3]string]pipeline.Evidence{}
	}
}

// Take takes a signal in and reports whether that changed anything: a repeat, or
// one that came too late, does not.
func (m *Memory) Take(s pipeline.Signal) bool {
	m.init()
	at := [2]string{s.Scope, s.Key}
	if old, ok := m.signals[at]; ok && !s.Supersedes(old) {
		return false
	}
	m.signals[at] = s
	var others []pipeline.Signal
	for k, o := range m.signals {
		if k != at && o.Scope == s.Scope {
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
		m.evidence[[3]string{scope, e.Of, e.Key}] = e
	}
	m.weigh(scope)
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

func (m *Memory) settle(s pipeline.Signal, j Judgement) {
	for k, l := range m.learnings {
		if l.Scope == s.Scope && l.Signal == s.Key {
			l.State = Withdrawn
			m.learnings[k] = l
		}
	}
	again := map[string]bool{}
	for _, l := range j.Learnings {
		again[l.Key] = true
		m.learnings[[2]string{l.Scope, l.Key}] = l
	}
	for k := range m.evidence {
		if k[0] == s.Scope && (k[2] == s.Key || again[k[1]]) {
			delete(m.evidence, k)
		}
	}
	for _, e := range j.Evidence {
		m.evidence[[3]string{s.Scope, e.Of, e.Key}] = e
	}
	m.weigh(s.Scope)
}

func (m *Memory) weigh(scope string) {
	for k, l := range m.learnings {
		if l.Scope == scope {
			l.Weigh(m.Evidence(scope, l.Key))
			m.learnings[k] = l
		}
	}
}

// Evidence returns what there is for and against a learning, by key.
func (m *Memory) Evidence(scope, learning string) []pipeline.Evidence {
	var out []pipeline.Evidence
	for k, e := range m.evidence {
		if k[0] == scope && k[1] == learning {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b pipeline.Evidence) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// Learnings returns what is remembered, by scope and key; what was withdrawn is
// not.
func (m *Memory) Learnings() []pipeline.Learning {
	var out []pipeline.Learning
	for _, l := range m.learnings {
		if l.State != Withdrawn {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b pipeline.Learning) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key))
	})
	return out
}
