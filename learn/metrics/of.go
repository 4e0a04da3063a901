package metrics

import (
	"cmp"
	"slices"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/record"
)

// Of measures a run: it returns what its events add to the sums of each day, in
// the order of days, metrics, labels and buckets. The events are all of the run up
// to some moment, in their order; what a run adds from one moment to a later one
// is the difference of what it returns for both.
func Of(events []pipeline.Event) []record.MetricRow {
	m := &measurer{sums: sums{}, counts: map[pipeline.Phase]int64{}, works: map[int]int64{}, overridden: map[string]bool{},
		answered: map[string]bool{}, recalls: map[recallKey]*recall{}}
	for i := range events {
		m.take(&events[i])
	}
	m.flushTurn()
	m.finish(pipeline.KnownSignals(events))
	return m.sums.rows()
}

// loopPhases are the phases that every run may have.
var loopPhases = []pipeline.Phase{pipeline.PhasePlan, pipeline.PhaseImplement, pipeline.PhaseReview, pipeline.PhaseTest}

// measurer goes through a run's events. What they do to the run is folded by the
// run itself; here is only what a run does not keep.
type measurer struct {
	sums sums
	run  pipeline.Run

	ended   time.Time                // the run's end
	counts  map[pipeline.Phase]int64 // executions with a result
	works   map[int]int64            // working time in milliseconds, by iteration
	turns   int64                    // of the agent, in the execution that is under way
	advised bool                     // it stagnated in that execution
	turn    turn

	review    time.Time // the first review's end
	judged    bool      // what became of it is known
	shrinking bool      // a bounce met diminishing returns
	learnings int64
	pacing    pacing

	findings   []finding       // the reviewer's, in order of first sight
	known      int             // findings of the run that were looked at
	overridden map[string]bool // gates
	answered   map[string]bool // gates
	missed     map[string]bool // gates of quality that were, and whether they are still
	recalls    map[recallKey]*recall
	order      []recallKey // of recalls
}

type finding struct {
	fingerprint, category, lens string
	at                          time.Time
}

type recallKey struct {
	phase     pipeline.Phase
	iteration int
	role      config.Role
}

type recall struct {
	at    time.Time
	given []int64
	used  []int64
}

// turn is one turn of an agent and the tools that it asked for, in whatever order
// they are told.
type turn struct {
	key   [3]any
	at    time.Time
	cost  int64 // micro-USD
	part  bool  // some of the cost is not known
	tools []string
}

func (m *measurer) take(e *pipeline.Event) {
	m.run.Apply(*e)
	if m.ended.IsZero() && m.run.State.Ended() {
		m.ended = e.Time
	}
	m.look(e)
	switch d := e.Data; e.Type {
	case pipeline.EventAgentIteration:
		if d.Step != nil {
			m.turns++
			m.advised = m.advised || d.Step.Advice != ""
			turn := m.inTurn(e.Time, d.Step.Phase, d.Step.Iteration, d.Step.Number)
			turn.cost += d.Step.Usage.MicroUSD
			turn.part = turn.part || d.Step.Usage.Unpriced > 0
			m.model(e.Time, d.Step)
		}
	case pipeline.EventToolExecuted:
		if t := d.Tool; t != nil {
			tool := toolLabel(t.Tool)
			m.sums.add(e.Time, ToolSuccess, tool, one(t.OK))
			m.sums.add(e.Time, ToolDuration, tool, t.Millis)
			turn := m.inTurn(e.Time, t.Phase, t.Iteration, t.Step)
			turn.tools = append(turn.tools, tool)
		}
	case pipeline.EventPhaseEntered:
		m.flushTurn()
		m.turns, m.advised = 0, false
	case pipeline.EventPhaseCompleted, pipeline.EventPhaseFailed:
		m.endPhase(e)
	case pipeline.EventPublishCompleted, pipeline.EventPublishFailed:
		m.sums.add(e.Time, PublishFailure, "", one(e.Type == pipeline.EventPublishFailed))
	case pipeline.EventReflection:
		if d.Reflection != nil {
			m.learnings += int64(len(d.Reflection.Learnings))
		}
	case pipeline.EventRecalled, pipeline.EventUsed:
		m.takeRecall(e)
	}
	m.judge(e)
	m.pace(e)
}

