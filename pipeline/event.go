package pipeline

import (
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

// EventType names what happened. Names are stable: they are stored.
type EventType string

// The types of events. Those of the feedback loops carry the names that the
// field uses for them (M4).
const (
	EventRunStarted   EventType = "run.started"   // Data.Start
	EventRunStopped   EventType = "run.stopped"   // Data.Answer: who, and their words
	EventRunResumed   EventType = "run.resumed"   // Data.Answer
	EventRunVerified  EventType = "run.verified"  // IMPLEMENTATION_VERIFIED
	EventRunAccepted  EventType = "run.accepted"  // a human took it with its known issues
	EventRunCancelled EventType = "run.cancelled" // Data.Answer, or Data.Note
	EventRunFailed    EventType = "run.failed"    // Data.Guard
	EventRunSkipped   EventType = "run.skipped"   // Data.Guard; circuit breaker with on_max: skip
	EventRunReset     EventType = "run.reset"     // Data.Answer: what the guards count begins again (R9)
	EventRunReopened  EventType = "run.reopened"  // Data.Note: why, Data.Actor, Data.Head where it moved, Data.Answer to a command: a verified or accepted run goes on (T9)
	EventRunClosed    EventType = "run.closed"    // Data.Note: merged, closed, or the issue was; nothing reopens the run after it. Without a note: opened again

	EventPhaseEntered   EventType = "phase.entered"   // Data.Phase; Data.Head: of the run
	EventPhaseCompleted EventType = "phase.completed" // Data.Phase and the phase's result
	EventPhaseApproved  EventType = "phase.approved"  // Data.Phase: the review found nothing that blocks
	EventPhasePassed    EventType = "phase.passed"    // Data.Phase: the tests passed
	EventPhaseFailed    EventType = "phase.failed"    // Data.Phase, Data.Fault: no result, no attempt counted
	EventPhaseTested    EventType = "phase.tested"    // Data.Phase, Data.Tests: what the tests showed, before a model is asked about it
	EventPhaseWaiting   EventType = "phase.waiting"   // Data.Phase, Data.Await: its result depends on a machine elsewhere
	EventPhaseWoken     EventType = "phase.woken"     // Data.Note: look again at what the phase waits for

	EventAgentIteration EventType = "agent.iteration"  // Data.Step
	EventToolExecuted   EventType = "tool.executed"    // Data.Tool
	EventFinding        EventType = "finding.detected" // Data.Finding

	EventBounce      EventType = "loop.phase_bounce"        // Data.Bounce
	EventDiminishing EventType = "loop.diminishing_returns" // Data.Guard
	EventGuardFired  EventType = "loop.guard_fired"         // Data.Guard; every other guard

	// Of a run whose plan is split into modules: Data.Part.
	EventModuleStarted EventType = "module.started"  // a run was begun for it
	EventModuleChanged EventType = "module.changed"  // how that run stands
	EventModuleTold    EventType = "module.told"     // that run was told what is wanted of it
	EventModuleLeft    EventType = "module.left_out" // it is left out of the feature; Part.How: what becomes of it

	EventModuleRefused EventType = "module.refused" // of a module's run: it does not get the contract that it wants; Data.Note: why
	EventModuleOver    EventType = "module.over"    // of the run of a module: the run that planned it has ended, and its branch is not needed any more

	// Of a feedback between agents: Data.Upstream, by its ID. Its owner begins with
	// phase.entered of the phase resolve, and has answered when that is completed.
	EventUpstreamRaised   EventType = "upstream.raised"
	EventUpstreamNotified EventType = "upstream.notified" // people can see it
	EventUpstreamTimedOut EventType = "upstream.timed_out"
	EventUpstreamFailed   EventType = "upstream.failed"   // its owner broke down; Why
	EventUpstreamResolved EventType = "upstream.resolved" // Decision
	EventUpstreamRejected EventType = "upstream.rejected" // no agent may decide it; Why

	EventGateRequested EventType = "gate.requested"      // Data.Gate
	EventGateReminded  EventType = "gate.reminded"       // Data.Note: nobody has answered yet
	EventGateAnswered  EventType = "gate.answered"       // Data.Answer; Data.Config: the settings, read again
	EventGateOverride  EventType = "gate.human_override" // Data.Answer: a human decided against Forge's verdict

	EventPublishStarted   EventType = "publish.started"   // Data.Publication.Rev
	EventPublishCompleted EventType = "publish.completed" // Data.Publication
	EventPublishFailed    EventType = "publish.failed"    // Data.Fault
	EventPublishDue       EventType = "publish.due"       // what was left out of the last publication is to be tried again

	EventBranchMoved   EventType = "branch.moved"             // Data.Head, Data.Actor: someone else pushed, unless Data.Lost says otherwise
	EventBranchDeleted EventType = "branch.deleted"           // Data.Actor
	EventBaseMoved     EventType = "base.moved"               // Data.Head: the branch that the work is for has gone on; Data.Mergeable when the run had ended
	EventBaseRenamed   EventType = "base.renamed"             // Data.Note: the name that the branch that the work is for has by now, Data.Head: where it is
	EventRetargeted    EventType = "pull.retargeted"          // Data.Note: the branch that the pull request goes into now, "" for the run's own; Data.Actor
	EventChangesAsked  EventType = "review.changes_requested" // Data.Review: a human's findings; Data.Actor
	EventChangesEdited EventType = "review.changes_edited"    // Data.Review: what of a human's findings has other words now, without a message what is taken back; Data.Actor
	EventIssueEdited   EventType = "issue.edited"             // Data.Task; Data.Actor, who may change it: what is wanted has changed

	EventRepositoryRenamed EventType = "repository.renamed" // Data.Repo: what it is called now, and its installation

	// What people do with what Forge said (H1–H7). Data.Signal; they may come after the run's end.
	EventDismissed    EventType = "feedback.finding_dismissed" // Data.Actor, too: who, "ghost" where GitHub does not say
	EventFixedByHuman EventType = "feedback.finding_mended"    // by a person, in their own way
	EventFixApplied   EventType = "feedback.fix_applied"
	EventFixRewritten EventType = "feedback.fix_rewritten"
	EventFixIgnored   EventType = "feedback.fix_ignored"
	EventHumanEdited  EventType = "feedback.human_edited"
	EventCommentAdded EventType = "feedback.human_comment_added"
	EventPullReviewed EventType = "feedback.pull_reviewed"    // approved, or changes requested
	EventPullClosed   EventType = "feedback.pull_closed"      // merged, closed unmerged, reverted
	EventAnswered     EventType = "feedback.finding_answered" // in words that say nothing plainly
	EventAnswerRead   EventType = "feedback.answer_read"      // by a model
	EventRefused      EventType = "feedback.finding_refused"  // as a model read it: nothing in the run follows from it
	EventEscaped      EventType = "feedback.defect_escaped"

	EventRollout EventType = "production.watched" // Data.Rollout: how a deployment of the work fares

	// Shipping of the run's work. Data.Ship.
	EventShipAsked    EventType = "ship.asked"    // people are asked before the next step
	EventShipMerged   EventType = "ship.merged"   // its pull request is merged
	EventShipDeployed EventType = "ship.deployed" // it has arrived in an environment
	EventShipFinished EventType = "ship.finished" // it is through, or was stopped

	// What that does to what Forge remembers.
	EventLess       EventType = "feedback.confidence_decreased" // Data.Evidence
	EventMore       EventType = "feedback.confidence_increased" // Data.Evidence
	EventRecalled   EventType = "memory.recalled"               // Data.Recall: given and withheld
	EventUsed       EventType = "memory.used"                   // Data.Recall: used
	EventRemembered EventType = "memory.remembered"             // Data.Actor told Forge Data.Learning, or bore it out
	EventForgotten  EventType = "memory.forgotten"              // Data.Actor took Data.Learning out of use; Data.Note: why
	EventReflection EventType = "reflection.completed"          // Data.Reflection
)

// Known reports whether the type is one of those above.
func (t EventType) Known() bool { return known[t] }

var known = map[EventType]bool{
	EventRunStarted: true, EventRunStopped: true, EventRunResumed: true, EventRunVerified: true, EventRunAccepted: true,
	EventRunCancelled: true, EventRunFailed: true, EventRunSkipped: true, EventRunReset: true, EventRunReopened: true,
	EventRunClosed: true, EventPhaseEntered: true, EventPhaseCompleted: true, EventPhaseApproved: true, EventPhasePassed: true,
	EventPhaseFailed: true, EventPhaseTested: true, EventPhaseWaiting: true, EventPhaseWoken: true, EventAgentIteration: true,
	EventToolExecuted: true, EventFinding: true, EventBounce: true, EventDiminishing: true, EventGuardFired: true,
	EventModuleStarted: true, EventModuleChanged: true, EventModuleTold: true, EventModuleLeft: true, EventModuleRefused: true,
	EventModuleOver: true, EventUpstreamRaised: true, EventUpstreamNotified: true, EventUpstreamTimedOut: true, EventUpstreamFailed: true,
	EventUpstreamResolved: true, EventUpstreamRejected: true, EventGateRequested: true, EventGateReminded: true, EventGateAnswered: true,
	EventGateOverride: true, EventPublishStarted: true, EventPublishCompleted: true, EventPublishFailed: true, EventPublishDue: true,
	EventBranchMoved: true, EventBranchDeleted: true, EventBaseMoved: true, EventBaseRenamed: true, EventRetargeted: true, EventChangesAsked: true,
	EventChangesEdited: true, EventIssueEdited: true, EventRepositoryRenamed: true, EventDismissed: true, EventFixedByHuman: true, EventFixApplied: true, EventFixRewritten: true,
	EventFixIgnored: true, EventHumanEdited: true, EventCommentAdded: true, EventPullReviewed: true, EventPullClosed: true,
	EventAnswered: true, EventAnswerRead: true, EventRefused: true, EventEscaped: true, EventRollout: true, EventShipAsked: true,
	EventShipMerged: true, EventShipDeployed: true, EventShipFinished: true, EventLess: true, EventMore: true, EventRecalled: true,
	EventUsed: true, EventRemembered: true, EventForgotten: true, EventReflection: true,
}

// Event is one thing that happened to a run. Events are immutable; a run is the
// fold over its events in the order of Seq.
type Event struct {
	ID     string    `json:"id"`     // unique within the run and derived from the cause, so that a repeat is seen as one
	Run    int64     `json:"run"`    // the run's number, from 1
	Seq    int64     `json:"seq"`    // position within the run, from 1, without gaps
	Type   EventType `json:"type"`   //
	Source string    `json:"source"` // "forge", "agent:reviewer", "github", "human:LOGIN", "cli:USER"
	Trace  string    `json:"trace"`  // the run's trace id, 32 hex digits
	Time   time.Time `json:"time"`   // UTC, microseconds
	Data   Data      `json:"data"`
}

// Data is what an event carries. Which fields are set follows from the event's
// type; see the constants.
type Data struct {
	Start          *Start             `json:"start,omitempty"`
	Repo           *Repo              `json:"repo,omitempty"`
	Phase          *PhaseRef          `json:"phase,omitempty"`
	Plan           *Plan              `json:"plan,omitempty"`
	Artefacts      []role.Artefact    `json:"artefacts,omitempty"` // what roles have written
	Implementation *Implementation    `json:"implementation,omitempty"`
	Review         *Review            `json:"review,omitempty"`
	Tests          *TestReport        `json:"tests,omitempty"`
	Fault          *Fault             `json:"fault,omitempty"`
	Step           *Step              `json:"step,omitempty"`
	Tool           *ToolUse           `json:"tool,omitempty"`
	Upstream       *upstream.Feedback `json:"upstream,omitempty"`
	Finding        *Finding           `json:"finding,omitempty"`
	Bounce         *Bounce            `json:"bounce,omitempty"`
	Guard          *Guard             `json:"guard,omitempty"`
	Gate           *Gate              `json:"gate,omitempty"`
	Answer         *Answer            `json:"answer,omitempty"`
	Publication    *Publication       `json:"publication,omitempty"`
	Await          *Await             `json:"await,omitempty"`
	Update         *Update            `json:"update,omitempty"`
	Part           *module.Part       `json:"part,omitempty"`
	Mergeable      *mergeable.State   `json:"mergeable,omitempty"`
	Rollout        *rollout.Status    `json:"rollout,omitempty"`
	Ship           *rollout.Step      `json:"ship,omitempty"`
	Task           *Task              `json:"task,omitempty"`
	Actor          *Actor             `json:"actor,omitempty"`
	Signal         *Signal            `json:"signal,omitempty"`
	Evidence       *Evidence          `json:"evidence,omitempty"`
	Recall         *Recall            `json:"recall,omitempty"`
	Reflection     *Reflection        `json:"reflection,omitempty"`
	Config         *config.Config     `json:"config,omitempty"`
	Learning       *Learning          `json:"learning,omitempty"`     // as it was told; its id is 0 when it was new
	Instructions   []string           `json:"instructions,omitempty"` // of a phase that is completed: the repository's own, by path, that its agent was given
	SkillsLeft     []string           `json:"skills_left,omitempty"`  // of a plan: skills of the repository that agents do not get, and why
	Head           string             `json:"head,omitempty"`
	Note           string             `json:"note,omitempty"`
	Apart          bool               `json:"apart,omitempty"` // of a run that goes on: its branch does not merge into the very base that it was made from
	Lost           string             `json:"lost,omitempty"`  // nobody pushed: this commit, which was not pushed, went with the machine that made it
}

// Start is everything a run needs to know at its beginning. The configuration is
// a snapshot: a later change of the repository's settings does not touch the run (R4).
type Start struct {
	Kind   Kind          `json:"kind,omitempty"`
	Repo   Repo          `json:"repo"`
	Task   Task          `json:"task"`
	By     Actor         `json:"by"`
	Config config.Config `json:"config"`
	Base   string        `json:"base"`           // SHA of the default branch when the run started
	Branch string        `json:"branch"`         // the branch that the run works on
	Slug   string        `json:"slug,omitempty"` // what its commands begin with; "": command.Slug
	Part   *module.Of    `json:"part,omitempty"` // of a module: which, and of which run
	Plan   *Plan         `json:"plan,omitempty"` // of a module: what is to be built, planned already

	Baseline *TestReport     `json:"baseline,omitempty"` // the tests at Base, where they ran there already
	Holdout  *record.Holdout `json:"holdout,omitempty"`  // drawn when the run is created; nil: nothing was drawn

	Notes []string `json:"notes,omitempty"` // what people asked for in the issue's run before, which was given up with it

	Track *track.Choice `json:"track,omitempty"` // how much process it gets; nil: the quick one, which nobody asked for
	Fit   *track.Fit    `json:"fit,omitempty"`   // how much of its limits, which Config has by now; nil: all
}

// Repo is a repository as a run knows it.
type Repo struct {
	ID            int64  `json:"id"`                     // GitHub's numeric id; 0 for a local repository
	Owner         string `json:"owner,omitempty"`        //
	Name          string `json:"name"`                   //
	DefaultBranch string `json:"default_branch"`         //
	CloneURL      string `json:"clone_url"`              // https URL without credentials, or a path for a local repository
	Installation  int64  `json:"installation,omitempty"` // the App's installation that may act here
}

// FullName returns "owner/name", or the bare name of a local repository.
func (r Repo) FullName() string {
	if r.Owner == "" {
		return r.Name
	}
	return r.Owner + "/" + r.Name
}

// Scope names what is remembered of a repository: "repo:OWNER/NAME".
func (r Repo) Scope() string {
	if r.ID == 0 && r.Owner == "" { // a folder: two may have the same name
		return record.RepoScope(r.CloneURL)
	}
	return record.RepoScope(r.FullName())
}

// Actor is a person or a bot. Names change, so the numeric id is what counts.
type Actor struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Bot   bool   `json:"bot,omitempty"`
}

