package pipeline

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/module"
	"forge/pipeline/text"
	"forge/pipeline/upstream"
)

// GateKind says what kind of question a gate asks.
type GateKind string

// The kinds of gates.
const (
	GateEscalation    GateKind = "escalation"    // going on does not help (T7)
	GateStuck         GateKind = "stuck"         // the tests do not get better (V4)
	GateClarification GateKind = "clarification" // the planner or the builder has a question (V5)
	GateApproval      GateKind = "approval"      // manual mode waits for a word (R7)
	GateBudget        GateKind = "budget"        // a cap is reached
	GateHuman         GateKind = "human"         // the reviewer wants a human to look (B3)
	GateFeedback      GateKind = "feedback"      // what agents told each other
)

// Gate is a question to a human. It holds no worker: the run has nothing to do
// until an answer arrives, or its time is over; see Alarm.
type Gate struct {
	ID       string    `json:"id"` // "gate/1"
	Kind     GateKind  `json:"kind"`
	Guard    *Guard    `json:"guard,omitempty"`
	Question string    `json:"question"`
	Choices  []Choice  `json:"choices"`
	For      Actor     `json:"for"` // who is asked first: who started the run; anyone with write access may answer
	Opened   time.Time `json:"opened"`
	Reminded time.Time `json:"reminded,omitzero"`
	Answers  []Answer  `json:"answers,omitempty"` // the last one may have closed it
	Closed   bool      `json:"closed,omitempty"`
}

// Choice is one answer that a gate accepts.
type Choice struct {
	Name  string `json:"name"`          // the command's word: continue, accept, history, cancel, approve, choose, raise, retry, take-over, simplify, later, without
	Arg   string `json:"arg,omitempty"` // what it takes: "N", or words of one's own in capitals
	Label string `json:"label"`         // what it does, for people
}

// Answer is what a human said to a gate or to a run.
type Answer struct {
	Gate    string    `json:"gate,omitempty"`
	Choice  string    `json:"choice"`
	N       int       `json:"n,omitempty"`    // of continue
	Micros  int64     `json:"usd,omitempty"`  // of raise, in micro-dollars
	Text    string    `json:"text,omitempty"` // free words, for the next attempt (lessons 19)
	Way     string    `json:"way,omitempty"`  // of choose with a letter and words besides: the way out that the letter stands for
	Back    bool      `json:"back,omitempty"` // of words that let an ended run go on: the work goes back with them first
	By      Actor     `json:"by"`
	Via     string    `json:"via"` // comment, box, button, cli, label
	Comment int64     `json:"comment,omitempty"`
	At      time.Time `json:"at"`
}

// MaxContinue is the most iterations that one answer can grant, and maxRaise the
// most dollars.
const (
	MaxContinue = 20
	maxRaise    = 1000
)

// gateKind says what kind of question a guard leads to.
func (r *Run) gateKind(g Guard) GateKind {
	switch g.Name {
	case GuardManual, GuardSplit:
		return GateApproval
	case GuardPlan, GuardUnable:
		return GateClarification
	case GuardBudget:
		return GateBudget
	case GuardUpstream:
		return GateFeedback
	case GuardHuman, GuardBase, GuardUnread, GuardDispute, GuardKnown, GuardUnclean, GuardSecret:
		return GateHuman
	case GuardIterations, GuardSameFinding: // they are about the review, too
		return GateEscalation
	}
	if g.futile() && g.Phase == PhaseTest {
		return GateStuck
	}
	return GateEscalation
}

