package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline/text"
)

// GuardName names a guard of the loop.
type GuardName string

// The guards.
const (
	GuardIterations  GuardName = "iterations"
	GuardBounces     GuardName = "bounces"
	GuardSameFinding GuardName = "same_finding"
	GuardSameFailure GuardName = "same_failure"
	GuardDiminishing GuardName = "diminishing_returns"
	GuardDoubts      GuardName = "doubts" // weak signs that going on does not help, together
	GuardBreaker     GuardName = "circuit_breaker"
	GuardBudget      GuardName = "budget"
	GuardWall        GuardName = "wall_time"
	GuardFaults      GuardName = "faults"
	GuardNoFix       GuardName = "no_confident_fix" // auto_fix_only, and no failure has one (B5)
	GuardNoTests     GuardName = "no_tests"
	GuardNoProgress  GuardName = "no_commit" // rounds without a commit
	GuardHuman       GuardName = "human_required"
	GuardMoved       GuardName = "branch_moved"
	GuardGone        GuardName = "branch_deleted"
	GuardBase        GuardName = "base_moved" // the base branch has gone on, and a human is to be asked
	GuardConflict    GuardName = "conflict"   // it has gone on, and does not merge by itself
	GuardUnable      GuardName = "unable"     // the implementer needs a clarification (V5)
	GuardPlan        GuardName = "plan"       // the plan has a question
	GuardManual      GuardName = "manual"     // manual mode waits for a word before every action (R7)
	GuardPublish     GuardName = "publish_refused"
	GuardUnread      GuardName = "unread"         // part of the change could not be shown to the reviewer
	GuardDispute     GuardName = "dispute"        // implementer and reviewer disagree about a finding, twice
	GuardKnown       GuardName = "known_failures" // tests failed before this work and fail still
	GuardUnclean     GuardName = "unclean"        // a suite did not end well although no test failed
	GuardSecret      GuardName = "secret"         // what would be pushed or posted looks like a credential
	GuardSplit       GuardName = "split"          // a plan with modules waits for a human's word
	GuardRounds      GuardName = "module_rounds"  // the integration has sent work back to a module too often
	GuardParts       GuardName = "modules_left"   // no module of the plan is left
	GuardUpstream    GuardName = "feedback"       // what agents told each other is for a human to decide
	GuardAccepted    GuardName = "accepted"       // of a waiver alone: what was left when the run was accepted, before it was reopened
)

// Guard is why the loop stopped by itself: which guard, and its numbers.
type Guard struct {
	Name   GuardName `json:"name"`
	Phase  Phase     `json:"phase,omitempty"`
	Value  int64     `json:"value"` // what was counted
	Limit  int64     `json:"limit"` // against what
	Unit   string    `json:"unit,omitempty"`
	Detail string    `json:"detail"`         // one sentence for people
	Step   string    `json:"step,omitempty"` // of manual mode: the step that waits

	About []string `json:"about,omitempty"` // what an answer is about, by name: tests, or fingerprints of findings
}

// futile reports whether the guard says that the loop does not get the work done. What can be
// answered to a guard of the loop follows from it.
func (g *Guard) futile() bool {
	return slices.Contains([]GuardName{GuardIterations, GuardBounces, GuardSameFinding, GuardSameFailure, GuardDiminishing, GuardDoubts,
		GuardBreaker, GuardNoFix}, g.Name)
}

// staleLimit is how many rounds in a row may end without a commit, and
// movedLimit how often the branch may move under a run, before a human is asked.
// updateLimit is how often the base branch is taken in: what is verified then may
// be behind it, and never waits for it for ever.
const (
	staleLimit  = 2
	movedLimit  = 5
	updateLimit = 3
)

// faultShown is how many characters of a fault a question shows. GitHub's reasons for a
// refused push, and a package manager's, begin with what is always the same: a shorter
// piece would end before the part that says what to do.
const faultShown = 1500

