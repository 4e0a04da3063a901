// Package phase carries out the phases of a run: analyse, design, plan, implement, review, test, and
// update, for modules contract and merge, and resolve, which answers an agent. Each
// phase's file says what goes on in it; Executor brings together what they all need. Which
// phase comes next is decided elsewhere (forge/pipeline), and so is what to do about a phase
// that fails (forge/pipeline/work). It stores nothing but the workspaces that it keeps open
// between the phases of a run.
package phase

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/config"
	"forge/pipeline/deps"
	"forge/pipeline/image"
	"forge/pipeline/upstream"
	"forge/pipeline/work"
	"forge/pipeline/workspace"
)

// Identity is whom Forge's commits are by.
type Identity struct {
	Name, Email string
}

// Planner plans what a task asks for.
type Planner interface {
	Plan(ctx context.Context, job agent.Job) (pipeline.Plan, pipeline.Usage, error)
	// Resolve answers what another agent says about the plan.
	Resolve(ctx context.Context, job agent.Job) (upstream.Reply, pipeline.Usage, error)
}

// Implementer edits the workspace of the job as the plan, or what sent the work back, asks.
type Implementer interface {
	Implement(ctx context.Context, job agent.Job) (pipeline.Implementation, pipeline.Usage, error)
}

// Reviewer reads a whole change and finds what is wrong with it.
type Reviewer interface {
	Review(ctx context.Context, job agent.Job) (pipeline.Review, pipeline.Usage, error)
}

// Tester says why tests fail, and why tests had to change.
type Tester interface {
	Analyse(ctx context.Context, job agent.Job) ([]pipeline.Failure, pipeline.Usage, error)
	// JustifyTests returns tests of the base that pass only as the change edited them,
	// each with the reviewer's reason, or without one.
	JustifyTests(ctx context.Context, job agent.Job, list []pipeline.TestChange) ([]pipeline.TestChange, pipeline.Usage, error)
}

// Memory is what earlier runs, and people, taught.
type Memory interface {
	// ReflectNow looks back at the run when something in it asks for that before the
	// next phase begins. It never fails the phase.
	ReflectNow(ctx context.Context, run int64)
	// Recall gives the job what matters for it, and says so in an event before it returns.
	Recall(ctx context.Context, job *agent.Job, role config.Role, emit work.Emit) error
	// Used returns the event that tells which of what was recalled the result refers to.
	Used(ctx context.Context, run *pipeline.Run, ref pipeline.PhaseRef, role config.Role, result pipeline.Data) ([]pipeline.Event, error)
	// Filter moves the findings that people dismiss to the review's list of those held back.
	Filter(ctx context.Context, run *pipeline.Run, review *pipeline.Review)
}

// Options are what an executor brings together. All are needed but CI, Comments, Related and TestTimeout.
type Options struct {
	Planner     Planner
	Drafter     Drafter // for those on the full track
	Implementer Implementer
	Reviewers   []Reviewer // each reads the whole change; their reviews are made one
	Viewer      Viewer     // for those whose settings name lenses
	Tester      Tester
	Memory      Memory

	Spaces   workspace.Workspaces
	Gateway  workspace.Git
	Token    func(ctx context.Context, repo pipeline.Repo) (string, error) // for git; "" where none is needed
	Identity func(ctx context.Context) (Identity, error)
	// Commit returns what takes the place of a commit that was made here; nil: nothing.
	Commit   func(ctx context.Context, run *pipeline.Run, sha string) (string, error)
	Known    func(ctx context.Context, repo pipeline.Repo) (map[string]pipeline.KnownFailure, error) // tests that failed before somebody's work, with who called them known
	Readings Readings                                                                                // of tests and quality gates at bases; nil: none is kept
	CI       *CI                                                                                     // nil without GitHub
	// Comments returns what people with write access said on an issue and its pull request
	// (0: there is none), oldest first; nil without GitHub.
	Comments func(ctx context.Context, repo pipeline.Repo, issue, pull int) ([]agent.Comment, error)

	// Related says in lines how an issue stands to others; nil without GitHub.
	Related func(ctx context.Context, repo pipeline.Repo, issue int) ([]string, error)

	Dependencies Dependencies // without registries, nothing is installed
	// Images returns the image that settings name; nil: none is to be had.
	Images func(ctx context.Context, named string) (image.Image, error)

	Log         *slog.Logger
	Now         func() time.Time
	TestTimeout time.Duration // of one test command, instead of the run's tests.timeout_minutes; 0: that
}

