package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/text"
	"forge/pipeline/upstream"
)

// timeline is what happened in a run, for a picture: a row for each iteration, and
// in it the executions of phases, each in the column of its phase, arrows where work
// was sent back, and marks where people or guards stepped in.
type timeline struct {
	Phases []pipeline.Phase // the columns
	Rows   []*lineRow
}

// lineRow is one iteration; Number is 0 as long as nothing was implemented.
type lineRow struct {
	Number  int
	Mode    pipeline.Mode
	Result  string
	Brief   string
	Items   []*lineItem
	More    int      // items that are not shown
	Sum     costCell // what the row took in all
	cost    map[int]costCell
	closed  bool
	Started time.Time
}

// lineItem is an execution of a phase, an arrow back, or a mark.
type lineItem struct {
	Kind string // block, back, human, gate, guard, fault, end
	At   int    // column, from 1
	Span int    // columns of an arrow, from At on

	Phase     pipeline.Phase
	Iteration int
	Attempt   int
	Result    string // of a block: done, passed, failed, back, fault, working, waiting, dropped
	Millis    int64
	MicroUSD  int64
	Unpriced  int64

	Who  string
	Text string
	Time time.Time
}

// Cost is what the block's model calls cost, for people.
func (i *lineItem) Cost() string { return costCell{i.MicroUSD, i.Unpriced, 0}.Cost() }

// Word is a block's result for people.
func (i *lineItem) Word() string {
	return map[string]string{"done": "done", "passed": "passed", "failed": "not passed", "back": "sent back", "fault": "broke down",
		"working": "at work", "waiting": "waits", "dropped": "not finished"}[i.Result]
}

// itemsShown is how much of one row is shown.
const itemsShown = 60

// columns are the phases in the order of the picture.
var columns = []pipeline.Phase{pipeline.PhaseAnalyse, pipeline.PhaseDesign, pipeline.PhasePlan, pipeline.PhaseResolve, pipeline.PhaseImplement,
	pipeline.PhaseUpdate, pipeline.PhaseReview, pipeline.PhaseTest}

// rare are those that have a column only when they happened.
var rare = []pipeline.Phase{pipeline.PhaseAnalyse, pipeline.PhaseDesign, pipeline.PhaseResolve, pipeline.PhaseUpdate}

// newTimeline draws a run's events. What is missing in an event is left out: logs of
// other versions are shown as far as they are understood.
func newTimeline(run *pipeline.Run, events []pipeline.Event) timeline {
	d := timelineDraft{run: run, last: map[pipeline.Phase]*lineItem{}}
	d.column(events)
	for i := range events {
		d.draw(&events[i])
	}
	for _, row := range d.line.Rows {
		d.finish(row)
	}
	return d.line
}

// timelineDraft is a timeline that is being drawn.
type timelineDraft struct {
	run  *pipeline.Run
	line timeline
	at   map[pipeline.Phase]int
	open *lineItem                    // the execution that has no result yet
	last map[pipeline.Phase]*lineItem // the newest execution of each phase
}

// column gives each phase its column.
func (d *timelineDraft) column(events []pipeline.Event) {
	happened := map[pipeline.Phase]bool{}
	for i := range events {
		if p := events[i].Data.Phase; p != nil {
			happened[p.Phase] = true
		}
	}
	d.at = map[pipeline.Phase]int{}
	for _, p := range columns {
		if !slices.Contains(rare, p) || happened[p] {
			d.line.Phases = append(d.line.Phases, p)
			d.at[p] = len(d.line.Phases)
		}
	}
}

// row is the one that is being drawn on; after an arrow back a new one begins.
func (d *timelineDraft) row(at time.Time) *lineRow {
	if n := len(d.line.Rows); n > 0 && !d.line.Rows[n-1].closed {
		return d.line.Rows[n-1]
	}
	d.line.Rows = append(d.line.Rows, &lineRow{Started: at})
	return d.line.Rows[len(d.line.Rows)-1]
}