// model adds what a turn took of its model, and how the model had to be helped.
func (m *measurer) model(at time.Time, s *pipeline.Step) {
	u := s.Usage
	if u.Calls == 0 { // played back
		return
	}
	m.sums.add(at, ModelTokens, "", u.Input+u.Output)
	m.sums.add(at, ModelTokens, "input", u.Input-u.CachedInput)
	m.sums.add(at, ModelTokens, "cached", u.CachedInput)
	m.sums.add(at, ModelTokens, "output", u.Output-u.Reasoning)
	m.sums.add(at, ModelTokens, "reasoning", u.Reasoning)
	m.sums.add(at, ModelAdapted, "", one(len(s.Adapted) > 0))
	for _, how := range pipeline.Adaptations() {
		m.sums.add(at, ModelAdapted, how, one(slices.Contains(s.Adapted, how)))
	}
}

// inTurn returns the turn that a step or a tool belongs to. It begins another one,
// when it is not that which is under way.
func (m *measurer) inTurn(at time.Time, p pipeline.Phase, iteration, step int) *turn {
	key := [3]any{p, iteration, step}
	if m.turn.key != key {
		m.flushTurn()
		m.turn = turn{key: key, at: at}
	}
	return &m.turn
}

// flushTurn shares the cost of the turn among its tools; what does not divide goes
// to the first ones, so that the sum is exact.
func (m *measurer) flushTurn() {
	if n := int64(len(m.turn.tools)); n > 0 && !m.turn.part {
		for i, tool := range m.turn.tools {
			m.sums.add(m.turn.at, ToolCost, tool, m.turn.cost/n+one(int64(i) < m.turn.cost%n))
		}
	}
	m.turn = turn{}
}

func (m *measurer) endPhase(e *pipeline.Event) {
	m.flushTurn()
	p := e.Data.Phase
	if p == nil {
		return
	}
	m.works[p.Iteration] += p.Millis
	if m.turns > 0 {
		m.sums.add(e.Time, Stagnation, string(p.Phase), one(m.advised))
	}
	if e.Type == pipeline.EventPhaseCompleted {
		m.counts[p.Phase]++
		m.gates(e)
		m.sums.add(e.Time, PhaseDuration, string(p.Phase), p.Millis)
		if m.turns > 0 {
			m.sums.add(e.Time, PhaseTurns, string(p.Phase), m.turns)
		}
		if e.Data.Review != nil && m.review.IsZero() {
			m.review = e.Time
		}
	}
	m.turns, m.advised = 0, false
}

// look notes what is new in the run: findings, and answers to questions.
func (m *measurer) look(e *pipeline.Event) {
	for ; m.known < len(m.run.Findings); m.known++ {
		is := &m.run.Findings[m.known]
		if e.Type == pipeline.EventPhaseCompleted && e.Data.Review != nil && is.Finding != nil {
			m.findings = append(m.findings, finding{is.Fingerprint(), categoryLabel(is.Finding.Category), is.Finding.Lens, e.Time})
		}
	}
	if n := len(m.run.Gates); n > 0 {
		if g := &m.run.Gates[n-1]; len(g.Answers) > 0 && !m.answered[g.ID] {
			m.answered[g.ID] = true
			m.sums.add(g.Opened, Response, "", max(0, e.Time.Sub(g.Opened).Milliseconds()))
		}
	}
	if e.Type == pipeline.EventGateOverride && e.Data.Answer != nil {
		m.overridden[e.Data.Answer.Gate] = true
	}
}

