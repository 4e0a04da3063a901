// Package tracing shows runs as OpenTelemetry traces.
//
// A run lives for days, over restarts and on several servers, so no process can
// hold its spans open. They are derived from the run's events, once those are on
// disk: [Fold] is a pure function from events to finished spans. A span's id comes
// from the event that began it, the trace's id from the run, so that what two
// servers derive, or one derives twice, is the same span. [Exporter] follows the
// log of the runs that move and hands what is finished to the SDK's batch
// processor. It never makes a run wait.
//
//	run                        from its start until GitHub shows its end
//	├─ phase implement         one execution, with what came of it
//	│  ├─ chat MODEL           a model call (GenAI conventions)
//	│  ├─ execute_tool NAME    a tool call
//	│  └─ wait checks          for the repository's own CI; wait provider: for the model's
//	├─ gate escalation         from the question to its answer
//	└─ publish                 an attempt to show the run on GitHub
//
// What comes after the run's end (a reflection, a comment that is brought up to
// date) belongs to the trace, has no parent, and links to the run. A run that is
// reopened goes on in a span of its own, run reopened, which does the same.
//
// Attributes hold names, numbers and verdicts of Forge's own. No prompt, code,
// text of an issue or a person, path, command or error message is in a span.
package tracing

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"forge/pipeline"
)

// Span is a finished span.
type Span struct {
	Trace      trace.TraceID
	ID         trace.SpanID
	Parent     trace.SpanID // zero: none
	Link       trace.SpanID // the run, of what came after its end; zero: none
	Name       string
	Kind       trace.SpanKind
	Start, End time.Time
	Attributes []attribute.KeyValue
	Marks      []Mark
	Failed     bool  // error.type says how
	Seq        int64 // of the event that finished it
}

// Mark is something that happened at one moment of a span.
type Mark struct {
	Name       string
	At         time.Time
	Attributes []attribute.KeyValue
}

// Fold derives spans from a run's events. The zero value stands before the run's
// first event. It is not safe for concurrent use.
type Fold struct {
	run   pipeline.Run
	now   time.Time // of the last event; never goes back, whatever the servers' clocks do
	trace trace.TraceID

	root    *Span // until GitHub shows the run's end
	rootID  trace.SpanID
	ended   int64 // the revision that the run ended with; 0: it has not
	phase   *Span // that is being executed
	ref     pipeline.PhaseRef
	await   *Span     // within phase
	gate    *Span     // that is open
	publish *Span     // that is under way
	showing int64     // the revision that it shows
	turn    int       // the agent's last one
	cursor  time.Time // where the next tool call of the turn begins

	out []Span
}

// Seq is the number of the last event that was taken in.
func (f *Fold) Seq() int64 { return f.run.Seq }

// Apply takes in the run's next event and returns the spans that it finishes,
// children before their parents.
func (f *Fold) Apply(e pipeline.Event) []Span {
	if at := e.Time.Truncate(time.Microsecond); at.After(f.now) {
		f.now = at
	}
	f.out = nil
	gates := len(f.run.Gates)
	f.run.Apply(e)
	if e.Type == pipeline.EventRunStarted && f.rootID == (trace.SpanID{}) {
		f.begin(e)
	}
	if e.Type == pipeline.EventRunReopened && !f.run.State.Ended() {
		f.reopen(e)
	}
	f.phases(e)
	f.gates(e, gates)
	switch e.Type {
	case pipeline.EventAgentIteration:
		f.call(e)
	case pipeline.EventToolExecuted:
		f.tool(e)
	case pipeline.EventPhaseWaiting:
		if f.phase != nil && f.run.Await != nil && f.await == nil {
			name := "wait checks"
			switch {
			case f.run.Await.Model:
				name = "wait provider"
			case f.run.Await.GitHub:
				name = "wait GitHub"
			}
			f.await = f.open(e, "wait", name, trace.SpanKindInternal, f.phase)
		}
	case pipeline.EventPublishStarted, pipeline.EventPublishCompleted, pipeline.EventPublishFailed:
		f.publishing(e)
	}
	f.mark(e)
	if f.run.State.Ended() && f.ended == 0 {
		f.ended = f.run.Rev
	}
	return f.out
}

// begin opens the root span.
func (f *Fold) begin(e pipeline.Event) {
	f.trace = traceID(e.Trace)
	f.root = f.open(e, "run", "run", trace.SpanKindInternal, nil)
	f.rootID = f.root.ID
}

// reopen lets the run go on: in its root span when that is open still, because nobody
// has been shown the end yet, and otherwise in one that is linked to it.
func (f *Fold) reopen(e pipeline.Event) {
	if f.ended = 0; f.root == nil {
		f.root = f.open(e, "run", "run reopened", trace.SpanKindInternal, nil)
	}
}

// open begins a span at an event. Without a parent that is open it is the root, or
// comes after the run's end.
func (f *Fold) open(e pipeline.Event, what, name string, kind trace.SpanKind, parent *Span) *Span {
	s := &Span{Trace: f.trace, ID: spanID(f.trace, what, e.ID), Name: name, Kind: kind, Start: f.now}
	switch {
	case parent != nil:
		s.Parent = parent.ID
	case f.rootID != (trace.SpanID{}):
		s.Link = f.rootID
	}
	return s
}

// within is an open span that covers a time: it begins and ends inside its parent.
func (f *Fold) within(e pipeline.Event, what, name string, kind trace.SpanKind, from, to time.Time) *Span {
	parent := f.phase
	if parent == nil {
		parent = f.root
	}
	s := f.open(e, what, name, kind, parent)
	if parent != nil && from.Before(parent.Start) {
		from = parent.Start
	}
	s.Start, s.End = from, to
	if to.Before(from) {
		s.End = from
	}
	return s
}