func (d *timelineDraft) add(e *pipeline.Event, item *lineItem) {
	row := d.row(e.Time)
	item.Time = e.Time
	row.Items = append(row.Items, item)
}

func (d *timelineDraft) mark(e *pipeline.Event, kind, who, words string) {
	d.add(e, &lineItem{Kind: kind, Who: who, Text: text.Clip(strings.Join(strings.Fields(words), " "), textShown)})
}

func (d *timelineDraft) draw(e *pipeline.Event) {
	if !d.drawPhase(e) && !d.drawGate(e) {
		d.drawPeople(e)
	}
}

// drawPhase draws what phases do.
func (d *timelineDraft) drawPhase(e *pipeline.Event) bool {
	switch p := e.Data.Phase; e.Type {
	case pipeline.EventPhaseEntered:
		if p != nil && d.at[p.Phase] > 0 {
			d.enter(e, p)
		}
	case pipeline.EventPhaseCompleted:
		if d.is(p) {
			d.open.Result, d.open.Text = d.result(e.Data)
			d.open.Millis, d.open = p.Millis, nil
		}
	case pipeline.EventPhaseFailed:
		if d.open != nil && e.Data.Fault != nil {
			d.open.Result, d.open.Text = "fault", text.Clip(text.FirstLine(cmp.Or(e.Data.Fault.Operator, e.Data.Fault.Message)), titleShown)
			if p != nil {
				d.open.Millis = p.Millis
			}
			d.open = nil
		}
	case pipeline.EventPhaseWaiting:
		if w := e.Data.Await; w != nil && d.is(p) {
			d.open.Result, d.open.Text = "waiting", "for "+text.Clip(w.What, titleShown)
		}
	case pipeline.EventPhaseWoken:
		if d.open != nil {
			d.open.Result = "working"
		}
	case pipeline.EventAgentIteration:
		if s := e.Data.Step; s != nil {
			if item := d.last[s.Phase]; item != nil {
				item.MicroUSD += s.Usage.MicroUSD
				item.Unpriced += s.Usage.Unpriced
			}
		}
	case pipeline.EventBounce:
		if b := e.Data.Bounce; b != nil {
			d.back(e, b)
		}
	default:
		return false
	}
	return true
}

func (d *timelineDraft) is(p *pipeline.PhaseRef) bool {
	return p != nil && d.open != nil && d.open.Phase == p.Phase && d.open.Iteration == p.Iteration && d.open.Attempt == p.Attempt
}

func (d *timelineDraft) enter(e *pipeline.Event, p *pipeline.PhaseRef) {
	if d.open != nil {
		d.open.Result = "dropped"
	}
	row := d.row(e.Time)
	if p.Phase == pipeline.PhaseImplement {
		if row.Number != 0 && row.Number != p.Iteration {
			row.closed = true
			row = d.row(e.Time)
		}
		row.Number, row.Mode = p.Iteration, p.Mode
	}
	d.open = &lineItem{Kind: "block", At: d.at[p.Phase], Phase: p.Phase, Iteration: p.Iteration, Attempt: p.Attempt, Result: "working"}
	d.last[p.Phase] = d.open
	d.add(e, d.open)
}