// judge finds out what became of the first review: the first thing that follows it
// says so.
func (m *measurer) judge(e *pipeline.Event) {
	if e.Type == pipeline.EventDiminishing {
		m.shrinking = true
	}
	if m.review.IsZero() || m.judged {
		return
	}
	switch d := e.Data; e.Type {
	case pipeline.EventPhaseApproved:
	case pipeline.EventBounce, pipeline.EventDiminishing:
	case pipeline.EventGuardFired:
		if d.Guard != nil && d.Guard.Name == pipeline.GuardManual {
			return
		}
	case pipeline.EventGateRequested:
		if d.Gate != nil && d.Gate.Kind == pipeline.GateApproval {
			return
		}
	default:
		return
	}
	m.judged = true
	m.sums.add(m.review, FirstPass, "", one(e.Type == pipeline.EventPhaseApproved))
}

func (m *measurer) takeRecall(e *pipeline.Event) {
	r := e.Data.Recall
	if r == nil {
		return
	}
	key := recallKey{r.Phase, r.Iteration, r.Role}
	had := m.recalls[key]
	if had == nil {
		had = &recall{at: e.Time}
		m.recalls[key] = had
		m.order = append(m.order, key)
	}
	had.given = append(had.given, r.Given...)
	had.used = append(had.used, r.Used...)
}

// finish adds what can be told of the run as a whole.
func (m *measurer) finish(signals []pipeline.Signal) {
	m.finishBounces()
	m.finishPeople(signals)
	for _, key := range m.order {
		r := m.recalls[key]
		slices.Sort(r.given)
		any := false
		given := slices.Compact(r.given)
		for _, id := range given {
			used := slices.Contains(r.used, id)
			any = any || used
			m.sums.add(r.at, Precision, "", one(used))
		}
		if len(given) > 0 {
			m.sums.add(r.at, Application, "", one(any))
		}
	}
	for i := range m.run.Iterations {
		if it := &m.run.Iterations[i]; it.Result != pipeline.ResultInProgress && !it.Ended.IsZero() {
			m.sums.add(it.Ended, IterationTime, "", m.works[it.Number])
		}
	}
	if m.ended.IsZero() || m.run.Part != nil { // a module is no run of its own to people
		return
	}
	for _, p := range loopPhases {
		m.sums.add(m.ended, PhaseIterations, string(p), m.counts[p])
	}
	m.sums.add(m.ended, PhaseIterations, "", int64(len(m.run.Iterations)))
	verified := m.run.State == pipeline.StateVerified
	escalated := slices.ContainsFunc(m.run.Gates, func(g pipeline.Gate) bool {
		return g.Kind == pipeline.GateEscalation || g.Kind == pipeline.GateStuck || g.Kind == pipeline.GateBudget
	})
	m.sums.add(m.ended, Success, "", one(verified))
	for _, s := range m.run.Skills {
		m.sums.add(m.ended, SkillSuccess, s, one(verified))
	}
	if m.run.Track != nil {
		m.sums.add(m.ended, TrackResult, string(m.run.Track.Name()), one(verified))
	}
	m.sums.add(m.ended, QuickPass, "", one(verified && len(m.run.Iterations) <= 2))
	m.sums.add(m.ended, Escalation, "", one(escalated))
	m.sums.add(m.ended, Diminishing, "", one(m.shrinking))
	if m.run.Usage.Unpriced == 0 { // what is not known is no observation
		cost := m.run.Usage.MicroUSD
		for i := range m.run.Parts {
			cost += m.run.Parts[i].MicroUSD
		}
		m.sums.add(m.ended, Cost, "", cost)
	}
	m.sums.add(m.ended, Learnings, "", m.learnings)
	m.finishRework()
	m.finishProofs()
	m.finishGates()
	m.finishModules()
	m.finishUpstream()
}