// finish adds a span to what is exported. One that has not ended yet ends now.
func (f *Fold) finish(e pipeline.Event, s *Span) {
	if s.End.IsZero() {
		s.End = f.now
	}
	s.Seq = e.Seq
	f.out = append(f.out, *s)
}

// phases follows the executions of phases: one ends with its result, or when the
// run goes on without it.
func (f *Fold) phases(e pipeline.Event) {
	active := f.run.Active
	entered := e.Type == pipeline.EventPhaseEntered && active != nil && e.Data.Phase != nil && same(*active, *e.Data.Phase)
	if f.phase != nil && (active == nil || entered || !same(*active, f.ref)) {
		if f.await != nil {
			f.finish(e, f.await)
		}
		f.phase.Attributes = append(f.phase.Attributes, f.result(e)...)
		f.phase.Failed = e.Type == pipeline.EventPhaseFailed
		f.finish(e, f.phase)
		f.phase, f.await = nil, nil
	}
	if entered {
		f.phase, f.ref, f.turn = f.open(e, "phase", "phase "+string(active.Phase), trace.SpanKindInternal, f.root), *active, 0
		f.phase.Attributes = phaseAttributes(&f.run, *active)
	}
}

func same(a, b pipeline.PhaseRef) bool {
	return a.Phase == b.Phase && a.Iteration == b.Iteration && a.Attempt == b.Attempt
}

// gates follows the questions to people.
func (f *Fold) gates(e pipeline.Event, before int) {
	if f.gate != nil && f.run.Gates[before-1].Closed {
		f.gate.Attributes = append(f.gate.Attributes, answerAttributes(e, f.run.Gates[before-1])...)
		f.finish(e, f.gate)
		f.gate = nil
	}
	if len(f.run.Gates) > before {
		g := f.run.Gates[before]
		f.gate = f.open(e, "gate", "gate "+string(g.Kind), trace.SpanKindInternal, f.root)
		f.gate.Attributes = gateAttributes(g)
	}
}

// publishing follows the attempts to show the run. The first one that shows the
// run's end, or fails to, ends the root span.
func (f *Fold) publishing(e pipeline.Event) {
	p := e.Data.Publication
	if e.Type == pipeline.EventPublishStarted || f.publish == nil {
		if f.publish != nil { // nobody wrote down how it ended
			f.finish(e, f.publish)
		}
		f.publish, f.showing = f.open(e, "publish", "publish", trace.SpanKindClient, f.root), f.run.Rev
		if p != nil {
			f.showing = p.Rev
		}
		if e.Type == pipeline.EventPublishStarted {
			return
		}
	}
	f.publish.Attributes = publishAttributes(e)
	f.publish.Failed = e.Type == pipeline.EventPublishFailed
	f.finish(e, f.publish)
	f.publish = nil
	if f.root != nil && f.ended > 0 && f.showing >= f.ended {
		f.root.Attributes = runAttributes(&f.run)
		f.root.Failed = f.run.State == pipeline.StateFailed
		f.finish(e, f.root)
		f.root = nil
	}
}

// call is a turn's model call: the first thing in the turn, which ends at its event.
func (f *Fold) call(e pipeline.Event) {
	s := e.Data.Step
	if s == nil {
		return
	}
	start := f.now.Add(-millis(s.Millis))
	chat := f.within(e, "chat", "chat", trace.SpanKindClient, start, start.Add(millis(min(s.Call, s.Millis))))
	_, model := provider(s.Model)
	if model != "" {
		chat.Name = "chat " + model
	}
	chat.Attributes = chatAttributes(e)
	f.turn, f.cursor = s.Number, chat.End
	f.finish(e, chat)
}

// tool is a tool call. Those of a turn come one after the other.
func (f *Fold) tool(e pipeline.Event) {
	t := e.Data.Tool
	if t == nil {
		return
	}
	start := f.now.Add(-millis(t.Millis))
	if t.Step == f.turn && !f.cursor.IsZero() {
		start = f.cursor
	}
	end := start.Add(millis(t.Millis))
	if end.After(f.now) {
		end = f.now
	}
	s := f.within(e, "tool", "execute_tool "+toolName(t.Tool), trace.SpanKindInternal, start, end)
	s.Attributes = toolAttributes(e)
	s.Failed = !t.OK
	f.turn, f.cursor = t.Step, s.End
	f.finish(e, s)
}

// mark notes the turns of the loop on the root span.
func (f *Fold) mark(e pipeline.Event) {
	if f.root == nil {
		return
	}
	if attrs, ok := markAttributes(e); ok {
		f.root.Marks = append(f.root.Marks, Mark{Name: string(e.Type), At: f.now, Attributes: attrs})
	}
}

func millis(n int64) time.Duration { return time.Duration(max(0, n)) * time.Millisecond }

// traceID is the run's own trace id. One that is no trace id is hashed into one.
func traceID(s string) (id trace.TraceID) {
	if id, err := trace.TraceIDFromHex(s); err == nil {
		return id
	}
	sum := sha256.Sum256([]byte("trace\x00" + s))
	copy(id[:], sum[:])
	return id
}

// spanID names a span by what it is and the event that began it.
func spanID(of trace.TraceID, what, event string) (id trace.SpanID) {
	sum := sha256.Sum256([]byte(hex.EncodeToString(of[:]) + "\x00" + what + "\x00" + event))
	copy(id[:], sum[:])
	return id
}