// result says how a phase ended.
func (d *timelineDraft) result(data pipeline.Data) (result, words string) {
	switch {
	case data.Plan != nil && data.Plan.Question != "":
		return "done", "with a question"
	case data.Upstream != nil && data.Upstream.Reply != nil:
		return "done", string(data.Upstream.Reply.Choice)
	case data.Plan != nil:
		return "done", text.Plural(len(data.Plan.Steps), "step", "steps")
	case data.Implementation != nil && data.Implementation.Unable != "":
		return "failed", "needs a clarification"
	case data.Implementation != nil && data.Implementation.Head == data.Implementation.Parent:
		return "failed", "changed nothing"
	case len(data.Artefacts) > 0:
		n := 0
		for _, a := range data.Artefacts {
			n += len(a.Items)
		}
		return "done", text.Plural(n, "item", "items")
	case data.Implementation != nil:
		return "done", fmt.Sprintf("%s, %.7s", text.Plural(len(data.Implementation.Files), "file", "files"), data.Implementation.Head)
	case data.Review != nil && data.Review.NeedsHuman != "":
		return "failed", "wants a human to look"
	case data.Review != nil && len(data.Review.Blocking()) > 0:
		return "failed", fmt.Sprintf("%d of %d block", len(data.Review.Blocking()), len(data.Review.Findings))
	case data.Review != nil:
		if len(data.Review.Findings) == 0 {
			return "passed", "nothing found"
		}
		return "passed", text.Plural(len(data.Review.Findings), "remark", "remarks")
	case data.Tests != nil && data.Tests.None != "":
		return "failed", "no tests"
	case data.Tests != nil && data.Tests.Unclean != "" && data.Tests.Failed == 0:
		return "failed", text.Clip(text.FirstLine(data.Tests.Unclean), titleShown)
	case data.Tests != nil && !data.Tests.OK() && len(data.Tests.Failures) == 0 && len(data.Tests.Unknown()) > 0:
		return "failed", fmt.Sprintf("%d failed before, and still", len(data.Tests.Unknown()))
	case data.Tests != nil && !data.Tests.OK():
		return "failed", fmt.Sprintf("%d of %d failed", max(data.Tests.Failed, len(data.Tests.Failures)), data.Tests.Total)
	case data.Tests != nil && data.Update == nil:
		return "passed", text.Plural(data.Tests.Passed, "test", "tests")
	case data.Update != nil && len(data.Update.Conflicts) > 0:
		return "failed", text.Plural(len(data.Update.Conflicts), "conflict", "conflicts")
	case data.Update != nil && data.Update.Head == data.Update.Parent:
		return "done", "nothing new"
	case data.Update != nil:
		return "done", fmt.Sprintf("merged %.7s", data.Update.Base)
	}
	return "done", ""
}

// back draws an arrow from the phase that sent work back to the one that must act.
func (d *timelineDraft) back(e *pipeline.Event, b *pipeline.Bounce) {
	if item := d.last[b.Phase]; item != nil && item.Iteration == b.Iteration {
		item.Result = "back"
	}
	to := pipeline.PhaseImplement
	if b.Target == pipeline.TargetPlan || b.Target == pipeline.TargetResearch {
		to = pipeline.PhasePlan
	}
	from := max(d.at[b.Phase], d.at[to])
	why := text.Plural(b.Count, "issue", "issues")
	if b.Iteration > 0 && b.Iteration <= len(d.run.Iterations) {
		why = cmp.Or(d.run.Iterations[b.Iteration-1].Brief, why)
	}
	words := fmt.Sprintf("to %s: %s", b.To(), why)
	d.add(e, &lineItem{Kind: "back", At: d.at[to], Span: from - d.at[to] + 1, Phase: b.Phase, Text: words})
	d.row(e.Time).closed = true
}

