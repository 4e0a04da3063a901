package pipeline

import (
	"fmt"
	"forge/pipeline/config"
	"time"
)

// State says where a run stands as a whole.
type State string

// The states of a run. The last five are ends.
const (
	StateRunning   State = "running"   // something is being worked on, or is about to be
	StateWaiting   State = "waiting"   // a gate is open: a human must choose
	StateStopped   State = "stopped"   // a human stopped it; it can be resumed
	StateVerified  State = "verified"  // review and tests passed on the same head
	StateAccepted  State = "accepted"  // a human took it with its known issues
	StateCancelled State = "cancelled" //
	StateFailed    State = "failed"    //
	StateSkipped   State = "skipped"   // left by the circuit breaker (on_max: skip)
)

// Ended reports whether a run in this state does nothing more by itself. A verified
// or accepted one may be reopened; see Run.Reopenable.
func (s State) Ended() bool {
	switch s {
	case StateVerified, StateAccepted, StateCancelled, StateFailed, StateSkipped:
		return true
	}
	return false
}

// Run is one piece of work: an issue on its way to a verified pull request. It is
// the fold over its events and holds nothing that is not in them.
type Run struct {
	ID      int64     `json:"id"`
	Trace   string    `json:"trace"`
	Seq     int64     `json:"seq"` // of the last event
	State   State     `json:"state"`
	Started time.Time `json:"started"`
	Updated time.Time `json:"updated"`

	Repo   Repo          `json:"repo"`
	Task   Task          `json:"task"`
	By     Actor         `json:"by"`
	Config config.Config `json:"config"`
	Base   string        `json:"base"`   // SHA the work starts from
	Branch string        `json:"branch"` //
	Head   string        `json:"head"`   // SHA of the branch as Forge knows it; Base until the first commit

	Plan       *Plan       `json:"plan,omitempty"`
	Iterations []Iteration `json:"iterations,omitempty"` // the last one is current
	Findings   []Issue     `json:"findings,omitempty"`   // by identity, in order of first sight
	Failures   []Issue     `json:"failures,omitempty"`   // by identity, in order of first sight
	Bounces    []Bounce    `json:"bounces,omitempty"`    // in order (B8)
	Gates      []Gate      `json:"gates,omitempty"`      // in order; at most the last one is open
	Notes      []string    `json:"notes,omitempty"`      // words of humans for the next attempt, in order
	Former     []Plan      `json:"former,omitempty"`     // plans that were replaced, in order
	Asked      []Finding   `json:"asked,omitempty"`      // what humans want changed and nobody has been given to do yet
	Await      *Await      `json:"await,omitempty"`      // what the active phase waits for outside of Forge
	Fault      *Fault      `json:"fault,omitempty"`      // the last one, until something succeeds
	Ended      string      `json:"ended,omitempty"`      // why the run ended, for people
	Waivers    []Waiver    `json:"waivers,omitempty"`    // what people let pass that Forge could not verify, in order

	Reopened     []string          `json:"reopened,omitempty"`     // why it went on each time after it had been verified or accepted (T9)
	Closed       string            `json:"closed,omitempty"`       // why nothing reopens it any more: its pull request was merged or closed, or its issue
	Edited       bool              `json:"edited,omitempty"`       // the task was changed by somebody who may: plan again
	Passed       map[string]string `json:"passed,omitempty"`       // files that a human let pass unread: the SHA at which they did
	Known        map[string]string `json:"known,omitempty"`        // tests that failed before the work: the login of who called them known in this run
	KnownAs      map[string]string `json:"known_as,omitempty"`     // by the same names, the ErrorKey of what they were shown; "" in older runs
	Cleared      map[string]string `json:"cleared,omitempty"`      // what looks like a secret and is none, by the name that its fault gave it: the login of who said so
	Fix          []string          `json:"fix,omitempty"`          // tests that failed before the work, and that a human wants fixed by it
	Untested     bool              `json:"untested,omitempty"`     // a human wants it planned although no test runs at the base
	Last         *execution        `json:"last,omitempty"`         // of a phase, the last one, until it has a result; nil in older runs
	Instructions []string          `json:"instructions,omitempty"` // of the repository, by path, that agents were given

	Baseline      *TestReport         `json:"baseline,omitempty"`  // the tests at Base, before anything changed
	Approved      bool                `json:"approved,omitempty"`  // a human answered the plan's question
	ApprovedStep  string              `json:"allowed,omitempty"`   // in manual mode, the step that a human let begin; "*" is every one (R7)
	BaseHead      string              `json:"base_head,omitempty"` // where the base branch has gone, until that is taken in
	BranchDeleted bool                `json:"gone,omitempty"`      // somebody deleted the branch
	Replan        bool                `json:"simpler,omitempty"`   // a human simplified what is wanted: plan again
	PlanIteration int                 `json:"planned,omitempty"`   // the iteration whose feedback the plan has taken in
	Stopped       time.Time           `json:"stopped,omitzero"`    // when a human stopped it, while it is stopped
	StoppedBy     Actor               `json:"stopped_by,omitzero"`
	Attempts      map[string]int      `json:"attempts,omitempty"` // executions by "ITERATION/PHASE"
	Active        *PhaseRef           `json:"active,omitempty"`   // the phase that was entered and has no result yet
	Steps         map[Phase]int       `json:"steps,omitempty"`    // agents' turns by phase (I3)
	Tools         map[string]ToolStat `json:"tools,omitempty"`    // by tool (I3)
	Usage         Usage               `json:"usage"`              // in all
	Spent         map[Phase]Usage     `json:"spent,omitempty"`    // by phase
	Millis        map[Phase]int64     `json:"millis,omitempty"`   // working time by phase
	Published     Publication         `json:"published"`          // what GitHub shows
	Rev           int64               `json:"rev"`                // Seq of the last event that people should see on GitHub
	Counters      Counters            `json:"counters"`           // what the guards look at
}

