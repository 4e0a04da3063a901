package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"forge/pipeline/proof"
	"forge/pipeline/role"
	"forge/pipeline/text"
	"forge/pipeline/upstream"
)

// How much of their words two feedbacks must share to be the same matter, and where both are
// about the plan as a whole; set on the table of TestSameFeedback.
const (
	alikeAsked   = 0.7
	alikePlanned = 0.5
)

// TakesFeedback reports whether agents of the run tell each other what cannot be. Those of a
// module tell the roles of the run that planned it; what is left to the integration goes by
// the contract.
func (r *Run) TakesFeedback() bool {
	switch {
	case !r.Config.Upstream.Enabled:
		return false
	case r.Part != nil:
		return r.Part.Tells
	}
	return len(r.Parts) == 0 && r.split() == nil
}

// Feedback is what waits for a decision, nil when nothing does.
func (r *Run) Feedback() *upstream.Feedback {
	if n := len(r.Upstream); n > 0 && r.Upstream[n-1].State.Open() {
		return &r.Upstream[n-1]
	}
	return nil
}

// wantsDecision is done when nothing that agents told each other waits for a decision.
// What can wait is raised late: when all else is done.
func (r *Run) wantsDecision(it *Iteration, late bool) *Action {
	if f := r.Feedback(); f != nil {
		return r.towardsDecision(f)
	}
	if f := cmp.Or(r.early(), r.ofParts(), r.unraised(it, late)); f != nil {
		f.ID = fmt.Sprintf("up/%d", len(r.Upstream)+1)
		return r.record(Event{Type: EventUpstreamRaised, Data: Data{Upstream: f}})
	}
	return nil
}

func (r *Run) towardsDecision(f *upstream.Feedback) *Action {
	happens := func(t EventType, f upstream.Feedback) *Action {
		return r.record(Event{Type: t, Data: Data{Upstream: &f}})
	}
	resolves := func(d upstream.Reply) *Action {
		d.Again = d.Choice == upstream.Fix && d.Why != "" && f.Severity.Waits()
		return happens(EventUpstreamResolved, upstream.Feedback{ID: f.ID, Decision: &d})
	}
	switch f.State {
	case upstream.Notifying:
		if why := r.decidedBefore(f); why != "" && r.Part == nil { // else its parent decides that
			return happens(EventUpstreamRejected, upstream.Feedback{ID: f.ID, Why: why})
		}
		if r.Rev > r.Published.Rev && !r.publishRefused() {
			return await
		}
		return happens(EventUpstreamNotified, upstream.Feedback{ID: f.ID})
	case upstream.Waiting, upstream.Resolving:
		if r.Part != nil {
			return await
		}
		if g := r.answersCost(); g != nil {
			return r.stopAt(*g)
		}
		return r.begin(PhaseRef{Phase: PhaseResolve, Iteration: len(r.Iterations)})
	case upstream.Validating:
		decision := *f.Reply
		if why := r.notForAgents(f, &decision); why != "" {
			return happens(EventUpstreamRejected, upstream.Feedback{ID: f.ID, Why: why})
		}
		return resolves(decision)
	}
	if f.Decision != nil {
		return resolves(*f.Decision)
	}
	return r.stopAt(Guard{Name: GuardUpstream, Phase: PhaseResolve, About: []string{f.ID}, Detail: r.asked(f)})
}

// asked is the question that a human is asked.
func (r *Run) asked(f *upstream.Feedback) string {
	about := ""
	if len(f.About) > 0 {
		about = " about " + strings.Join(f.About, ", ")
	}
	said := upstream.Sentence(text.Clip(text.OneLine(f.Text), 400))
	s := fmt.Sprintf("%s, from the %s%s: %s A human decides, because %s.", f.ID, f.Who(), about, said, f.Why)
	if f.Reply != nil {
		s += fmt.Sprintf(" The %s recommends: %s.", f.To, text.Clip(text.OneLine(f.Reply.String()), 1200)) + r.asItIs(f.Reply)
	}
	return s
}