// drawGate draws what guards ask, and how it ended.
func (d *timelineDraft) drawGate(e *pipeline.Event) bool {
	switch g := e.Data.Guard; e.Type {
	case pipeline.EventGuardFired, pipeline.EventDiminishing:
		if g != nil {
			d.mark(e, "guard", string(g.Name), g.Detail)
		}
	case pipeline.EventGateRequested:
		gate := e.Data.Gate
		if gate == nil {
			return true
		}
		who := "asks"
		if n := len(d.line.Rows); gate.Guard != nil && n > 0 && len(d.line.Rows[n-1].Items) > 0 {
			items := d.line.Rows[n-1].Items
			if prior := items[len(items)-1]; prior.Kind == "guard" && prior.Who == string(gate.Guard.Name) {
				who = prior.Who + " asks" // one mark for both
				d.line.Rows[n-1].Items = items[:len(items)-1]
			}
		}
		d.mark(e, "gate", who, gate.Question)
	case pipeline.EventUpstreamRaised:
		if f := e.Data.Upstream; f != nil {
			d.mark(e, "guard", f.From, f.Text)
		}
	case pipeline.EventUpstreamResolved:
		if f := e.Data.Upstream; f != nil && f.Decision != nil {
			d.mark(e, "guard", cmp.Or(f.Decision.By, upstream.Planner), f.Decision.String())
		}
	case pipeline.EventGateReminded:
		d.mark(e, "gate", "reminder", e.Data.Note)
	case pipeline.EventPublishFailed:
		if e.Data.Fault != nil {
			d.mark(e, "fault", "GitHub", text.FirstLine(e.Data.Fault.Message))
		}
	case pipeline.EventRunVerified, pipeline.EventRunAccepted, pipeline.EventRunCancelled, pipeline.EventRunFailed, pipeline.EventRunSkipped:
		d.mark(e, "end", strings.TrimPrefix(string(e.Type), "run."), d.run.Ended)
	default:
		return false
	}
	return true
}

// drawPeople marks what people did.
func (d *timelineDraft) drawPeople(e *pipeline.Event) {
	who, data := doer(e), e.Data
	switch e.Type {
	case pipeline.EventRunStarted:
		d.mark(e, "human", cmp.Or(d.run.By.Login, who), "started it")
	case pipeline.EventRunStopped:
		d.mark(e, "human", who, "stopped it"+words(data.Answer))
	case pipeline.EventRunResumed:
		d.mark(e, "human", who, "let it go on"+words(data.Answer))
	case pipeline.EventRunReset:
		d.mark(e, "human", who, "let the guards count from the beginning"+words(data.Answer))
	case pipeline.EventGateAnswered:
		d.mark(e, "human", who, answered(data.Answer))
	case pipeline.EventBranchMoved:
		if data.Lost != "" {
			d.mark(e, "phase", "forge", fmt.Sprintf("made commit %.7s again: it went with its machine", data.Lost))
			return
		}
		d.mark(e, "human", who, fmt.Sprintf("pushed %.7s to the branch", data.Head))
	case pipeline.EventBaseRenamed:
		d.mark(e, "human", cmp.Or(d.run.BaseWas, d.run.Repo.DefaultBranch), "is called "+data.Note+" by now")
	case pipeline.EventRetargeted:
		d.mark(e, "human", who, "pointed the pull request at "+cmp.Or(data.Note, d.run.Repo.DefaultBranch))
	case pipeline.EventRepositoryRenamed:
		if data.Repo != nil {
			d.mark(e, "human", "github", "calls the repository "+data.Repo.FullName()+" now")
		}
	case pipeline.EventBranchDeleted:
		d.mark(e, "human", who, "deleted the branch")
	case pipeline.EventRollout:
		if data.Rollout != nil {
			d.mark(e, "phase", "production", data.Rollout.String())
		}
	case pipeline.EventShipAsked, pipeline.EventShipMerged, pipeline.EventShipDeployed, pipeline.EventShipFinished:
		if data.Ship != nil {
			d.mark(e, "phase", "shipping", data.Ship.Why)
		}
	case pipeline.EventBaseMoved:
		d.mark(e, "human", d.run.Repo.DefaultBranch, fmt.Sprintf("moved on to %.7s", data.Head))
	case pipeline.EventIssueEdited:
		d.mark(e, "human", who, "edited the issue")
	case pipeline.EventChangesAsked:
		if data.Review != nil {
			d.mark(e, "human", who, "asked for changes in a review: "+text.Plural(len(data.Review.Findings), "finding", "findings"))
		}
	case pipeline.EventChangesEdited:
		if data.Review != nil {
			d.mark(e, "human", who, "edited or took back what a review asks for: "+text.Plural(len(data.Review.Findings), "finding", "findings"))
		}
	default:
		if s := data.Signal; s != nil {
			d.mark(e, "human", who, signalled(s))
		}
	}
}

