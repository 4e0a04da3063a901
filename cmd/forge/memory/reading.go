package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"forge/learn/reflect"
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/record"
)

// mostRead is how many answers of a run a model reads.
const mostRead = 20

// readAnswers has a model read what people answered to findings in words that say nothing
// plainly: each text once, for what looking back at the run may still cost. What it reads
// is a signal without weight; what follows from it is said by feedback.Signals, when it
// looks next, beside what became of the code.
func (m *Learner) readAnswers(ctx context.Context, id int64) error {
	if !m.o.Reflection {
		return nil
	}
	for {
		run, err := m.o.DB.Load(ctx, id)
		if err != nil {
			return err
		}
		events, err := m.o.DB.Events(ctx, id, 0)
		if err != nil {
			return err
		}
		signals := pipeline.KnownSignals(events)
		next, had, read := unread(signals)
		if next == nil || read >= mostRead {
			return nil
		}
		asked, err := m.readAnswer(ctx, run, *next, had, read+1)
		if err != nil || !asked {
			return err
		}
	}
}

// unread is the next answer that nobody has read, what was read in an earlier text of it,
// and how many were read. Of strangers nothing is read: their word has no weight.
func unread(signals []pipeline.Signal) (next *pipeline.Signal, had pipeline.Signal, read int) {
	by := map[string]pipeline.Signal{}
	for _, s := range signals {
		if s.Kind == pipeline.SignalRead {
			by[s.Key] = s
			read++
		}
	}
	for i := range signals {
		s := &signals[i]
		if s.Kind != pipeline.SignalAnswered || s.Off || !(s.Weight > 0) {
			continue
		}
		r := by[record.ReadKey(s.Comment)]
		if r.Reading == nil || r.Reading.Digest != record.TextDigest(s.Text) {
			return s, r, read
		}
	}
	return nil, had, read
}

// readAnswer asks about one answer, and keeps what was read. It reports whether it was
// asked: it is not where no model is, or where the budget does not allow.
func (m *Learner) readAnswer(ctx context.Context, run *pipeline.Run, s, had pipeline.Signal, number int) (bool, error) {
	spent := run.Spent[pipeline.PhaseReflect].MicroUSD
	digest := record.TextDigest(s.Text)
	job := reflectJob(run, fmt.Sprintf("run/%d/%s/%s", run.ID, record.ReadKey(s.Comment), digest))
	q := agent.Answer{Number: number, Words: s.Text, Form: reflect.ReadingForm, Limit: reflect.Cap(run, spent) - spent}
	if s.About != nil {
		q.Finding = s.About.Message
	}
	begun := m.o.Now()
	answer, usage, err := m.o.Reflector.ReadAnswer(ctx, job, q)
	var fault *pipeline.Fault
	reading := reflect.ParseReading(answer, s.Text)
	switch {
	case errors.Is(err, agent.ErrNoReflector) || dear(err, usage):
		m.o.Log.DebugContext(ctx, "an answer is not read", "run", run.ID, "comment", s.Comment, "why", err)
		return false, nil
	case errors.As(err, &fault) && (fault.Class == pipeline.FaultBudget || fault.Class == pipeline.FaultAgent):
		reading = record.Reading{Meaning: record.MeaningUnclear, Digest: digest, Why: fault.Message}
	case err != nil:
		return false, fmt.Errorf("read answer %d: %w", s.Comment, err)
	}
	at := m.o.Now().UTC().Truncate(time.Millisecond)
	if !at.After(had.At) {
		at = had.At.Add(time.Millisecond)
	}
	signal := pipeline.Signal{Key: record.ReadKey(s.Comment), Kind: pipeline.SignalRead, At: at, Actor: s.Actor, Pull: s.Pull, Finding: s.Finding,
		File: s.File, Line: s.Line, Text: reading.Quote, Comment: s.Comment, Scope: s.Scope, Run: run.ID, About: s.About, Reading: &reading}
	m.o.Log.InfoContext(ctx, "read an answer", "run", run.ID, "comment", s.Comment, "meaning", reading.Meaning, "why", reading.Why)
	made := append(m.booked(job, "agent:reader", number, usage, begun, reading.Meaning != record.MeaningUnclear),
		pipeline.SignalEvents([]pipeline.Signal{signal})...)
	return true, m.o.Record(ctx, run.ID, made, nil)
}