// choices lists what a human can say to a guard.
func (r *Run) choices(kind GateKind, g Guard) []Choice {
	cancel := Choice{Name: "cancel", Label: "give it up"}
	if r.Part != nil {
		cancel.Label = "leave this module out, and what needs it; what of it is merged stays, and the others go on"
	}
	history := Choice{Name: "history", Label: "show everything that was tried"}
	var out []Choice
	switch kind {
	case GateApproval:
		if g.Name == GuardSplit {
			return []Choice{{Name: "approve", Label: "build the modules at the same time"}, {Name: "choose", Arg: onePiece, Label: "build it in one piece"}, cancel}
		}
		return []Choice{{Name: "approve", Label: "let this step begin"}, {Name: "approve", Arg: "all", Label: "let this step and all later ones begin"}, cancel}
	case GateClarification:
		out = []Choice{{Name: "choose", Arg: "ANSWER", Label: "answer in your own words"}}
		if g.Name == GuardPlan {
			for _, o := range r.Plan.Options {
				out = append(out, Choice{Name: "choose", Arg: text.Clip(text.OneLine(o), 200), Label: text.Clip(text.OneLine(o), 200)})
			}
		}
		if r.Refused != "" {
			out = append(out, Choice{Name: "continue", Label: "have the contract revised once more"})
		}
		return append(append(out, r.leaving()...), history, cancel)
	case GateFeedback:
		return append(append(r.offers(), history), cancel)
	case GateBudget:
		out = []Choice{r.raising(g)}
	case GateHuman:
		out = r.humanChoices(g)
	case GateStuck:
		out = append([]Choice{{Name: "continue", Arg: "N", Label: "go on for N more iterations; words on further lines go along"}}, otherwise...)
	default:
		out = []Choice{{Name: "continue", Arg: "N", Label: continueLabel(g.Name)}}
		if r.Part != nil && g.futile() {
			out = append(out, otherwise...)
		}
		if g.Name == GuardConflict || g.Name == GuardMoved {
			out = append(out, Choice{Name: "take-over", Label: "stop, merge by hand on the branch, then `resume`"})
		}
		if g.Name == GuardNoTests && g.Phase == PhasePlan {
			out = []Choice{{Name: "continue", Label: "look again, with the settings as they are then"},
				{Name: "approve", Label: "plan it all the same: the work has to bring tests of its own"}}
		}
	}
	if g.Name != GuardDispute && kind != GateApproval && r.asksAboutTests(g) {
		out = append(out, Choice{Name: "approve", Label: "let it pass, in your name: " + r.aboutTestsInWords()})
	}
	if r.leavable(&g) != nil {
		out = append(out, leavings...)
	}
	if r.acceptable(g) {
		label := "take it as it is; what is left is written down as known issues"
		if kind == GateStuck {
			label = "take it with the failing tests as a known limitation"
		}
		if r.Head == r.Base {
			label = "take it as it is: nothing is left to build here"
		}
		out = append(out, Choice{Name: "accept", Label: label})
	}
	return append(append(out, r.leaving()...), history, cancel)
}

// raising is the choice of a larger budget: by the original one, in whole dollars. The cap on
// tokens goes up in proportion.
func (r *Run) raising(g Guard) Choice {
	usd := math.Ceil(max(1, min(r.Config.Limits.CostUSD, maxRaise)))
	by := strconv.FormatFloat(usd, 'f', -1, 64)
	also := ""
	if most := r.Config.Limits; g.Unit == "tokens" && most.CostUSD > 0 {
		also = fmt.Sprintf(", and with it the cap on tokens by %.0f", float64(most.Tokens)*usd/most.CostUSD)
	}
	return Choice{Name: "raise", Arg: by, Label: "raise the budget by $" + by + also + ", or by as many dollars as you write instead"}
}

// acceptable reports whether the work can be taken as it is, at the question that a guard leads
// to. What may not leave cannot, nor can what GitHub did not take: nobody could get at it. Nor
// can a module that its parent could not merge. One that changes nothing can, where that is what is asked about: others may have brought it.
func (r *Run) acceptable(g Guard) bool {
	switch {
	case g.Name == GuardSecret || r.partsMissing() || r.Part != nil && g.Name == GuardConflict:
		return false
	case g.Name == GuardPublish && r.Head != r.Published.Head:
		return false
	case r.Part != nil && g.Name == GuardNoProgress:
		return true
	}
	return r.Head != r.Base
}

// otherwise is what can be done where going on as before does not help.
var otherwise = []Choice{
	{Name: "take-over", Label: "stop, mend it by hand on the branch, then `resume`"},
	{Name: "simplify", Arg: "WORDS", Label: "plan again with a simpler specification: say what may be left out"},
}

