package pipeline

import (
	"fmt"
	"time"

	"forge/pipeline/config"
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

// Kind says what a run is about. Its procedure is the order of its phases.
type Kind string

// KindIssue is a run from an issue, or from words, to a verified pull request.
const KindIssue Kind = ""

// Run is one piece of work: an issue on its way to a verified pull request. It is
// the fold over its events and holds nothing that is not in them.
type Run struct {
	ID      int64     `json:"id"`
	Kind    Kind      `json:"kind,omitempty"`
	Trace   string    `json:"trace"`
	Seq     int64     `json:"seq"` // of the last event
	State   State     `json:"state"`
	Started time.Time `json:"started"`
	Updated time.Time `json:"updated"`

	Repo   Repo          `json:"repo"`
	Task   Task          `json:"task"`
	By     Actor         `json:"by"`
	Config config.Config `json:"config"`
	Base   string        `json:"base"`           // SHA the work starts from
	Branch string        `json:"branch"`         //
	Slug   string        `json:"slug,omitempty"` // what its commands begin with; "": command.Slug
	Head   string        `json:"head"`           // SHA of the branch as Forge knows it; Base until the first commit

	// What is planned.
	Plan          *Plan       `json:"plan,omitempty"`
	Former        []Plan      `json:"former,omitempty"`       // plans that were replaced, in order
	Baseline      *TestReport `json:"baseline,omitempty"`     // the tests at Base, before anything changed
	Instructions  []string    `json:"instructions,omitempty"` // of the repository, by path, that agents were given
	Approved      bool        `json:"approved,omitempty"`     // a human answered the plan's question
	Edited        bool        `json:"edited,omitempty"`       // the task was changed by somebody who may: plan again
	Replan        bool        `json:"simpler,omitempty"`      // a human simplified what is wanted: plan again
	PlanIteration int         `json:"planned,omitempty"`      // the iteration whose feedback the plan has taken in

	Loop
	Execution

	// What people have said.
	Gates     []Gate    `json:"gates,omitempty"`  // in order; at most the last one is open
	Notes     []string  `json:"notes,omitempty"`  // words of humans for the next attempt, in order
	Stopped   time.Time `json:"stopped,omitzero"` // when a human stopped it, while it is stopped
	StoppedBy Actor     `json:"stopped_by,omitzero"`
	Consent

	Ended    string   `json:"ended,omitempty"`    // why the run ended, for people
	Reopened []string `json:"reopened,omitempty"` // why it went on each time after it had been verified or accepted (T9)
	Closed   string   `json:"closed,omitempty"`   // why nothing reopens it any more: its pull request was merged or closed, or its issue

	BaseHead      string      `json:"base_head,omitempty"` // where the base branch has gone, until that is taken in
	BranchDeleted bool        `json:"gone,omitempty"`      // somebody deleted the branch
	Published     Publication `json:"published"`           // what GitHub shows
	Rev           int64       `json:"rev"`                 // Seq of the last event that people should see on GitHub
}

// Gate returns the open gate, or nil.
func (r *Run) Gate() *Gate {
	if n := len(r.Gates); n > 0 && !r.Gates[n-1].Closed {
		return &r.Gates[n-1]
	}
	return nil
}

// MaxIterations is the limit on iterations, or the one that a human set beyond it.
func (r *Run) MaxIterations() int {
	return max(r.Config.Loop.MaxIterations+r.Counters.ResetAt, r.Counters.GrantedUntil)
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