// Task is what a run is asked to do.
type Task struct {
	Issue  int    `json:"issue,omitempty"` // the issue's number; 0 for a task in words
	Title  string `json:"title"`
	Body   string `json:"body,omitempty"`
	Author Actor  `json:"author"`
	URL    string `json:"url,omitempty"`
}

// Phase is a station of the loop.
type Phase string

// The phases in their order.
const (
	PhasePlan      Phase = "plan"
	PhaseImplement Phase = "implement"
	PhaseReview    Phase = "review"
	PhaseTest      Phase = "test"
	PhaseUpdate    Phase = "update" // takes the base branch in, when it has moved

	PhaseContract Phase = "contract" // lays down what modules promise each other, before any is begun
	PhaseMerge    Phase = "merge"    // takes a module in, and tests the merge before it becomes the head

	PhaseAnalyse Phase = "analyse" // on the full track: what is wanted is written down
	PhaseDesign  Phase = "design"  // likewise: how it is to be built, and what people see

	PhaseResolve Phase = "resolve" // the owner of what a feedback is about answers it

	PhaseReflect Phase = "reflect" // no station: where the cost of looking back at the run is booked
)

// Mode says what the implementer or the planner is asked for; each has a prompt of
// its own (B7).
type Mode string

// The implementer's modes, and the planner's when the work came back to it (R2).
const (
	ModeFresh       Mode = "fresh"
	ModeFixFindings Mode = "fix_findings"
	ModeFixFailures Mode = "fix_failures"
	ModeResearch    Mode = "research" // what the task means was not understood
	ModeReplan      Mode = "replan"   // the approach does not hold
	ModeConflict    Mode = "conflict" // of an update: what did not merge by itself is merged by hand
	ModeContract    Mode = "contract" // what modules promise each other: interfaces, stubs, tests
	ModeWire        Mode = "wire"     // modules that are merged are wired together
	ModeWithout     Mode = "without"  // the plan is revised without a module that is left out
	ModeLook        Mode = "look"     // of a merge: are the modules that were merged still on the branch
)