// doer is who did what an event tells.
func doer(e *pipeline.Event) string {
	switch {
	case e.Data.Answer != nil && e.Data.Answer.By.Login != "":
		return e.Data.Answer.By.Login
	case e.Data.Signal != nil && e.Data.Signal.Actor.Login != "":
		return e.Data.Signal.Actor.Login
	case e.Data.Actor != nil && e.Data.Actor.Login != "":
		return e.Data.Actor.Login
	}
	_, login, _ := strings.Cut(e.Source, ":")
	return cmp.Or(login, "somebody")
}

func words(a *pipeline.Answer) string {
	if a == nil || a.Text == "" {
		return ""
	}
	return ": “" + a.Text + "”"
}

// answered says what a person answered.
func answered(a *pipeline.Answer) string {
	if a == nil {
		return "answered"
	}
	said := "answered " + a.Choice
	switch {
	case a.Micros > 0:
		said += " " + text.USD(a.Micros)
	case a.N > 0:
		said += fmt.Sprintf(" %d", a.N)
	case a.N < 0:
		said += " all"
	}
	return said + words(a)
}

// signalled says what a person did with what Forge said.
func signalled(s *pipeline.Signal) string {
	what := map[pipeline.SignalKind]string{pipeline.SignalDismissed: "dismissed a finding", pipeline.SignalFixedByHuman: "mended a finding",
		pipeline.SignalApplied:   "applied a suggestion",
		pipeline.SignalRewritten: "rewrote a suggestion", pipeline.SignalIgnored: "left a suggestion", pipeline.SignalGap: "found what the review had not",
		pipeline.SignalApproved: "approved the pull request", pipeline.SignalEdited: "approved it with edits", pipeline.SignalChanges: "asked for changes",
		pipeline.SignalMerged: "merged the pull request", pipeline.SignalClosed: "closed the pull request",
		pipeline.SignalReverted: "reverted it", pipeline.SignalEscaped: "a defect reached production",
		pipeline.SignalAnswered: "answered a finding", pipeline.SignalRead: "a model read an answer",
		pipeline.SignalRefused: "refused a finding, as a model read it"}[s.Kind]
	what = cmp.Or(what, string(s.Kind))
	if s.Kind == pipeline.SignalGap && s.Finding != "" {
		what = "remarked beside a finding"
	}
	if s.Unsure && s.Kind == pipeline.SignalDismissed {
		what += ", which the code or somebody else speaks against"
	}
	if s.Kind == pipeline.SignalRead && s.Reading != nil {
		what += ": " + string(s.Reading.Meaning)
	}
	if s.Off {
		what = "took back: " + what
	}
	if s.Text != "" {
		what += ": “" + s.Text + "”"
	}
	return what
}

// finish sums a row up.
func (d *timelineDraft) finish(row *lineRow) {
	if row.Number > 0 && row.Number <= len(d.run.Iterations) {
		it := &d.run.Iterations[row.Number-1]
		row.Result, row.Brief = strings.ReplaceAll(string(it.Result), "_", " "), it.Brief
	}
	switch state := d.run.State; {
	case row.closed && row.Result == "failed":
		row.Result = "sent back"
	case row.Result == "in progress" && state != pipeline.StateRunning:
		row.Result = string(state)
	}
	row.cost = map[int]costCell{}
	for _, i := range row.Items {
		if i.Kind == "block" {
			c := row.cost[i.At]
			c.add(costCell{i.MicroUSD, i.Unpriced, i.Millis})
			row.cost[i.At] = c
			row.Sum.add(costCell{i.MicroUSD, i.Unpriced, i.Millis})
		}
	}
	if n := len(row.Items) - itemsShown; n > 0 {
		row.More = n
		row.Items = append(row.Items[:itemsShown/2:itemsShown/2], row.Items[len(row.Items)-itemsShown/2:]...)
	}
}