// Executor carries out phases: it brings together the agents, the checks, the
// workspace that holds the repository's files, and the git gateway.
type Executor struct {
	o Options

	mu      sync.Mutex
	open    map[int64]workspace.Workspace             // one per run, kept between its phases
	setup   map[int64]map[string][]string             // what there is to say about the dependencies of commits; as long
	plans   map[int64]map[string]*deps.Plan           // how commits are set up; as long
	fits    map[int64]map[string][]string             // versions that commits ask for and this machine does not have; as long
	tiersAt map[int64]map[string]*pipeline.TestReport // of the tiers' commands, at bases; as long
	images  map[int64]pulled                          // that runs' settings name; as long
	tools   map[string]tooled                         // by the image in which commands see them; "": the server's
	said    map[int64][]agent.Comment                 // on the runs' issues and pull requests, when last read; as long as their workspaces
}

// tooled are the tools that commands see, when they were looked for.
type tooled struct {
	tools map[string]string
	at    time.Time
}

// New returns an executor, which is a work.Executor.
func New(o Options) *Executor {
	return &Executor{
		o: o, open: map[int64]workspace.Workspace{}, said: map[int64][]agent.Comment{}, setup: map[int64]map[string][]string{},
		fits: map[int64]map[string][]string{}, plans: map[int64]map[string]*deps.Plan{}, tiersAt: map[int64]map[string]*pipeline.TestReport{},
		images: map[int64]pulled{}, tools: map[string]tooled{},
	}
}

// Do carries out a phase and returns the events that its result is.
func (x *Executor) Do(ctx context.Context, run *pipeline.Run, act pipeline.Action, emit work.Emit) ([]pipeline.Event, error) {
	begun := x.o.Now()
	ref := *act.Phase
	job := agent.Job{Run: run, Ref: ref, Key: act.Key, Emit: emit}
	var (
		data   pipeline.Data
		events []pipeline.Event
		await  *pipeline.Await
		err    error
	)
	if ref.Phase == pipeline.PhasePlan || ref.Phase == pipeline.PhaseImplement {
		x.o.Memory.ReflectNow(ctx, run.ID)
	}
	switch ref.Phase {
	case pipeline.PhaseAnalyse:
		data, err = x.analyse(ctx, run, job)
	case pipeline.PhaseDesign:
		data, err = x.design(ctx, run, job)
	case pipeline.PhasePlan:
		data, err = x.plan(ctx, run, job)
	case pipeline.PhaseContract:
		data, err = x.contract(ctx, run, job)
	case pipeline.PhaseMerge:
		data, err = x.merge(ctx, run, job)
	case pipeline.PhaseImplement:
		data, err = x.implement(ctx, run, job)
	case pipeline.PhaseReview:
		data, err = x.review(ctx, run, job)
	case pipeline.PhaseTest:
		data, await, err = x.test(ctx, run, job)
	case pipeline.PhaseResolve:
		data, err = x.answer(ctx, run, job)
	case pipeline.PhaseUpdate:
		data, err = x.update(ctx, run, job)
	default:
		err = fmt.Errorf("execute %s: unknown phase", act.Key)
	}
	if err != nil {
		x.Close(run.ID) // whatever broke, the next attempt starts with a fresh workspace
		return nil, err
	}
	ref.Millis = x.o.Now().Sub(begun).Milliseconds()
	data.Phase = &ref
	source := "agent:" + string(ref.Phase)
	if await != nil {
		return []pipeline.Event{{ID: fmt.Sprintf("%s/waiting/%d", act.Key, await.Looks), Type: pipeline.EventPhaseWaiting, Source: source,
			Data: pipeline.Data{Phase: &ref, Await: await}}}, nil
	}
	for i, f := range found(data) {
		events = append(events, pipeline.Event{ID: fmt.Sprintf("%s/finding/%d", act.Key, i+1), Type: pipeline.EventFinding, Source: source, Data: pipeline.Data{Finding: &f}})
	}
	used, err := x.o.Memory.Used(ctx, run, ref, roleOf(ref.Phase), data)
	if err != nil {
		return nil, err
	}
	events = append(events, used...)
	return append(events, pipeline.Event{ID: act.Key + "/completed", Type: pipeline.EventPhaseCompleted, Source: source, Data: data}), nil
}

// found lists the findings that a phase's result holds.
func found(d pipeline.Data) []pipeline.Finding {
	switch {
	case d.Review != nil:
		return d.Review.Findings
	case d.Tests != nil && d.Plan == nil && d.Update == nil && d.Implementation == nil: // else it is a baseline, or of a merge
		return d.Tests.Tampered
	}
	return nil
}

// roleOf is whose learnings a phase recalls.
func roleOf(p pipeline.Phase) config.Role {
	switch p {
	case pipeline.PhasePlan:
		return config.RolePlanner
	case pipeline.PhaseImplement, pipeline.PhaseContract:
		return config.RoleImplementer
	case pipeline.PhaseReview:
		return config.RoleReviewer
	case pipeline.PhaseTest:
		return config.RoleTester
	}
	return ""
}