// PhaseRef names one execution of a phase.
type PhaseRef struct {
	Phase     Phase  `json:"phase"`
	Iteration int    `json:"iteration"`      // from 1; 0 for the plan
	Attempt   int    `json:"attempt"`        // from 1; grows when a fault repeats the phase
	Mode      Mode   `json:"mode,omitempty"` // the implementer's or planner's
	Part      string `json:"part,omitempty"` // of a merge: the module
	Millis    int64  `json:"ms,omitempty"`   // how long it took, on its completion

	Resumed bool `json:"resumed,omitempty"` // the attempt before was cut off from outside: what that has paid for is played back
}

// Usage is what model calls took. Cost is kept in whole micro-dollars so that
// sums are exact and replay gives the same bytes.
type Usage struct {
	Calls       int   `json:"calls"`
	Input       int64 `json:"input"`                  // tokens, cached ones included
	CachedInput int64 `json:"cached_input,omitempty"` // tokens read from the provider's prompt cache
	CacheWrite  int64 `json:"cache_write,omitempty"`  // tokens written to it
	Output      int64 `json:"output"`                 //
	Reasoning   int64 `json:"reasoning,omitempty"`    // tokens of the output that were reasoned, where the provider counts them
	MicroUSD    int64 `json:"micro_usd"`              //
	Unpriced    int64 `json:"unpriced,omitempty"`     // tokens of models without a price: what they cost is not in MicroUSD
}