// asItIs is what an answer would change, as it is now: whoever decides compares the two.
func (r *Run) asItIs(d *upstream.Reply) string {
	switch asks := r.Asks(); d.Choice {
	case upstream.Clarify, upstream.Tighten, upstream.Limit:
		for _, c := range asks.Criteria {
			if c.ID == d.Criterion {
				return fmt.Sprintf(" %s says now: %q.", c.ID, text.Clip(text.OneLine(c.Text), 600))
			}
		}
	case upstream.Add:
		return fmt.Sprintf(" It quotes the task: %q.", text.Clip(text.OneLine(d.Quote), 600))
	case upstream.Design:
		return " The steps are now: " + text.Clip(text.OneLine(strings.Join(asks.Steps, "; ")), 600) + "."
	}
	return ""
}

// offers are the choices of the gate that asks about a feedback.
func (r *Run) offers() (out []Choice) {
	if f := r.Feedback(); f != nil {
		for _, o := range f.Offers() {
			out = append(out, Choice{Name: "choose", Arg: o.Letter, Label: text.Clip(text.OneLine(o.Label), 300)})
		}
	}
	return append(out, Choice{Name: "choose", Arg: "WORDS", Label: "say in your own words how the implementer is to go on"})
}

// choose takes a human's choice in; it reports whether the implementer is to go on.
func (r *Run) choose(a *Answer) bool {
	f := r.Feedback()
	if f == nil || f.State != upstream.Escalating || a.Choice != "choose" {
		return false
	}
	d, _ := f.Chosen(a.Text)
	if d.By, d.Human = a.By.Login, true; a.Way != "" {
		d.Why = a.Way + "; " + d.Why
	}
	if f.Decision = &d; f.Kind.Early() && d.Choice == upstream.Fix {
		d.Holds = upstream.Architect
	}
	if d.Choice == upstream.Fix && d.Why != "" {
		r.Notes = append(r.Notes, fmt.Sprintf("%s, on %s: %s", a.By.Login, f.ID, d.Why))
	}
	return works(&d)
}

// works reports whether a decision is for the implementer to carry out: with the others,
// the head is judged by what is asked for now.
func works(d *upstream.Reply) bool { return d.Choice != upstream.Clarify && d.Choice != upstream.Limit }

// unraised is what the newest results want an owner to be told, nil for nothing.
func (r *Run) unraised(it *Iteration, late bool) *upstream.Feedback {
	if !r.TakesFeedback() || it == nil || it.Result == ResultFailed || r.Plan == nil {
		return nil
	}
	if it.Redo { // what else could wait is decided before the implementer goes on with what was
		if late = r.goesOnWith(it); !late {
			return nil
		}
	}
	for _, f := range slices.Concat(r.constraints(it), r.missed(it), r.failed(it)) {
		f.To = cmp.Or(f.To, r.owner(&f))
		known := slices.ContainsFunc(r.Upstream, func(o upstream.Feedback) bool { return o.Source == f.Source && o.Text == f.Text && o.To == f.To })
		if !known && (late || !f.Severity.Waits()) {
			f.Iteration = it.Number
			return &f
		}
	}
	return nil
}

// goesOnWith reports whether an iteration's work goes on because of what nothing had waited for.
func (r *Run) goesOnWith(it *Iteration) bool {
	return slices.ContainsFunc(r.Upstream, func(f upstream.Feedback) bool {
		return f.Iteration == it.Number && f.Decision != nil && f.Decision.Again
	})
}

// constraints are what the implementer says cannot be as it is planned.
func (r *Run) constraints(it *Iteration) (out []upstream.Feedback) {
	if it.Impl == nil {
		return nil
	}
	list := it.Impl.Constraints
	if len(list) == 0 && it.Impl.Unable != "" {
		list = []upstream.Ask{{About: []string{upstream.Plan}, Text: it.Impl.Unable, Severity: upstream.Blocking}}
	}
	for _, a := range list {
		f := upstream.Feedback{Kind: upstream.Constraint, From: upstream.Implementer, Ask: a, Source: r.sourceOf(it, PhaseImplement)}
		if it.Impl.Unable != "" && f.Severity.Waits() {
			f.Severity = upstream.High // nothing goes on before it is decided
		}
		if it.Impl.Head != it.Impl.Parent {
			f.Head = it.Impl.Head
		}
		out = append(out, f)
	}
	return out
}

