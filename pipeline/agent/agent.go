package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"forge/pipeline"
	"forge/pipeline/agent/change"
	"forge/pipeline/config"
	"forge/pipeline/fair"
	"forge/pipeline/lens"
	"forge/pipeline/workspace"
)

// Job is one phase for an agent.
type Job struct {
	Run       *pipeline.Run
	Ref       pipeline.PhaseRef
	Key       string             // names the phase on the tape and in the events' ids, "run/7/iter/2/review"
	Workspace Workspace          // nil where a role needs none
	Diff      string             // unified patch base..head, for the reviewer and the tester
	Failures  []pipeline.Failure // for Analyse
	Learnings string             // what earlier runs taught, one a line, each with its id; "" for none (L5)

	Tree         []string             // files for a map of the repository
	TreeAt       string               // which state of the repository Tree is of, for people; "": the base
	Instructions []Doc                // how to work in the repository, from the base: see InstructionPaths
	Skills       []Skill              // that agents may read when they need them
	SkillsLeft   []string             // of the repository's, those that they do not get, and why
	Related      []string             // for the planner: how the issue stands to others, a line each
	Comments     []Comment            // on the issue and the pull request, by people with write access, oldest first
	Baseline     *pipeline.TestReport // for the planner: the tests at the base; nil: the run's
	Conflict     *Conflict            // for the implementer that merges by hand
	Meter        *Meter               // of agents that work on the phase at the same time; nil: one alone does

	// Lock brings lock files in line with what the implementer's manifests ask for, and
	// says why that cannot be. Nil: nobody does.
	Lock func(ctx context.Context) (problems []string, err error)
	// Install does so, and lets commands see what was installed of it. Nil: nobody does.
	Install func(ctx context.Context) (told, problems []string, err error)

	// Since returns the patch from an earlier commit of the run to its head, for the
	// reviewer. Nil: what became of a finding is told by its code alone.
	Since func(ctx context.Context, from string) (patch string, err error)

	// Emit takes agent.iteration and tool.executed events, in order and for good.
	// They have ID, Type, Source and Data. A repeated ID is the same event.
	Emit func(context.Context, ...pipeline.Event) error
}

// Files are the paths that the job's change is of.
func (j *Job) Files() []string {
	var out []string
	for _, f := range change.Read(j.Diff).Files {
		out = append(out, f.Path)
	}
	return out
}

// Conflict is a merge of another branch that is to be finished by hand. The workspace
// holds it, with markers where both sides changed the same.
type Conflict struct {
	Branch string   // whose changes are taken in, for people
	Paths  []string // that did not merge by themselves
	Why    []string // git's words
	Theirs string   // unified patch of what that branch has changed since the work began
}

// Workspace is a work tree and the sandbox around it. Paths are relative to the
// tree and slash-separated. Its errors are told to the model, except a
// *pipeline.Fault and the context's error, which end the phase.
type Workspace interface {
	List(ctx context.Context, dir string) ([]string, error) // directories end in "/"
	Read(ctx context.Context, path string) ([]byte, error)
	Search(ctx context.Context, pattern, glob string, max int) ([]string, error) // "path:line: text"
	Write(ctx context.Context, path string, content []byte) error
	Remove(ctx context.Context, path string) error
	Run(ctx context.Context, cmd workspace.Command) (workspace.Result, error)
}

// The roles that a model can be chosen for.
const (
	rolePlanner     = config.RolePlanner
	roleImplementer = config.RoleImplementer
	roleReviewer    = config.RoleReviewer
	roleTester      = config.RoleTester
	roleReflector   = config.RoleReflector
)

// Options configure an Agent. Open and Models[""] are required.
type Options struct {
	Open   func(name string) (Model, error) // opens a model by its name; called once for each name
	Models map[config.Role]string           // role → provider/model; "" for all others; a run's own configuration goes first, but cannot name a tape
	Tape   Tape                             // nil: nothing is kept
	Prices Prices                           // over the built-in ones
	Limits map[string]Limits                // of models, by provider/model
	Budget Budget                           // the money of all runs together; nil: no cap on it
	Log    *slog.Logger                     // nil: none
	Clock  func() time.Time                 // nil: time.Now
	AtOnce int                              // calls of a provider at the same time, fair between runs; 0: any number
}