// Add adds v to u.
func (u *Usage) Add(v Usage) {
	u.Calls += v.Calls
	u.Input += v.Input
	u.CachedInput += v.CachedInput
	u.CacheWrite += v.CacheWrite
	u.Output += v.Output
	u.Reasoning += v.Reasoning
	u.MicroUSD += v.MicroUSD
	u.Unpriced += v.Unpriced
}

// Step is one turn of an agent: look, decide, act (I1).
type Step struct {
	Phase     Phase  `json:"phase"`
	Iteration int    `json:"iteration"`
	Number    int    `json:"number"` // within the phase, from 1
	Model     string `json:"model,omitempty"`
	Usage     Usage  `json:"usage"`
	Millis    int64  `json:"ms"`
	Call      int64  `json:"call_ms,omitempty"` // of that, the model's answer to the turn itself
	Progress  bool   `json:"progress"`          // whether the step changed a file or brought new information (I4)
	Advice    string `json:"advice,omitempty"`  // what the reflection inside the loop said, when stagnation triggered one

	Adapted []string `json:"adapted,omitempty"` // Adaptations that the model's answer needed
}

// The adaptations: what had to be done so that a model's answer could be read or had.
const (
	AdaptedThought   = "reasoning in the text"
	AdaptedCalls     = "calls in the text"
	AdaptedName      = "a tool's name"
	AdaptedEstimated = "tokens are estimated"
	AdaptedCut       = "prompt cut by its server"
	AdaptedRequest   = "another form of request"
)