// humanChoices lists what a human can say who has to look at something.
func (r *Run) humanChoices(g Guard) []Choice {
	back := Choice{Name: "continue", Arg: "N", Label: "send it back for up to N more iterations, with your words on further lines"}
	switch g.Name {
	case GuardBase:
		return []Choice{{Name: "continue", Label: "take " + r.Repo.DefaultBranch + " in, and review and test again"},
			{Name: "approve", Label: "it is verified as it is"}}
	case GuardUnread:
		return []Choice{{Name: "approve", Label: "you have read it: let it pass, in your name"}, back}
	case GuardDispute:
		if g.Phase == PhaseTest {
			back.Label = "it must not stay: send it back for up to N more iterations, with your words on further lines"
			return []Choice{{Name: "approve", Label: "the implementer is right: let it pass, in your name"}, back}
		}
		back.Label = "the reviewer is right: send it back for up to N more iterations, with your words on further lines"
		return []Choice{{Name: "approve", Label: "the implementer is right: dismiss what is named above"}, back}
	case GuardKnown:
		back.Label = "they are to be fixed, too, in up to N more iterations"
		return []Choice{{Name: "approve", Label: "they are known: let them pass, in your name, until they have passed once"}, back}
	case GuardUnclean:
		return []Choice{{Name: "retry", Label: "run the tests again"}, back}
	case GuardSecret:
		back.Label = "it must go: the commit is made again without it, and with your words on further lines"
		if len(g.About) == 0 { // one of Forge's own, or more than can be looked at
			return []Choice{back}
		}
		return []Choice{back, {Name: "approve", Label: "you have looked, and it is no secret: let it pass, in your name"}}
	}
	return []Choice{{Name: "approve", Label: "you have looked: go on"}, back}
}

// question is what a gate asks because of a guard.
func question(g Guard) string {
	if g.Name == GuardKnown {
		return g.Detail + ". Are they known?"
	}
	return g.Detail
}

func continueLabel(g GuardName) string {
	switch g {
	case GuardFaults, GuardPublish, GuardNoTests, GuardConflict:
		return "try again, once what is named above is mended"
	case GuardGone:
		return "make the branch again and go on"
	case GuardParts:
		return "build it in one piece"
	case GuardRounds:
		return "let the integration send work back again, in up to N more iterations; words on further lines go along"
	}
	return "go on for N more iterations; words on further lines go along"
}

// Offers reports whether a command is a choice of the open question, as a box of it is.
func (r *Run) Offers(cmd command.Line) bool {
	g := r.Gate()
	return g != nil && slices.ContainsFunc(g.Choices, func(c Choice) bool {
		return c.Name == cmd.Name && (c.Arg == "" || c.Arg == "N" || c.Arg == cmd.Args)
	})
}

func (g *Gate) accepts(name string) bool {
	for _, c := range g.Choices {
		if c.Name == name {
			return true
		}
	}
	return false
}

// onePiece is the answer by which a plan is not split.
const onePiece = "one piece"

// words lists the gate's choices as commands.
func (g *Gate) words(slug string) string {
	var out []string
	for _, c := range g.Choices {
		out = append(out, "`"+c.Command(slug)+"`")
	}
	return strings.Join(out, ", ")
}

// Command returns the choice as people type it who begin with the slug.
func (c Choice) Command(slug string) string { return command.Write(slug, c.Name+" "+c.Arg) }