// doneBefore reports that the work of an iteration was there before agents were told how to go
// on: where they change nothing then, it is judged as it is.
func (r *Run) doneBefore(it *Iteration) bool {
	return slices.ContainsFunc(r.Upstream, func(f upstream.Feedback) bool {
		return f.Iteration == it.Number && f.State == upstream.Resolved && f.Head != "" && f.Head == r.Head
	})
}

// missed are criteria that a review finds unmet for the second time, and what the task
// asks for and no criterion has, by the reviewer's word.
func (r *Run) missed(it *Iteration) (out []upstream.Feedback) {
	if it.Review == nil {
		return nil
	}
	from := upstream.Feedback{From: upstream.Reviewer, Source: r.sourceOf(it, PhaseReview)}
	for _, c := range it.Review.Compliance {
		again := slices.ContainsFunc(r.Findings, func(is Issue) bool {
			return is.State == IssueOpen && is.Finding.Criterion == c.Criterion && is.Phase == PhaseReview && is.Times > 1
		})
		if !c.Met && again {
			from.Kind, from.Ask = upstream.Missed, upstream.Ask{About: []string{c.Criterion}, Text: c.Evidence, Severity: upstream.High}
			out = append(out, from)
		}
	}
	for _, a := range it.Review.Uncovered {
		settled := slices.ContainsFunc(r.Upstream, func(o upstream.Feedback) bool { return upstream.Same([]string{o.Quote}, []string{a.Quote}) })
		if !settled {
			a.Severity = upstream.High
			from.Kind, from.Ask = upstream.Uncovered, a
			out = append(out, from)
		}
	}
	return out
}

// failed are tests that ask for the contrary of a criterion, and gates of quality that others
// than the implementer answer for: each of these is asked by itself, and the gate is measured
// again once all have answered and the work has changed.
func (r *Run) failed(it *Iteration) (out []upstream.Feedback) {
	if it.Tests == nil {
		return nil
	}
	raise := func(kind upstream.Kind, to, about, words string) {
		out = append(out, upstream.Feedback{Kind: kind, From: upstream.Tester, To: to, Source: r.sourceOf(it, PhaseTest),
			Ask: upstream.Ask{About: []string{about}, Text: words, Severity: upstream.High}})
	}
	for i := range it.Tests.Failures {
		f := &it.Tests.Failures[i]
		if f.Against != "" {
			raise(upstream.Contradicted, "", f.Against, fmt.Sprintf("%s asks for the contrary: %s", f.Test, f.Analysis))
		}
		for _, owner := range it.Tests.owners(f.Test) {
			if to := r.answers(owner); to != "" {
				raise(upstream.Quality, to, upstream.Plan, text.Clip(text.OneLine(f.Test+": "+f.Error), 600))
			}
		}
	}
	return out
}

// owners are those that the settings name for the gate that a failure is of.
func (t *TestReport) owners(failure string) []string {
	for _, m := range t.Measures {
		if "quality/"+m.Name == failure {
			return m.Owner
		}
	}
	return nil
}

// answers is who answers for a gate in the place of an owner that the settings name: the role
// where one acts, else the planner; "" for those who fix it or have measured it.
func (r *Run) answers(owner string) string {
	switch who := role.Role(owner); {
	case !slices.Contains(role.All(), who):
		return ""
	case !r.acts(who):
		return upstream.Planner
	default:
		return owner
	}
}

// advised reports that who answers for what failed in an iteration has said how to go on.
func (r *Run) advised(it *Iteration) bool {
	return slices.ContainsFunc(r.Upstream, func(f upstream.Feedback) bool {
		return f.Iteration == it.Number && f.Kind.OfTests() && f.State == upstream.Resolved
	})
}