// Adaptations lists them.
func Adaptations() []string {
	return []string{AdaptedThought, AdaptedCalls, AdaptedName, AdaptedEstimated, AdaptedCut, AdaptedRequest}
}

// ToolUse is one call of a tool by an agent, without its output: that is in the
// tape. Digest identifies the output.
type ToolUse struct {
	Phase     Phase  `json:"phase"`
	Iteration int    `json:"iteration"`
	Step      int    `json:"step"`
	Tool      string `json:"tool"`
	Subject   string `json:"subject,omitempty"` // the path or command, shortened
	OK        bool   `json:"ok"`
	Error     string `json:"error,omitempty"`
	Millis    int64  `json:"ms"`
	Bytes     int    `json:"bytes"`               // of output
	Tokens    int64  `json:"tokens,omitempty"`    // of output, as estimated
	MicroUSD  int64  `json:"micro_usd,omitempty"` // what the model's provider takes to read it once
	Digest    string `json:"digest,omitempty"`
}

// FaultClass says whose fault a fault is. A fault is never an attempt at the task
// (R6): each class has its own limit.
type FaultClass string

// The classes of faults.
const (
	FaultAgent       FaultClass = "agent"       // the model answered nonsense, refused, or stagnated
	FaultProvider    FaultClass = "provider"    // the model could not be reached, or said no
	FaultEnvironment FaultClass = "environment" // a missing tool, a full disk
	FaultSandbox     FaultClass = "sandbox"     // no sandbox to run the repository's code in
	FaultGitHub      FaultClass = "github"      // GitHub refused or could not be reached
	FaultBudget      FaultClass = "budget"      // a cap on cost or tokens was reached
	FaultSecret      FaultClass = "secret"      // what would leave holds what looks like a secret
	FaultCrash       FaultClass = "crash"       // the server ended by itself meanwhile; final at the second time in a row
)