// Budget holds the money of all runs together.
type Budget interface {
	// Reserve sets aside what the run's next call may cost at most, in micro-dollars.
	// The error is a *pipeline.Fault of class budget when a cap forbids it. release
	// gives it back, once what the call did cost is in the run's events.
	Reserve(ctx context.Context, run *pipeline.Run, micros int64) (release func(), err error)
}

// Agent runs phases. It is safe for concurrent use.
type Agent struct {
	opts   Options
	prices Prices

	mu     sync.Mutex
	pools  map[string]*fair.Pool // by provider
	models map[string]Model
}

// New returns an agent.
func New(o Options) (*Agent, error) {
	if o.Open == nil {
		return nil, errors.New("new agent: Options.Open is missing: give it a function such as Providers.Open")
	}
	builtin, _, err := LoadPrices()
	if err != nil {
		return nil, fmt.Errorf("new agent: %w", err)
	}
	maps.Copy(builtin, o.Prices)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Agent{opts: o, prices: builtin, models: map[string]Model{}, pools: map[string]*fair.Pool{}}, nil
}

// Plan asks the planner for a plan with acceptance criteria, or for a question
// that a human must answer first. The usage is what the phase took, also when
// there is an error; errors are *pipeline.Fault unless the context ended or Emit
// failed. That holds for all methods.
func (a *Agent) Plan(ctx context.Context, j Job) (pipeline.Plan, pipeline.Usage, error) {
	p := a.phase(j, pipeline.PhasePlan)
	defer p.release()
	if model, ok := p.plain(ctx, rolePlanner); ok {
		return p.plainPlan(ctx, model), p.usage, ctx.Err()
	}
	plan, err := p.plan(ctx)
	return plan, p.usage, err
}

// Implement lets the implementer edit the workspace. Summary, Addressed and
// Unable are filled; the caller makes the commit and fills the rest.
func (a *Agent) Implement(ctx context.Context, j Job) (pipeline.Implementation, pipeline.Usage, error) {
	p := a.phase(j, pipeline.PhaseImplement)
	defer p.release()
	if model, ok := p.plain(ctx, roleImplementer); ok {
		impl, err := p.plainImplement(ctx, model)
		return impl, p.usage, err
	}
	impl, err := p.implement(ctx)
	return impl, p.usage, err
}

// Review reads the change in two stages: does it meet the acceptance criteria,
// then is it good. Head is the run's.
func (a *Agent) Review(ctx context.Context, j Job) (pipeline.Review, pipeline.Usage, error) {
	p := a.phase(j, pipeline.PhaseReview)
	defer p.release()
	if model, ok := p.plain(ctx, roleReviewer); ok {
		return p.unreviewed(model), p.usage, ctx.Err()
	}
	review, err := p.review(ctx)
	return review, p.usage, err
}

// View reads the change for one thing alone, beside Review: its events and its tape are
// its own. What was open before is not ruled on.
func (a *Agent) View(ctx context.Context, j Job, l lens.Lens) (pipeline.Review, pipeline.Usage, error) {
	p := a.phase(j, pipeline.PhaseReview)
	p.series = string(l) + "/"
	defer p.release()
	if model, ok := p.plain(ctx, roleReviewer); ok {
		return pipeline.Review{Head: j.Run.Head, Summary: model + " reviews nothing (form: plain)."}, p.usage, ctx.Err()
	}
	review, err := p.view(ctx, l)
	return review, p.usage, err
}

// Analyse returns the job's failures with Cause, Analysis, Confidence and Fix (B4).
func (a *Agent) Analyse(ctx context.Context, j Job) ([]pipeline.Failure, pipeline.Usage, error) {
	p := a.phase(j, pipeline.PhaseTest)
	defer p.release()
	if _, ok := p.plain(ctx, roleTester); ok { // the implementer is shown what they say
		return j.Failures, p.usage, ctx.Err()
	}
	failures, err := p.analyse(ctx)
	return failures, p.usage, err
}