// sourceOf names the last execution of a phase in an iteration.
func (r *Run) sourceOf(it *Iteration, p Phase) string {
	ref := PhaseRef{Phase: p, Iteration: it.Number}
	return fmt.Sprintf("%s/%d", attemptKey(ref), r.Attempts[attemptKey(ref)])
}

// decidedBefore says why no agent is asked once more, or "": the same was decided before, or
// too much was.
func (r *Run) decidedBefore(f *upstream.Feedback) string {
	times := 1
	last := ""
	for i := range r.Upstream[:len(r.Upstream)-1] {
		if o := &r.Upstream[i]; sameMatter(o, f) {
			times, last = times+1, o.ID
		}
	}
	switch {
	case times >= r.Config.Upstream.SameLimit() && times > 1:
		return "the same was decided before, in " + last
	case len(r.Upstream) > r.Config.Upstream.Most():
		return fmt.Sprintf("it is number %d of this run, and agents settle %d", len(r.Upstream), r.Config.Upstream.Most())
	}
	return ""
}

// sameMatter reports whether two feedbacks are about one thing, in whatever words. Agents
// name other criteria for the same, and the same for other things: the words say it. That a
// criterion is not met is one matter, whatever is lacking. B was raised after a.
func sameMatter(a, b *upstream.Feedback) bool {
	switch {
	case a.Kind != b.Kind || a.Kind == upstream.Quality && a.To != b.To: // each owner is asked by itself
		return false
	case a.Kind == upstream.Missed:
		return upstream.Same(a.About, b.About)
	}
	if b.Head == "" && a.Source != b.Source && a.Iteration == b.Iteration && a.Part == b.Part && slices.ContainsFunc(a.About, func(id string) bool {
		return id != upstream.Plan && slices.Contains(b.About, id)
	}) {
		return true // it was told how to go on, and has done nothing but say it once more
	}
	limit := alikeAsked
	if slices.Contains(a.About, upstream.Plan) && slices.Contains(b.About, upstream.Plan) {
		limit = alikePlanned
	}
	return upstream.Same([]string{a.Text}, []string{b.Text}) || shared(a.Text, b.Text) >= limit
}

// shared is how much two texts share of the words that say what they are about, 0 to 1 (Dice).
func shared(a, b string) float64 {
	x, y := text.KeyWords(a), text.KeyWords(b)
	if len(x)+len(y) == 0 {
		return 0
	}
	return 2 * float64(text.Common(x, y)) / float64(len(x)+len(y))
}

// CameBack reports whether the matter of a feedback was raised again after it was decided.
func (r *Run) CameBack(i int) bool {
	return slices.ContainsFunc(r.Upstream[i+1:], func(o upstream.Feedback) bool { return sameMatter(&r.Upstream[i], &o) })
}

// answersCost stops at the share of the budget that answers may take.
func (r *Run) answersCost() *Guard {
	spent, limit := r.Spent[PhaseResolve].MicroUSD, int64(float64(r.CostLimit())*r.Config.Upstream.Share())
	if spent == 0 || spent < limit {
		return nil
	}
	return &Guard{Name: GuardBudget, Phase: PhaseResolve, Value: spent, Limit: limit, Unit: "micro-USD",
		Detail: fmt.Sprintf("answers to what agents told each other have cost %s of their %s (upstream.cost_share)", text.USD(spent), text.USD(limit))}
}

// Asks is what answers are held against.
func (r *Run) Asks() upstream.Spec {
	task := r.Task.Title + "\n\n" + r.Task.Body
	s := upstream.Spec{
		Quotes: func(words string) bool { return telling(words) && proof.Quoted(task, words) },
		Says:   func(text string) bool { return proof.Says(task, text) },
	}
	s.Asked = func(id, text string) bool { return s.Says(text) && mostly(text, r.source(id)) }
	if f := r.Feedback(); f != nil && f.Kind.Early() {
		for _, i := range role.Items(r.Artefacts, role.Product, "") {
			s.Criteria = append(s.Criteria, upstream.Item{ID: i.ID, Text: i.Text})
		}
	} else if r.Plan != nil {
		s.Steps = r.stepsFor(f, r.Plan)
		for _, c := range r.Plan.Criteria {
			s.Criteria = append(s.Criteria, upstream.Item{ID: c.ID, Text: c.Text})
		}
	}
	return s
}