// guard checks what may fire at any moment: faults, the budget, the working time.
func (r *Run) guard() *Guard {
	c := r.Counters
	cost, tokens := r.spent()
	fault := ""
	if r.Fault != nil {
		fault = text.Clip(text.OneLine(r.Fault.Message), faultShown)
	}
	switch {
	case c.Faults+c.PublishFaults > 0 && r.Fault != nil && r.Fault.Class == FaultSecret:
		g := &Guard{Name: GuardSecret, Value: 1, Detail: r.Fault.Message, About: r.Fault.About}
		if c.Faults > 0 { // else it was found when it was to be published
			g.Phase = PhaseImplement
		}
		return g
	case c.Faults+c.PublishFaults > 0 && r.Fault != nil && r.Fault.Class == FaultCrash && r.Fault.Final:
		g := &Guard{Name: GuardFaults, Value: 2, Limit: 2, Detail: fault}
		if c.Faults == 0 {
			g.Name = GuardPublish
		}
		return g
	case c.PublishFaults > 0 && r.Fault != nil && r.Fault.Final:
		who := "GitHub"
		if r.Repo.ID == 0 {
			who = "The repository"
		}
		return &Guard{Name: GuardPublish, Value: int64(c.PublishFaults), Limit: 1, Detail: who + " refuses what Forge must publish: " + fault}
	case r.Fault != nil && r.Fault.Class == FaultBudget && c.Faults > 0:
		if limit := r.TokenLimit(); limit > 0 && float64(tokens)*float64(r.CostLimit()) > float64(cost)*float64(limit) { // that is the nearer one
			return &Guard{Name: GuardBudget, Value: tokens, Limit: limit, Unit: "tokens", Detail: fault}
		}
		return &Guard{Name: GuardBudget, Value: cost, Limit: r.CostLimit(), Unit: "micro-USD", Detail: fault}
	case c.Faults > 0 && r.Fault != nil && r.Fault.Final && !r.Fault.RetryAt.IsZero(): // it was waited for
		return &Guard{Name: GuardFaults, Value: int64(c.Faults), Limit: 1, Detail: fault}
	case c.Faults > 0 && r.Fault != nil && r.Fault.Final:
		return &Guard{Name: GuardFaults, Value: int64(c.Faults), Limit: 1, Detail: "trying again cannot help: " + fault}
	case c.Faults >= r.Config.Loop.Faults && c.Faults > 0 && r.Fault != nil && r.Fault.Class == FaultAgent && r.unmerged() != nil:
		return r.conflict(r.unmerged(), r.Fault.Message)
	case c.Faults >= r.Config.Loop.Faults && c.Faults > 0:
		return &Guard{Name: GuardFaults, Value: int64(c.Faults), Limit: int64(r.Config.Loop.Faults), Detail: fmt.Sprintf("broke down %d times in a row, last with: %s", c.Faults, fault)}
	case cost > 0 && cost >= r.CostLimit():
		return &Guard{Name: GuardBudget, Value: cost, Limit: r.CostLimit(), Unit: "micro-USD", Detail: fmt.Sprintf("the run has cost %s of its %s", text.USD(cost), text.USD(r.CostLimit()))}
	case r.TokenLimit() > 0 && tokens >= r.TokenLimit():
		return &Guard{Name: GuardBudget, Value: tokens, Limit: r.TokenLimit(), Unit: "tokens", Detail: fmt.Sprintf("the run has used %d of its %d tokens", tokens, r.TokenLimit())}
	case r.WallLimit() > 0 && r.Worked() >= r.WallLimit():
		return &Guard{Name: GuardWall, Value: r.Worked() / 60_000, Limit: r.WallLimit() / 60_000, Unit: "minutes", Detail: fmt.Sprintf("the run has worked %d of its %d minutes", r.Worked()/60_000, r.WallLimit()/60_000)}
	case c.Moved >= movedLimit:
		return &Guard{Name: GuardMoved, Value: int64(c.Moved), Limit: movedLimit, Detail: fmt.Sprintf("the branch moved %d times under the run: somebody is working on it", c.Moved)}
	case r.BranchDeleted:
		return &Guard{Name: GuardGone, Value: 1, Limit: 1, Detail: "somebody deleted the branch " + r.Branch + "; going on makes it again"}
	}
	return nil
}