// Counters are what the guards look at.
type Counters struct {
	Granted       int   `json:"granted,omitempty"`         // iterations that humans granted in all: each brings its share of the budget
	GrantedUntil  int   `json:"until,omitempty"`           // the iteration up to which a human let the loop go on
	ResetAt       int   `json:"from,omitempty"`            // the iteration after which the guards count, since a reset
	Raised        int64 `json:"raised,omitempty"`          // micro-dollars that humans added to the budget
	Updates       int   `json:"updates,omitempty"`         // times the base branch was taken in
	ReviewBounces int   `json:"review_bounces,omitempty"`  // since the last grant
	TestBounces   int   `json:"test_bounces,omitempty"`    //
	ReviewInARow  int   `json:"review_in_a_row,omitempty"` // reviews that sent the work back, since the last pass (T3)
	TestInARow    int   `json:"test_in_a_row,omitempty"`   //
	Faults        int   `json:"faults,omitempty"`          // in a row
	PublishFaults int   `json:"publish_faults,omitempty"`  // in a row
	Moved         int   `json:"moved,omitempty"`           // times the branch moved under the run
	EmptyRounds   int   `json:"stale,omitempty"`           // rounds in a row without a commit
	DoubtsAckedAt int   `json:"heard,omitempty"`           // the iteration up to which a human has answered to doubts; see signs
	Cost          int64 `json:"cost,omitempty"`            // micro-dollars spent before it was reopened: its budget is a fresh one
	Tokens        int64 `json:"tokens,omitempty"`          // likewise
	Millis        int64 `json:"ms,omitempty"`              // likewise, of working time
}

// execution is one execution of a phase that has no result yet.
type execution struct {
	Phase PhaseRef `json:"phase"`
	Head  string   `json:"head"`            // of the run, when it began
	Fault *Fault   `json:"fault,omitempty"` // how it ended, when it broke down
	Why   string   `json:"why,omitempty"`   // why the attempt before it failed, where that was the agent's doing
}

// ToolStat sums up an agent's use of a tool (I3).
type ToolStat struct {
	Calls  int   `json:"calls"`
	OK     int   `json:"ok"`
	Millis int64 `json:"ms"`
}

// Iteration is one round of implement → review → test (T1).
type Iteration struct {
	Number  int             `json:"number"` // from 1
	Mode    Mode            `json:"mode"`
	Started time.Time       `json:"started"`
	Ended   time.Time       `json:"ended,omitzero"`
	Impl    *Implementation `json:"implementation,omitempty"`
	Review  *Review         `json:"review,omitempty"`
	Tests   *TestReport     `json:"tests,omitempty"`
	Result  string          `json:"result"` // in_progress, passed, failed (R5)
	Brief   string          `json:"brief"`  // the feedback in one line: "1 critical, 2 errors" (R5)
	Usage   Usage           `json:"usage"`
	Forced  bool            `json:"forced,omitempty"` // a human decided to go on although a guard that judges this iteration's result said no

	Disputed bool    `json:"disputed,omitempty"` // nothing was changed, because all that was open is disputed: it is for the reviewer
	Update   *Update `json:"update,omitempty"`   // of the base branch, the last one in this iteration
}

// Issue is a finding or a failure followed across iterations.
type Issue struct {
	Finding *Finding `json:"finding,omitempty"`  // as last seen
	Failure *Failure `json:"failure,omitempty"`  // as last seen
	Phase   Phase    `json:"phase"`              // review, or test: who saw it
	State   string   `json:"state"`              // open, fixed, withdrawn (by the reviewer), dismissed, accepted (by a human); Status says more
	Back    int      `json:"back,omitempty"`     // times it was fixed and came back
	First   int      `json:"first"`              // iteration in which it was first seen
	Last    int      `json:"last"`               // iteration in which it was last seen
	Times   int      `json:"times"`              // iterations in which it was seen, since a grant
	FixedIn string   `json:"fixed_in,omitempty"` // SHA of the commit after which it was gone

	Seen     string `json:"seen,omitempty"`     // SHA at which it was last listed: its lines are those of that commit; "" in older runs
	Ruling   string `json:"ruling,omitempty"`   // why the reviewer says what it says of it, the last time
	Disputed string `json:"disputed,omitempty"` // why the implementer holds it for mistaken, until the reviewer has ruled
	Upheld   int    `json:"upheld,omitempty"`   // times the reviewer upheld it against a dispute
	By       Actor  `json:"by,omitzero"`        // of a dismissal: who, as far as it is known
}