// read takes a command's words into the answer; what is wrong with them is
// returned in words.
func (g *Gate) read(a *Answer, cmd command.Line, slug string) string {
	switch cmd.Name {
	case "continue":
		a.N = 1
		if cmd.Args != "" {
			n, err := strconv.Atoi(cmd.Args)
			if err != nil || n < 1 || n > MaxContinue {
				return fmt.Sprintf("`continue` takes a number from 1 to %d, got %q: for example `%s`.", MaxContinue, cmd.Args, command.Write(slug, "continue 2"))
			}
			a.N = n
		}
	case "raise":
		usd, err := strconv.ParseFloat(strings.TrimPrefix(cmd.Args, "$"), 64)
		if err != nil || !(usd >= 0.01 && usd <= maxRaise) {
			return fmt.Sprintf("`raise` takes dollars from 0.01 to %d, got %q: for example `%s`.", maxRaise, cmd.Args, command.Write(slug, "raise 5"))
		}
		a.Micros = int64(usd*1e6 + 0.5)
	case "choose", "simplify":
		if cmd.Args == "" && a.Text == "" {
			return fmt.Sprintf("`%s` takes words: `%s …`. %s", cmd.Name, command.Write(slug, cmd.Name), g.Question)
		}
		if g.Guard != nil && g.Guard.Name == GuardSplit && !strings.EqualFold(strings.Trim(cmd.Args, " .`\"'"), onePiece) {
			return fmt.Sprintf("`choose` does not take %q here: %s.", text.Clip(cmd.Args, 100), g.words(slug))
		}
		a.Text = strings.TrimSpace(cmd.Args + "\n" + a.Text)
	case "approve":
		if cmd.Args != "" && (cmd.Args != "all" || g.Kind != GateApproval) {
			return fmt.Sprintf("`approve` does not take %q here: %s.", cmd.Args, g.words(slug))
		}
		if cmd.Args == "all" {
			a.N = -1
		}
	}
	return ""
}

// answered folds an answer into the run: it closes the gate, except that showing
// the history leaves it open, and resets exactly the counter that fired. cfg is the
// repository's settings, when they were read again for it.
func (r *Run) answered(a *Answer, cfg *config.Config) {
	g := r.Gate()
	switch {
	case a == nil:
		return
	case a.Gate == "" && a.Choice == "approve" && a.N < 0: // said ahead of any question
		r.ApprovedStep = everyStep
		return
	case g == nil || a.Gate != g.ID:
		return
	}
	g.Answers = append(g.Answers, *a)
	if a.Choice == "history" {
		return
	}
	g.Closed = true
	works := true
	if g.Guard != nil && g.Guard.Name == GuardUpstream {
		works = r.choose(a)
	} else if a.Text != "" {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: %s", a.By.Login, a.Text))
	}
	if r.State == StateWaiting {
		r.State = StateRunning
	}
	if g.Guard == nil || !works || slices.Contains([]string{"accept", "dismiss", "cancel", module.Later, module.Without}, a.Choice) {
		return
	}
	switch {
	case cfg == nil:
	case g.Guard.Name == GuardFaults: // a model that nobody knows was set there
		r.Config.Models = cfg.Models
	default:
		r.Config.Tests = cfg.Tests
		r.fromNewBase()
	}
	switch a.Choice {
	case "raise":
		r.Counters.Raised += a.Micros
		r.Counters.Faults, r.Fault = 0, nil
		return
	case "take-over":
		r.State, r.Stopped, r.StoppedBy = StateStopped, a.At, a.By
	case "simplify":
		r.Replan = true
	case "approve":
		r.approve(*g.Guard, a)
		return
	}
	r.grant(*g.Guard, max(1, a.N), a)
}

// fromNewBase lets a run that has made nothing yet begin where the default branch is by
// now: the tests that a human was told are missing may have come there with the settings.
func (r *Run) fromNewBase() {
	if r.Plan == nil && len(r.Iterations) == 0 && r.Head == r.Base && r.BaseHead != "" && r.Config.OnBaseMoved == "merge" {
		r.Base, r.Head, r.BaseHead = r.BaseHead, r.BaseHead, ""
	}
}