// JustifyTests asks the reviewer about tests of the base that fail on the change as
// they stood at the base. It returns the list with a Reason for each that had to
// change, and an empty one for those that must not. The job has the phase's Diff, and
// a workspace at the head.
func (a *Agent) JustifyTests(ctx context.Context, j Job, list []pipeline.TestChange) ([]pipeline.TestChange, pipeline.Usage, error) {
	p := a.phase(j, pipeline.PhaseTest)
	p.series = "justify/"
	defer p.release()
	if _, ok := p.plain(ctx, roleReviewer); ok { // nobody says that a test had to change
		return list, p.usage, ctx.Err()
	}
	out, err := p.justify(ctx, list)
	return out, p.usage, err
}

// model returns the model for a role and its name.
func (a *Agent) model(run *pipeline.Run, role config.Role) (Model, string, error) {
	name := firstOf(run.Config.Models[role], a.opts.Models[role])
	if slices.Contains([]config.Role{config.RoleAnalyst, config.RoleProduct, config.RoleArchitect, config.RoleUX}, role) {
		name = firstOf(name, run.Config.Models[rolePlanner], a.opts.Models[rolePlanner])
	}
	if role == config.RoleChecker {
		name = firstOf(name, run.Config.Models[roleReflector], a.opts.Models[roleReflector])
	}
	if name == "" && role == roleReflector {
		return nil, "", nil // the caller's own model reflects
	}
	name = firstOf(name, run.Config.Models[""], a.opts.Models[""])
	if name == "" {
		return nil, "", &pipeline.Fault{Class: pipeline.FaultProvider, Final: true,
			Message: fmt.Sprintf("no model is configured for the %s; set models.%s to provider/model, for instance anthropic/claude-sonnet-5-5", role, role)}
	}
	if strings.HasPrefix(name, "tape:") && !slices.Contains(slices.Collect(maps.Values(a.opts.Models)), name) {
		// A run's configuration comes from the repository, which must not open files of the server (S26).
		return nil, name, &pipeline.Fault{Class: pipeline.FaultProvider, Final: true,
			Message: fmt.Sprintf("the model %s of the %s is a file, and only the server's own settings may name one", name, role)}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.models[name]
	if m == nil {
		var err error
		if m, err = a.opts.Open(name); err != nil {
			return nil, name, &pipeline.Fault{Class: pipeline.FaultProvider, Final: true, Message: err.Error()}
		}
		a.models[name] = m
	}
	if r, ok := m.(*remote); ok && run.Await != nil {
		if r.heard(run.Await.Back); run.Await.Asked {
			r.hasten()
		}
	}
	if !slices.Contains(slices.Collect(maps.Values(a.opts.Models)), name) {
		m = chosen{m}
	}
	if a.opts.AtOnce > 0 && !strings.HasPrefix(name, "tape:") {
		provider, _, _ := strings.Cut(name, "/")
		if a.pools[provider] == nil {
			a.pools[provider] = fair.New(a.opts.AtOnce)
		}
		m = queued{m, a.pools[provider], run.Root()}
	}
	return m, name, nil
}

// queued is a model whose calls wait until few enough of its provider are under way.
type queued struct {
	Model
	pool *fair.Pool
	run  int64
}

// Complete implements Model.
func (q queued) Complete(ctx context.Context, req Request) (Response, error) {
	back, err := q.pool.Take(ctx, q.run)
	if err != nil {
		return Response{}, err
	}
	defer back()
	return q.Model.Complete(ctx, req)
}

// chosen is a model that a repository's settings name, and the server's do not. That the
// provider does not know it is for the repository to correct: nobody waits for the
// operator.
type chosen struct{ Model }

// Complete implements Model.
func (c chosen) Complete(ctx context.Context, req Request) (Response, error) {
	r, err := c.Model.Complete(ctx, req)
	var f *failure
	if errors.As(err, &f) && f.fault != nil && (f.kind == kindModel || f.kind == kindPermission) {
		fault := *f.fault
		fault.Final, fault.RetryAt = true, time.Time{}
		fault.Message += "; this repository's own settings name it"
		return r, &fault
	}
	return r, err
}

func firstOf(ss ...string) string {
	for _, s := range ss {
		if s != "" {
			return s
		}
	}
	return ""
}