// source is the words of the task that a criterion was written for; "" where nobody has said.
func (r *Run) source(criterion string) string {
	requirement, quotes := "", map[string]string{} // by requirement
	if f := r.Feedback(); f != nil && f.Kind.Early() {
		for _, c := range role.Items(r.Artefacts, role.Product, "") {
			if c.ID == criterion {
				requirement = c.For
			}
		}
		for _, q := range role.Items(r.Artefacts, role.Analyst) {
			quotes[q.ID] = q.Quote
		}
	} else if r.Plan != nil {
		for _, c := range r.Plan.Criteria {
			if c.ID == criterion {
				requirement = c.For
			}
		}
		for _, q := range r.Plan.Requirements {
			quotes[q.ID] = q.Quote
		}
	}
	return quotes[requirement]
}

// mostly reports whether a sentence holds a quote that is the most of it: a word or two may
// stand in any sentence.
func mostly(sentence, quote string) bool {
	return telling(quote) && proof.Quoted(sentence, quote) && 5*len(strings.Fields(quote)) >= 3*len(strings.Fields(sentence))
}

// telling reports whether a quote is long enough to show something: two words and eight
// letters at least; a letter of a script without spaces counts as more.
func telling(quote string) bool {
	letters, wide := 0, false
	for _, c := range quote {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			letters += utf8.RuneLen(c)
			wide = wide || utf8.RuneLen(c) > 2
		}
	}
	return letters >= 8 && (wide || len(strings.Fields(quote)) > 1)
}

// notForAgents says why an owner's answer is for a human to decide, or "".
func (r *Run) notForAgents(f *upstream.Feedback, d *upstream.Reply) string {
	asks := r.Asks()
	if bad := asks.Check(f, d); len(bad) > 0 {
		return "the answer does not hold: " + strings.Join(bad, "; ")
	}
	if why := cmp.Or(asks.Weaker(d), d.Unconfirmed()); why != "" {
		return why
	}
	if f.Kind == upstream.Inconsistency && clashOf(f).Stands(r.settled(f, d)) {
		return "they would still contradict each other"
	}
	if d.Choice == upstream.Design && slices.ContainsFunc(r.PastPlans, func(p Plan) bool { return upstream.Same(r.stepsFor(f, &p), d.Steps) }) {
		return "they go in circles: an earlier plan had these steps"
	}
	return ""
}

// ownerFailed lets a human decide where the owner breaks down for good. Money and
// secrets are asked about as ever.
func (r *Run) ownerFailed() *Action {
	f, fault := r.Feedback(), r.Fault
	if f == nil || f.State != upstream.Resolving || r.Active != nil || fault == nil || r.Counters.Faults == 0 {
		return nil
	}
	if fault.Class == FaultBudget || fault.Class == FaultSecret || !fault.Final && r.Counters.Faults < r.Config.Loop.Faults {
		return nil
	}
	why := fmt.Sprintf("the %s could not answer: %s", f.To, text.Clip(text.OneLine(fault.Message), 200))
	return r.record(Event{Type: EventUpstreamFailed, Data: Data{Upstream: &upstream.Feedback{ID: f.ID, Why: why}}})
}