// Fingerprint returns the identity of the finding or failure.
func (i *Issue) Fingerprint() string {
	if i.Finding != nil {
		return i.Finding.Fingerprint
	}
	return i.Failure.Fingerprint
}

// Bounce is work sent back from review or test to implement (B8).
type Bounce struct {
	Number    int       `json:"number"`           // within its phase, from 1
	Phase     Phase     `json:"phase"`            // the one that sent it back
	Target    Target    `json:"target,omitempty"` // where to; "" is implement
	Iteration int       `json:"iteration"`
	Count     int       `json:"count"`  // blocking findings, or failures
	Weight    int       `json:"weight"` // the same, weighed by severity
	Issues    []string  `json:"issues"` // their fingerprints
	At        time.Time `json:"at"`
	Resolved  bool      `json:"resolved"` // whether all that it was for was gone in the next iteration
}

// Gate returns the open gate, or nil.
func (r *Run) Gate() *Gate {
	if n := len(r.Gates); n > 0 && !r.Gates[n-1].Closed {
		return &r.Gates[n-1]
	}
	return nil
}

// Current returns the current iteration, or nil before the first.
func (r *Run) Current() *Iteration {
	if n := len(r.Iterations); n > 0 {
		return &r.Iterations[n-1]
	}
	return nil
}

// MaxIterations is the limit on iterations, or the one that a human set beyond it.
func (r *Run) MaxIterations() int {
	return max(r.Config.Loop.MaxIterations+r.Counters.ResetAt, r.Counters.GrantedUntil)
}

// CostLimit is the run's budget in micro-dollars: each iteration that a human
// granted brings its share of the original one, and what they raised it by.
func (r *Run) CostLimit() int64 {
	return r.share(int64(r.Config.Limits.CostUSD*1e6)) + r.Counters.Raised + r.Counters.Cost
}

// TokenLimit is the run's cap on tokens, with the shares that humans granted. A
// raised budget raises it in the same proportion.
func (r *Run) TokenLimit() int64 {
	limit := r.share(r.Config.Limits.Tokens)
	if usd := r.Config.Limits.CostUSD; usd > 0 {
		limit += int64(float64(r.Config.Limits.Tokens) * float64(r.Counters.Raised) / (usd * 1e6))
	}
	return carried(limit, r.Counters.Tokens)
}

// WallLimit is the limit on working time in milliseconds, likewise; 0 is none.
func (r *Run) WallLimit() int64 {
	return carried(r.share(r.Config.Limits.Wall().Milliseconds()), r.Counters.Millis)
}

// carried is a limit on top of what was used before the run was reopened; 0 stays none.
func carried(limit, before int64) int64 {
	if limit == 0 {
		return 0
	}
	return limit + before
}

func (r *Run) share(limit int64) int64 {
	return limit + limit*int64(r.Counters.Granted)/int64(max(1, r.Config.Loop.MaxIterations))
}

// Worked is the run's working time in milliseconds; waiting for humans is not in it.
func (r *Run) Worked() int64 {
	var sum int64
	for _, ms := range r.Millis {
		sum += ms
	}
	return sum
}

// Key names the execution of a phase: "run/7/iter/2/review", with "/attempt/3"
// when a fault made it be repeated.
func (r *Run) Key(p PhaseRef) string {
	key := fmt.Sprintf("run/%d/iter/%d/%s", r.ID, p.Iteration, p.Phase)
	if p.Attempt > 1 {
		key += fmt.Sprintf("/attempt/%d", p.Attempt)
	}
	return key
}

// next is the execution that follows on x, nil when there was none. Why the attempt
// before it failed is for whoever tries again.
func (x *execution) next(ref PhaseRef, head string) *execution {
	out := &execution{Phase: ref, Head: head}
	if x != nil && x.Phase.Phase == ref.Phase && x.Phase.Iteration == ref.Iteration {
		if out.Why = x.Why; x.Fault != nil && x.Fault.Class == FaultAgent {
			out.Why = x.Fault.Message
		}
	}
	return out
}

func (x *execution) failed(f *Fault) *execution {
	if x == nil {
		return nil
	}
	out := *x
	out.Fault = f
	return &out
}

// resumable reports whether the phase that is about to begin is the one that was cut
// off from outside, at the same head: the model answers what it was asked before.
func (x *execution) resumable(p PhaseRef, head string) bool {
	return x != nil && x.Phase.Phase == p.Phase && x.Phase.Iteration == p.Iteration && x.Head == head &&
		(x.Fault == nil || x.Fault.Class == FaultBudget || x.Fault.Class == FaultProvider || x.Fault.Class == FaultSecret)
}

// LastFault says why the attempt before the active one failed, where that was the
// agent's own doing: stagnation, the limit on steps, a protected path, a breakdown.
// It is empty when there was none, or when it broke down for other reasons.
func (r *Run) LastFault() string {
	if x := r.Last; x != nil && r.active(&x.Phase) {
		return x.Why
	}
	return ""
}