// loopGuard returns the guard that forbids the bounce b, or nil. Those that say
// most about why come first.
func (r *Run) loopGuard(it *Iteration, b *Bounce) *Guard {
	cfg, c := r.Config.Loop, r.Counters
	bounces, limit, inARow := c.ReviewBounces, cfg.ReviewBounces, c.ReviewInARow
	if b.Phase == PhaseTest {
		bounces, limit, inARow = c.TestBounces, cfg.TestBounces, c.TestInARow
	}
	if it.Number < c.GrantedUntil {
		return nil // a human said so
	}
	if g := cmp.Or(r.sameAgain(b), r.diminishing(b), r.weakSignals(b)); g != nil {
		return g
	}
	switch {
	case it.Number >= r.MaxIterations():
		return &Guard{Name: GuardIterations, Phase: b.Phase, Value: int64(it.Number), Limit: int64(r.MaxIterations()),
			Detail: fmt.Sprintf("iteration %d of %d did not pass the %s", it.Number, r.MaxIterations(), b.Phase)}
	case bounces >= limit:
		return &Guard{Name: GuardBounces, Phase: b.Phase, Value: int64(bounces), Limit: int64(limit),
			Detail: fmt.Sprintf("the %s has sent the work back %s, its limit", b.Phase, text.Plural(bounces, "time", "times"))}
	case r.Config.Breaker.Enabled && inARow > r.Config.Breaker.MaxIterations:
		return &Guard{Name: GuardBreaker, Phase: b.Phase, Value: int64(inARow), Limit: int64(r.Config.Breaker.MaxIterations),
			Detail: fmt.Sprintf("the circuit breaker opened: %d times in a row without a pass of the %s", inARow, b.Phase)}
	case b.Phase == PhaseTest && cfg.AutoFixOnly && it.Tests.noFix(cfg.AutoFixConfidence) && !r.advised(it):
		return &Guard{Name: GuardNoFix, Phase: b.Phase, Value: surest(it.Tests.Failures), Limit: int64(cfg.AutoFixConfidence * 100), Unit: "per cent",
			Detail: fmt.Sprintf("none of the %s has a suggested fix with a confidence over %.2f", text.Plural(b.Count, "failure", "failures"), cfg.AutoFixConfidence)}
	}
	return nil
}

// sameAgain finds a finding or failure of the bounce that came back too often (T2).
func (r *Run) sameAgain(b *Bounce) *Guard {
	for _, fp := range b.Issues {
		for _, is := range append(r.Findings[:len(r.Findings):len(r.Findings)], r.Failures...) {
			if is.Fingerprint() != fp || is.Phase != b.Phase {
				continue
			}
			name, limit, what := GuardSameFailure, r.Config.Loop.SameFailure, ""
			if is.Finding != nil {
				name, limit, what = GuardSameFinding, r.Config.Loop.SameFinding, is.Finding.Message
			} else {
				what = is.Failure.Test
			}
			if is.Times >= limit {
				return &Guard{Name: name, Phase: b.Phase, Value: int64(is.Times), Limit: int64(limit),
					Detail: fmt.Sprintf("the same came back %s: %s", text.Plural(is.Times, "time", "times"), text.Clip(text.OneLine(what), 200))}
			}
		}
	}
	return nil
}