// Fault is why a phase or a publication ended without a result.
type Fault struct {
	Class   FaultClass `json:"class"`
	Message string     `json:"message"`           // for people: what, where, how to mend it
	Final   bool       `json:"final,omitempty"`   // trying again cannot help
	RetryAt time.Time  `json:"retry_at,omitzero"` // of a provider: trying before then is no use
	About   []string   `json:"about,omitempty"`   // of what looks like a secret: names by which a human can let it pass; empty where nobody can

	// Of a provider: what people on GitHub are told, and what the operator is when that
	// is less than all. Addresses and settings of the server are the operator's.
	Public   string `json:"-"`
	Operator string `json:"operator,omitempty"`
	Service  string `json:"-"` // what a wait is for: "openai", or "openai/MODEL" where the model alone is refused
}

// Shown returns the fault as a run keeps it: on GitHub, where anybody may read it, with
// the words that are meant for that. Who runs Forge on a repository of their own is its
// operator.
func (f *Fault) Shown(r *Run) *Fault {
	if f.Public == "" || r.Repo.ID == 0 {
		return f
	}
	out := *f
	out.Message, out.Operator, out.Public = f.Public, f.Message, ""
	return &out
}

// Error makes a fault an error, so that executors can return one.
func (f *Fault) Error() string { return string(f.Class) + ": " + f.Message }