// applyUpstream folds what happens to a feedback.
func (r *Run) applyUpstream(e Event) bool {
	what, is := map[EventType]upstream.Event{
		EventUpstreamRaised: upstream.Raised, EventUpstreamNotified: upstream.Notified, EventUpstreamTimedOut: upstream.TimedOut,
		EventUpstreamFailed: upstream.Failed, EventUpstreamResolved: upstream.Accepted, EventUpstreamRejected: upstream.Rejected,
	}[e.Type]
	said, f := e.Data.Upstream, r.Feedback()
	told := what == upstream.Accepted && r.Part != nil && !r.State.Ended() // by its parent, which says it once: it may be stopped just then
	if !is || said == nil || r.State != StateRunning && !told {
		return is
	}
	if what == upstream.Accepted && r.Part != nil && f != nil && f.ID == said.ID { // its parent has acknowledged and answered it
		for _, was := range []upstream.Event{upstream.Acknowledged, upstream.Answered} {
			moves(f, was)
		}
		f.Taken = said.Taken
	}
	if what == upstream.Raised && f == nil && (said.Kind.Early() || r.Plan != nil && (said.Part != "" || r.Current() != nil)) {
		r.Upstream = append(r.Upstream, *said)
		f = &r.Upstream[len(r.Upstream)-1]
		f.State, f.Raised = upstream.Idle, e.Time
	}
	if f == nil || f.ID != said.ID || !moves(f, what) {
		return true
	}
	switch what {
	case upstream.Notified:
		f.Notified, f.Until = e.Time, e.Time.Add(r.Config.Upstream.Timeout())
		return true // it is shown already
	case upstream.TimedOut:
		f.Why, r.Active, r.Await, r.Last = said.Why, nil, nil, nil // an answer that comes later is nobody's
	case upstream.Rejected:
		if f.Why = said.Why; f.Reply != nil && len(r.Asks().Check(f, f.Reply)) > 0 {
			f.Reply = nil // nothing to recommend
		}
	case upstream.Failed:
		f.Why, r.Fault, r.Counters.Faults = said.Why, nil, 0
	case upstream.Accepted:
		r.decided(f, said.Decision, e.Time)
	}
	r.Rev = e.Seq
	return true
}

// moves takes a feedback to its next state; it reports whether the event fitted.
func moves(f *upstream.Feedback, what upstream.Event) bool {
	was := f.State
	f.State = was.After(what)
	return f.State != was
}

// acknowledge notes that the owner has begun; it reports whether there is anything for it.
func (r *Run) acknowledge(at time.Time) bool {
	f := r.Feedback()
	if f != nil && moves(f, upstream.Acknowledged) {
		f.Taken, f.Until = at, at.Add(r.Config.Upstream.Timeout())
	}
	return f != nil && f.State == upstream.Resolving
}

// reply takes the owner's answer in.
func (r *Run) reply(answer *upstream.Reply) {
	if f := r.Feedback(); f != nil && moves(f, upstream.Answered) {
		d := *answer
		d.By, d.Human = f.To, false
		if f.Reply = &d; f.Kind.Early() && d.Choice == upstream.Fix {
			d.Holds = upstream.Architect
		}
	}
}

// decided carries a decision out: it revises the plan, and lets run again what that asks for.
func (r *Run) decided(f *upstream.Feedback, d *upstream.Reply, at time.Time) {
	if d == nil {
		d = &upstream.Reply{Choice: upstream.Fix}
	}
	decision := *d
	f.Decision, f.Done = &decision, at
	if f.Kind.Early() {
		r.reviseWritten(f)
		return
	}
	r.revise(f)
	it := r.Current()
	switch {
	case f.Part != "": // the module goes on
	case f.Kind.OfTests(): // it goes back with what failed
	case it.Review == nil: // nothing is judged yet
		it.Redo = it.Redo || works(&decision) || it.Impl == nil || it.Impl.Unable != "" || it.Impl.Head == it.Impl.Parent
	case decision.Choice == upstream.Fix && decision.Again:
		it.Review, it.Tests, it.Forced, it.Redo = nil, nil, false, true
	case decision.Choice == upstream.Fix && f.Severity.Waits(): // it held nothing up
	case works(&decision):
		r.askFor(f)
	default: // by what is asked for now
		it.Review, it.Tests, it.Forced = nil, nil, false
	}
}