func (m *measurer) finishBounces() {
	count := map[pipeline.Phase]int64{}
	last := map[pipeline.Phase]int{}
	for i, b := range m.run.Bounces {
		count[b.Phase]++
		last[b.Phase] = i
	}
	for i, b := range m.run.Bounces {
		if b.Resolved || i < last[b.Phase] || !m.ended.IsZero() {
			m.sums.add(b.At, BounceResolution, string(b.Phase), one(b.Resolved))
		}
		if left, known := m.left(&b); known && len(b.Issues) > 0 {
			m.sums.add(b.At, IterationFixes, "", one(left < len(b.Issues)))
		}
	}
	if !m.ended.IsZero() {
		m.sums.add(m.ended, Bounces, "", int64(len(m.run.Bounces)))
		m.sums.add(m.ended, Bounces, string(pipeline.PhaseReview), count[pipeline.PhaseReview])
		m.sums.add(m.ended, Bounces, string(pipeline.PhaseTest), count[pipeline.PhaseTest])
	}
}

// left says how much of what a bounce was for was seen by the next look of its
// phase, if there was one.
func (m *measurer) left(b *pipeline.Bounce) (n int, known bool) {
	for i := range m.run.Iterations {
		it := &m.run.Iterations[i]
		seen := map[string]bool{}
		switch {
		case it.Number <= b.Iteration:
			continue
		case b.Phase == pipeline.PhaseReview && it.Review != nil:
			for _, f := range it.Review.Findings {
				seen[f.Fingerprint] = true
			}
		case b.Phase == pipeline.PhaseTest && it.Tests != nil:
			for _, f := range it.Tests.Failures {
				seen[f.Fingerprint] = true
			}
			for _, f := range it.Tests.Tampered {
				seen[f.Fingerprint] = true
			}
		default:
			continue
		}
		for _, fp := range b.Issues {
			n += int(one(seen[fp]))
		}
		return n, true
	}
	return 0, false
}

func (m *measurer) finishPeople(signals []pipeline.Signal) {
	dismissed := map[string]bool{}
	for _, s := range signals {
		if s.Kind == pipeline.SignalDismissed && !s.Off {
			dismissed[s.Finding] = true
		}
	}
	for _, f := range m.findings {
		m.sums.add(f.at, Dismissal, f.category, one(dismissed[f.fingerprint]))
	}
	for _, g := range m.run.Gates {
		if g.Closed && len(g.Answers) > 0 && g.Kind != pipeline.GateApproval {
			m.sums.add(g.Opened, Override, "", one(m.overridden[g.ID]))
		}
	}
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Labels come from models, too: only those of a good form are kept apart, so that
// nonsense cannot fill the tables.
var toolName = lazyregexp.New(`^[a-z][a-z0-9_]{0,31}$`)

const otherLabel = "other"

func toolLabel(s string) string {
	if toolName.MatchString(s) {
		return s
	}
	return otherLabel
}

func categoryLabel(c pipeline.Category) string {
	if slices.Contains(pipeline.Categories(), c) {
		return string(c)
	}
	return otherLabel
}

// sums are rows by what they are of.
type sums map[record.MetricRow]*record.MetricRow

func (s sums) add(at time.Time, metric, label string, value int64) {
	key := record.MetricRow{Day: DayOf(at), Metric: metric, Label: label}
	d := definitions[metric]
	if d.Dist {
		key.Bucket = bucketOf(value)
	}
	r := s[key]
	if r == nil {
		r = &key
		s[record.MetricRow{Day: key.Day, Metric: metric, Label: label, Bucket: key.Bucket}] = r
	}
	r.N++
	r.Total += value
	if d.Kind == Mean {
		r.Squares += float64(value) * float64(value)
	}
}

func (s sums) rows() []record.MetricRow {
	out := make([]record.MetricRow, 0, len(s))
	for _, r := range s {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b record.MetricRow) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Label, b.Label), cmp.Compare(a.Bucket, b.Bucket))
	})
	return out
}

// finishProofs adds which acceptance criteria the tests show.
func (m *measurer) finishProofs() {
	for i := len(m.run.Iterations) - 1; i >= 0; i-- {
		rows := m.run.Proofs(&m.run.Iterations[i])
		for _, row := range rows {
			m.sums.add(m.ended, Proved, "", one(row.Lacks() == ""))
		}
		if len(rows) > 0 {
			return
		}
	}
}