// Publication is what GitHub shows of a run: what was made for which revision.
type Publication struct {
	Rev       int64               `json:"rev"` // the run's revision that is shown
	Head      string              `json:"head,omitempty"`
	Pull      *PullRef            `json:"pull,omitempty"`
	Artefacts map[string]Artefact `json:"artefacts,omitempty"` // by key; only what changed, when in an event
	Deleted   bool                `json:"deleted,omitempty"`   // the branch was, which is not needed any more
	Calls     int                 `json:"calls,omitempty"`     // GitHub calls that it took

	Late  string    `json:"late,omitempty"`  // why the documents could not be written, which stops nothing else
	Tries int       `json:"tries,omitempty"` // of them, or of what was refused, in a row
	Next  time.Time `json:"next,omitzero"`   // when that is tried again; zero: with what is published next
}

// PullRef names a pull request.
type PullRef struct {
	Number int    `json:"number"`
	Node   string `json:"node"`
	URL    string `json:"url"`
	Ready  bool   `json:"ready,omitempty"` // it has left draft
}

// Artefact is one thing made on GitHub for a run: a comment, a check run, a
// review thread. Hash is that of the content last written there.
type Artefact struct {
	ID   int64  `json:"id,omitempty"`
	Node string `json:"node,omitempty"`
	Hash string `json:"hash"`
	URL  string `json:"url,omitempty"`
}

// Await is what a phase waits for outside of Forge: the repository's own checks, or a service that is away.
type Await struct {
	What  string      `json:"what"`            // for people: "the checks build and lint"
	Since time.Time   `json:"since"`           //
	Next  time.Time   `json:"next"`            // when to look again, if nothing is heard before
	Until time.Time   `json:"until"`           // the time limit
	Looks int         `json:"looks"`           // how often it was looked at
	Tests *TestReport `json:"tests,omitempty"` // what the phase has found out already
	Woken bool        `json:"woken,omitempty"` // there is news: look again now
	Model bool        `json:"model,omitempty"` // it is a model's provider that is waited for, and not checks

	GitHub bool `json:"github,omitempty"` // it is GitHub, which is called too often
	Asked  bool `json:"asked,omitempty"`  // a person wants it tried now, whatever the service asked for

	// Of a model's provider.
	Service string    `json:"service,omitempty"` // as its fault says
	Refused time.Time `json:"refused,omitzero"`  // when it last refused this run
	Back    time.Time `json:"back,omitzero"`     // when a call began that it has answered since, for whichever run
}

// Away reports whether a service is waited for, and not checks.
func (a *Await) Away() bool { return a.Model || a.GitHub }

// Update is how taking in the base branch went.
type Update struct {
	Base      string       `json:"base"`                // SHA of the base branch that was taken in
	Parent    string       `json:"parent"`              // SHA of the branch before
	Head      string       `json:"head"`                // SHA of the merge; equal to Parent when there was nothing to take in
	Conflicts []string     `json:"conflicts,omitempty"` // paths that did not merge by themselves; then there is no merge
	Markers   string       `json:"markers,omitempty"`   // with conflicts: the merge's tree, with markers where they are
	Resolved  string       `json:"resolved,omitempty"`  // how the implementer merged what did not merge by itself
	Met       []module.Met `json:"met,omitempty"`       // then: the commits of people that it was in conflict with
	Gone      []string     `json:"gone,omitempty"`      // of a look: merged modules that are not on the branch any more
	Reverted  []string     `json:"reverted,omitempty"`  // of a look: merged modules whose files are as they were before the work
	Unable    string       `json:"unable,omitempty"`    // with conflicts: why it could not, and what a human must say
}