// revise makes the plan what a decision says.
func (r *Run) revise(f *upstream.Feedback) {
	d, plan := f.Decision, *r.Plan
	plan.Criteria = slices.Clone(plan.Criteria)
	at := slices.IndexFunc(plan.Criteria, func(c Criterion) bool { return c.ID == d.Criterion })
	switch {
	case d.Choice == upstream.Add:
		c := Criterion{ID: r.freshID("AC"), Text: d.Text}
		if r.Part != nil { // as its parent calls it
			c.ID = cmp.Or(d.Criterion, c.ID)
		}
		if r.Traces() {
			c.For = r.require(&plan, d)
		}
		d.Criterion = c.ID
		plan.Criteria = append(plan.Criteria, c)
	case d.Choice == upstream.Design:
		r.PastPlans = append(r.PastPlans, plan)
		if f.Part == "" {
			plan.Steps = d.Steps
		}
	case d.Choice == upstream.Limit:
		limited := Criterion{ID: f.ID, Text: f.Quote} // no criterion had it
		if at >= 0 {
			limited = plan.Criteria[at]
			plan.Criteria = slices.Delete(plan.Criteria, at, at+1)
		}
		limited.By = d.By
		plan.LeftOut = append(slices.Clip(plan.LeftOut), limited)
	case at >= 0 && d.Text != "":
		f.Was, plan.Criteria[at].Text = plan.Criteria[at].Text, d.Text
	}
	if f.Part != "" {
		plan.Split = revisedFor(f, plan.Split)
	}
	r.Plan = &plan
	r.keepUp(d)
}

// askFor sends work that was reviewed already back with a decision.
func (r *Run) askFor(f *upstream.Feedback) {
	d := f.Decision
	finding := Finding{Severity: SeverityError, Category: CategoryCompliance, Message: fmt.Sprintf("%s: %s", f.ID, d)}
	if d.Criterion != "" {
		finding.Criterion, finding.Message = d.Criterion, fmt.Sprintf("%s is not met: %s", d.Criterion, d.Text)
	}
	open := slices.ContainsFunc(r.unresolved(), func(o Finding) bool { return o.Criterion != "" && slices.Contains(f.About, o.Criterion) })
	if d.Choice != upstream.Fix || !open { // else it goes back with that
		r.ask(finding)
	}
}

// require adds the requirement that an added criterion is for.
func (r *Run) require(plan *Plan, d *upstream.Reply) string {
	q := proof.Requirement{ID: r.freshID("REQ"), Text: d.Text, Quote: d.Quote}
	plan.Requirements = append(slices.Clip(plan.Requirements), q)
	return q.ID
}

// freshID is the next name that no criterion or requirement of the run's plans has had.
func (r *Run) freshID(prefix string) string {
	for n := 1; ; n++ {
		id := fmt.Sprintf("%s%d", prefix, n)
		had := slices.ContainsFunc(append(slices.Clip(r.PastPlans), *r.Plan), func(p Plan) bool {
			return slices.ContainsFunc(slices.Concat(p.Criteria, p.LeftOut), func(c Criterion) bool { return c.ID == id }) ||
				slices.ContainsFunc(p.Requirements, func(q proof.Requirement) bool { return q.ID == id })
		})
		if !had {
			return id
		}
	}
}

// limitations are the criteria that humans made known limitations.
func (r *Run) limitations() (out []Criterion) {
	if r.Plan != nil {
		for _, c := range r.Plan.LeftOut {
			if c.By != "" {
				out = append(out, c)
			}
		}
	}
	for i := range r.Upstream { // before there was a plan
		if f := &r.Upstream[i]; f.Kind == upstream.Infeasible && f.Decision != nil && f.Decision.Choice == upstream.Limit && f.State == upstream.Resolved {
			if c := (Criterion{ID: f.Decision.Criterion, Text: f.Was, By: f.Decision.By}); !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	return out
}

// limited are those criteria, as what passes in these people's names.
func (r *Run) limited() (out []Waiver) {
	for _, c := range r.limitations() {
		what := fmt.Sprintf("%s is a known limitation: %s", c.ID, text.Clip(text.OneLine(c.Text), 200))
		out = append(out, Waiver{Guard: GuardUpstream, What: what, By: Actor{Login: c.By}})
	}
	return out
}

// Decisions lists what was decided of what agents told each other.
func (r *Run) Decisions() (out []string) {
	for i := range r.Upstream {
		if f := &r.Upstream[i]; f.State == upstream.Resolved {
			out = append(out, f.String())
		}
	}
	return out
}