// approve lets a step begin (R7), or what a human has looked at go on (B3). What
// Forge could not verify passes in their name.
func (r *Run) approve(g Guard, a *Answer) {
	it := r.Current()
	switch {
	case g.Name == GuardManual:
		if r.ApprovedStep = g.Step; a.N < 0 {
			r.ApprovedStep = everyStep
		}
	case g.Name == GuardNoTests:
		r.Untested = true
	case g.Name == GuardSplit:
		r.Approved = true
	case it == nil:
	case r.asksAboutTests(g):
		r.passTests(a)
	case g.Name == GuardUnread && it.Review != nil:
		r.waive(g, g.Detail, a)
		r.passUnread(it.Review)
	case g.Name == GuardDispute:
		r.waive(g, g.Detail, a)
		r.settleDispute(g, &a.By)
	case g.Name == GuardKnown:
		r.waive(g, g.Detail, a)
		r.know(g, a.By.Login)
	case g.Name == GuardSecret:
		r.waive(g, g.Detail, a)
		r.clear(g, a.By.Login)
	default:
		it.Forced = true
		if g.Name == GuardHuman && it.Review != nil && it.Review.Ruled {
			r.waive(g, g.Detail, a)
		}
	}
}

// grant lets the run go on for n more iterations: until then the guards of the
// loop hold still, all of them, because a second one that fires right after the
// first was answered would only ask the same question again. Each iteration
// brings its share of the budget; what else fired is reset, and nothing more.
func (r *Run) grant(g Guard, n int, a *Answer) {
	c, it := &r.Counters, r.Current()
	c.Granted += n
	if it == nil {
		it = &Iteration{} // before the first iteration there is nothing to reset in it
	} else {
		c.GrantedUntil = it.Number + n
	}
	r.grantParts(g)
	switch g.Name {
	case GuardFaults, GuardWall:
		c.Faults, r.Fault = 0, nil
	case GuardPublish:
		c.PublishFaults, r.Fault = 0, nil
	case GuardMoved:
		c.Moved = 0
	case GuardGone:
		r.BranchDeleted, r.Published.Head = false, ""
	case GuardPlan:
		r.Approved = true
	case GuardNoProgress:
		c.EmptyRounds, it.Impl = 0, nil
		if a.Via == viaReview { // the implementer is given it at once
			r.handOver(r.Head)
		}
	case GuardUnable: // the iteration begins again, and what was in doubt before is clear
		if r.Refused != "" && a.Choice == "continue" { // it waits for the contract again
			r.Insists, r.Refused = r.Insists+1, ""
			return
		}
		c.EmptyRounds, it.Impl, c.DoubtsAckedAt, r.Refused = 0, nil, it.Number-1, ""
	case GuardDoubts, GuardNoFix:
		c.DoubtsAckedAt = it.Number
	case GuardNoTests:
		if it.Tests = nil; r.Plan == nil {
			r.Baseline = nil // look again
		}
	case GuardConflict:
		it.Update = nil // look again, when the tests have passed
		if c.Faults > 0 {
			c.Faults, r.Fault = 0, nil
		}
	case GuardBase:
		r.Config.OnBaseMoved = "merge" // a human said so, for this run
	case GuardHuman:
		it.Forced = true
		r.ask(Finding{Severity: SeverityError, Category: CategoryHuman, Message: askedFor(a)})
	case GuardUnread:
		r.ask(Finding{Severity: SeverityError, Category: CategoryHuman, Message: askedFor(a)})
	case GuardDispute:
		if r.settleDispute(g, nil); g.Phase == PhaseTest && it.Tests == nil {
			c.EmptyRounds, it.Impl = 0, nil
		}
	case GuardKnown:
		r.claim(g)
	case GuardUnclean:
		r.sendUnclean(it, a)
	case GuardSecret:
		r.withdraw(g)
	}
}

// sendUnclean runs the tests again that did not end well, or makes that a failure
// to be fixed.
func (r *Run) sendUnclean(it *Iteration, a *Answer) {
	if a.Choice == "retry" || it.Tests == nil {
		it.Tests = nil
		return
	}
	tests := *it.Tests
	f := Failure{Test: "the test suite", Error: tests.Unclean}
	f.Fingerprint = f.Digest()
	tests.Failures = append(slices.Clip(tests.Failures), f)
	it.Tests = &tests
	r.Failures = sight(r.Failures, Issue{Failure: &f, Phase: PhaseTest}, it.Number)
	it.Brief = brief(tests.Tampered, tests.Failures)
}

func askedFor(a *Answer) string {
	if a.Text == "" {
		return a.By.Login + " sends it back; see what the review says"
	}
	return text.Clip(text.OneLine(a.Text), 200)
}

