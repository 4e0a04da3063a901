package pipeline

import (
	"fmt"
	"time"

	"forge/pipeline/config"
	"forge/pipeline/mergeable"
	"forge/pipeline/module"
	"forge/pipeline/record"
	"forge/pipeline/role"
	"forge/pipeline/rollout"
	"forge/pipeline/track"
	"forge/pipeline/upstream"
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

// The kinds of runs.
const (
	KindIssue  Kind = ""       // from an issue, or from words, to a verified pull request
	KindModule Kind = "module" // a module of such a run, to a verified branch that the run merges
)

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

	Holdout *record.Holdout `json:"holdout,omitempty"` // whether it works without what was learnt; nil: it does not
	Track   *track.Choice   `json:"track,omitempty"`   // how much process it gets, and why; nil: the quick one
	Fit     *track.Fit      `json:"fit,omitempty"`     // how much of the limits that are set it has; nil: all

	Artefacts []role.Artefact `json:"artefacts,omitempty"` // of the full track: what each role has written, the newest

	// What is planned.
	Given         *Plan       `json:"given,omitempty"` // of a module: the plan that it was begun with
	Plan          *Plan       `json:"plan,omitempty"`
	PastPlans     []Plan      `json:"former,omitempty"`       // plans that were replaced, in order
	Baseline      *TestReport `json:"baseline,omitempty"`     // the tests at Base, before anything changed
	Instructions  []string    `json:"instructions,omitempty"` // of the repository, by path, that agents were given
	Skills        []string    `json:"skills,omitempty"`       // by name, those that agents read
	SkillsLeft    []string    `json:"skills_left,omitempty"`  // of the repository, those that they do not get, and why
	Approved      bool        `json:"approved,omitempty"`     // a human answered the plan's question
	Edited        bool        `json:"edited,omitempty"`       // the task was changed by somebody who may: plan again
	Replan        bool        `json:"simpler,omitempty"`      // a human simplified what is wanted: plan again
	PlanIteration int         `json:"planned,omitempty"`      // the iteration whose feedback the plan has taken in

	// What is built at the same time.
	Part     *module.Of    `json:"part,omitempty"`     // of a run that builds a module: of which run, and which
	Parts    []module.Part `json:"parts,omitempty"`    // the modules of the plan, since they were begun
	Contract string        `json:"contract,omitempty"` // SHA of the commit that holds what the modules promise each other

	How     string   `json:"how,omitempty"`     // of a module's run that was given up, what becomes of it: module.Later, module.Without
	Without []string `json:"without,omitempty"` // modules that are left out, until the plan is revised without them
	Foreign bool     `json:"foreign,omitempty"` // of a module's run: somebody else pushed to its branch
	Over    bool     `json:"over,omitempty"`    // of a module's run: nobody needs its branch any more

	Made           []string    `json:"made,omitempty"`            // SHAs of the contract and of merges, which belong to no iteration
	Tried          *TestReport `json:"tried,omitempty"`           // the tests at the head, where they ran on a contract or a merge: the baseline of modules that begin there
	Refused        string      `json:"refused,omitempty"`         // of a module: why it does not get the contract that it wants
	Insists        int         `json:"insists,omitempty"`         // of a module: times that a person let it have that all the same
	ContractFiles  []string    `json:"contract_files,omitempty"`  // that its commits have touched
	ContractUnable string      `json:"contract_unable,omitempty"` // why it could not be written, and what a human must say

	Upstream []upstream.Feedback `json:"upstream,omitempty"` // between agents, in order; at most the last one is open
	Asked    []upstream.Feedback `json:"asks,omitempty"`     // what agents of modules wait for a decision on, as they last told, one of each module at most

	Loop
	Execution

	// What people have said.
	Gates     []Gate    `json:"gates,omitempty"`  // in order; at most the last one is open
	Notes     []string  `json:"notes,omitempty"`  // words of humans for the next attempt, in order
	Stopped   time.Time `json:"stopped,omitzero"` // when a human stopped it, while it is stopped
	StoppedBy Actor     `json:"stopped_by,omitzero"`
	Halted    bool      `json:"halted,omitempty"` // it is stopped because the run whose module it builds is
	Consent

	Ended     string   `json:"ended,omitempty"`       // why the run ended, for people
	GivenUpBy string   `json:"given_up_by,omitempty"` // of a module that was cancelled: who said so
	Reopened  []string `json:"reopened,omitempty"`    // why it went on each time after it had been verified or accepted (T9)
	Closed    string   `json:"closed,omitempty"`      // why nothing reopens it: its pull request was merged or closed, until that is opened again; its issue, where it has none

	BaseWas       string           `json:"base_was,omitempty"`   // the name that the branch that the work is for had before
	Retargeted    string           `json:"retargeted,omitempty"` // another branch that the pull request goes into by now: nothing was judged for that
	Met           []module.Met     `json:"met,omitempty"`        // commits of people that merges had conflicts with, which an agent resolved
	BaseHead      string           `json:"base_head,omitempty"`  // where the base branch has gone, until that is taken in
	Apart         bool             `json:"apart,omitempty"`      // the branch has no history in common with its base, which is merged in for that
	Mergeable     *mergeable.State `json:"mergeable,omitempty"`  // how what was verified or accepted stands to the base branch by now; nil: as it did then
	Rollouts      []rollout.Status `json:"rollouts,omitempty"`   // where the work runs, and how it fares there
	Deployed      []rollout.Status `json:"deployed,omitempty"`   // all deployments of the work that were watched, as they fared last
	Shipped       []rollout.Step   `json:"shipped,omitempty"`    // the environments that it was shipped to
	Escaped       []string         `json:"escaped,omitempty"`    // the files with which a defect reached production that nobody had seen
	BranchDeleted bool             `json:"gone,omitempty"`       // somebody deleted the branch
	Published     Publication      `json:"published"`            // what GitHub shows
	Rev           int64            `json:"rev"`                  // Seq of the last event that people should see on GitHub
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

// Root is the run as a whole that this one belongs to: itself, or the one whose module it
// builds.
func (r *Run) Root() int64 {
	if r.Part != nil {
		return r.Part.Run
	}
	return r.ID
}

// Key names the execution of a phase: "run/7/iter/2/review", with "/attempt/3"
// when a fault made it be repeated.
func (r *Run) Key(p PhaseRef) string {
	key := fmt.Sprintf("run/%d/iter/%s", r.ID, attemptKey(p))
	if p.Attempt > 1 {
		key += fmt.Sprintf("/attempt/%d", p.Attempt)
	}
	return key
}