// diminishing stops at a bounce when going on brings nothing any more (B6). What
// is left has gone down when it weighs less than ever since the guards began to
// count: what was mended counts for as long as what is new or was found late does
// not outweigh it.
func (r *Run) diminishing(b *Bounce) *Guard {
	if b.Number < r.Config.Loop.DiminishingFrom {
		return nil
	}
	var least, last *Bounce
	against, reworks := 0, 0
	for i := range len(r.Bounces) + 1 {
		next := b
		if i < len(r.Bounces) {
			next = &r.Bounces[i]
		}
		switch {
		case next.Phase != b.Phase || next.Iteration <= r.Counters.ResetAt:
			continue
		case r.argued(next.Iteration): // nothing was tried in it
		case least == nil || next.Weight < least.Weight:
			least, against, reworks = next, 0, 0
		default:
			reworks++
			against += max(1, unfixed(last, next))
		}
		last = next
	}
	if against < r.Config.Loop.Evidence {
		return nil
	}
	detail := fmt.Sprintf("after %s of %s no less is left than before: %s, weighing %d by severity; it was %s, weighing %d",
		text.Plural(reworks, "rework", "reworks"), b.Phase, text.Plural(b.Count, "issue", "issues"), b.Weight, text.Plural(least.Count, "issue", "issues"), least.Weight)
	return &Guard{Name: GuardDiminishing, Phase: b.Phase, Value: int64(b.Weight), Limit: int64(least.Weight), Unit: "weight", Detail: detail}
}

// argued reports whether nothing was changed in an iteration because all that was
// open was disputed.
func (r *Run) argued(iteration int) bool {
	return iteration > 0 && iteration <= len(r.Iterations) && r.Iterations[iteration-1].Disputed
}

// unfixed counts what a bounce sent back and the next one finds again; 0 when
// some of it is gone.
func unfixed(sent, found *Bounce) int {
	for _, fp := range sent.Issues {
		if !slices.Contains(found.Issues, fp) {
			return 0
		}
	}
	return len(sent.Issues)
}

// weakSignals stops at a bounce when signs add up that going on does not help. What
// passes review and tests is never stopped by it, whatever was doubted.
func (r *Run) weakSignals(b *Bounce) *Guard {
	signs, limit := r.signs(), r.Config.Loop.Doubts
	if limit == 0 || len(signs) < limit {
		return nil
	}
	return &Guard{Name: GuardDoubts, Phase: b.Phase, Value: int64(len(signs)), Limit: int64(limit),
		Detail: text.Plural(len(signs), "sign", "signs") + " that going on does not help: " + strings.Join(signs, "; ")}
}

// signs lists what speaks against going on, since a human last answered to that,
// though none of it says enough alone: an iteration whose implementer, asked
// outright, doubts that it can mend what has come back, and one whose tests fail
// with no confident fix for any of it. Who says it unasked is heard at once (V5).
func (r *Run) signs() []string {
	var out []string
	for i := range r.Iterations {
		it := &r.Iterations[i]
		if it.Number <= r.Counters.DoubtsAckedAt {
			continue
		}
		if it.Impl != nil && len(it.Impl.Doubts) > 0 {
			out = append(out, fmt.Sprintf("in iteration %d, the implementer doubts that it can mend %s", it.Number, text.Clip(text.OneLine(strings.Join(it.Impl.Doubts, ", or ")), 200)))
		}
		if over := r.Config.Loop.AutoFixConfidence; it.Tests != nil && it.Tests.noFix(over) && !r.advised(it) {
			out = append(out, fmt.Sprintf("in iteration %d, no failure has a fix with a confidence over %.2f", it.Number, over))
		}
	}
	return out
}

// noFix reports that nothing but failures is wrong, and that none of them has a
// suggested fix with a confidence over the given one.
func (t *TestReport) noFix(over float64) bool {
	confident := func(f Failure) bool { return f.Fix != nil && f.Confidence > over }
	return len(t.Failures) > 0 && len(t.Tampered) == 0 && !slices.ContainsFunc(t.Failures, confident)
}

// surest is the confidence of the best suggested fix, in per cent.
func surest(failures []Failure) (per int64) {
	for _, f := range failures {
		if f.Fix != nil {
			per = max(per, int64(f.Confidence*100+0.5))
		}
	}
	return per
}

func weight(s Severity) int {
	switch s {
	case SeverityInfo:
		return 1
	case SeverityWarning:
		return 2
	case SeverityError:
		return 4
	}
	return 8
}