// ask notes something that a human wants changed; it reports whether that is news.
func (r *Run) ask(f Finding) bool {
	f.Confidence, f.Fixable = 1, true
	r.identify(&f)
	for _, known := range r.Requested {
		if known.Fingerprint == f.Fingerprint {
			return false
		}
	}
	f.ID = fmt.Sprintf("H%d", len(r.Requested)+1)
	r.Requested = append(r.Requested, f)
	return true
}

// Alarm says until when the run waits for somebody or something, and what happens
// then if nothing has before: a reminder, the end of the waiting, another look. It
// is the zero time for a run that waits for nothing: it is moving, or has ended. What
// could not be published with the rest is looked at again, whatever else it waits for.
func (r *Run) Alarm() (time.Time, []Event) {
	at, events := r.alarm()
	if next := r.Published.Next; !next.IsZero() && (at.IsZero() || next.Before(at)) {
		due := Event{ID: fmt.Sprintf("run/%d/publish/due/%d", r.ID, r.Seq), Type: EventPublishDue, Source: "forge"}
		if r.publishRefused() {
			due.Data.Note = "it was refused, perhaps for now"
		}
		return next, []Event{due}
	}
	return at, events
}

func (r *Run) alarm() (time.Time, []Event) {
	wait := r.Config.Gates
	switch {
	case r.State == StateWaiting && r.Gate() != nil:
		g := r.Gate()
		return r.patience(g.Opened, g.Reminded, wait, g.ID, "nobody has answered: "+text.Clip(text.OneLine(g.Question), 200))
	case r.State == StateStopped:
		return r.patience(r.Stopped, r.Stopped, wait, "stopped", "nobody has resumed it since "+r.StoppedBy.Login+" stopped it")
	case r.State == StateRunning && r.Await != nil && !r.Await.Woken:
		w, at := r.Await, r.Await.Next
		if at.After(w.Until) {
			at = w.Until
		}
		if f := r.Feedback(); f != nil && f.State == upstream.Resolving && f.Until.Before(at) {
			why := fmt.Sprintf("the %s has not answered within %d minutes", f.To, int(r.Config.Upstream.Timeout().Minutes()))
			return f.Until, []Event{{ID: fmt.Sprintf("run/%d/%s/timed_out", r.ID, f.ID), Type: EventUpstreamTimedOut, Source: "forge",
				Data: Data{Upstream: &upstream.Feedback{ID: f.ID, Why: why}}}}
		}
		return at, []Event{{ID: fmt.Sprintf("run/%d/woken/%d", r.ID, r.Seq), Type: EventPhaseWoken, Source: "forge", Data: Data{Note: "it is time to look again"}}}
	}
	return time.Time{}, nil
}

// patience reminds once, then ends the run.
func (r *Run) patience(since, reminded time.Time, wait config.Gates, what, why string) (time.Time, []Event) {
	id := fmt.Sprintf("run/%d/%s/", r.ID, what)
	if reminded.IsZero() && wait.Remind() < wait.Timeout() {
		return since.Add(wait.Remind()), []Event{{ID: id + "reminded", Type: EventGateReminded, Source: "forge", Data: Data{Note: why}}}
	}
	return since.Add(wait.Timeout()), []Event{{ID: id + "expired/" + strconv.FormatInt(r.Seq, 10), Type: EventRunCancelled, Source: "forge",
		Data: Data{Note: fmt.Sprintf("%s, for %s", why, days(wait.Timeout()))}}}
}

// Deadline is when a run that waits for a human is cancelled; zero for one that
// does not.
func (r *Run) Deadline() time.Time {
	switch g := r.Gate(); {
	case r.State == StateWaiting && g != nil:
		return g.Opened.Add(r.Config.Gates.Timeout())
	case r.State == StateStopped:
		return r.Stopped.Add(r.Config.Gates.Timeout())
	}
	return time.Time{}
}

func days(d time.Duration) string {
	if d < 48*time.Hour {
		return text.Plural(int(d.Hours()), "hour", "hours")
	}
	return text.Plural(int(d.Hours()/24), "day", "days")
}
