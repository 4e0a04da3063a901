package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/check"
	"forge/pipeline/sandbox"
	"forge/pipeline/work"
)

// identity is whom Forge's commits are by.
type identity struct {
	Name, Email string
}

// executor carries out phases: it brings together the agent, the checks, the
// workspace that holds the repository's files, and the git gateway.
type executor struct {
	agent   *agent.Agent
	spaces  *sandbox.Manager
	gateway *sandbox.Gateway
	token   func(ctx context.Context, repo pipeline.Repo) (string, error) // for git; "" where none is needed
	bot     func(ctx context.Context) (identity, error)
	ci      *ciReader // nil where there is no GitHub
	memory  *memory   // nil: nothing is recalled
	log     *slog.Logger
	now     func() time.Time

	testTimeout time.Duration // see wireOptions

	mu   sync.Mutex
	open map[int64]*sandbox.Workspace // one per run, kept between its phases
}

// Do carries out a phase and returns the events that its result is.
func (x *executor) Do(ctx context.Context, run *pipeline.Run, act pipeline.Action, emit work.Emit) ([]pipeline.Event, error) {
	begun := x.now()
	ref := *act.Phase
	job := agent.Job{Run: run, Ref: ref, Key: act.Key, Emit: emit}
	var (
		data   pipeline.Data
		events []pipeline.Event
		await  *pipeline.Await
		err    error
	)
	if ref.Phase == pipeline.PhasePlan || ref.Phase == pipeline.PhaseImplement {
		x.memory.lookBackNow(ctx, run.ID)
	}
	switch ref.Phase {
	case pipeline.PhasePlan:
		data, err = x.plan(ctx, run, job)
	case pipeline.PhaseImplement:
		data, err = x.implement(ctx, run, job)
	case pipeline.PhaseReview:
		data, err = x.review(ctx, run, job)
	case pipeline.PhaseTest:
		data, await, err = x.test(ctx, run, job)
	case pipeline.PhaseUpdate:
		data, err = x.update(ctx, run)
	default:
		err = fmt.Errorf("execute %s: unknown phase", act.Key)
	}
	if err != nil {
		x.drop(run.ID) // whatever broke, the next attempt starts with a fresh workspace
		return nil, err
	}
	ref.Millis = x.now().Sub(begun).Milliseconds()
	data.Phase = &ref
	source := "agent:" + string(ref.Phase)
	if await != nil {
		return []pipeline.Event{{ID: fmt.Sprintf("%s/waiting/%d", act.Key, await.Looks), Type: pipeline.EventPhaseWaiting, Source: source,
			Data: pipeline.Data{Phase: &ref, Await: await}}}, nil
	}
	for i, f := range found(data) {
		events = append(events, pipeline.Event{ID: fmt.Sprintf("%s/finding/%d", act.Key, i+1), Type: pipeline.EventFinding, Source: source, Data: pipeline.Data{Finding: &f}})
	}
	used, err := x.memory.used(ctx, run, ref, roleOf(ref.Phase), data)
	if err != nil {
		return nil, err
	}
	events = append(events, used...)
	return append(events, pipeline.Event{ID: act.Key + "/completed", Type: pipeline.EventPhaseCompleted, Source: source, Data: data}), nil
}

// update takes the base branch in, and runs its tests where it now stands: what
// worked there before the change is not what it was.
func (x *executor) update(ctx context.Context, run *pipeline.Run) (pipeline.Data, error) {
	u := pipeline.Update{Base: run.BaseHead, Parent: run.Head}
	if err := x.fetch(ctx, run, u.Base); err != nil {
		return pipeline.Data{}, err
	}
	bot, err := x.bot(ctx)
	if err != nil {
		return pipeline.Data{}, err
	}
	u.Head, u.Conflicts, err = x.gateway.Merge(ctx, run.Repo, u.Base, sandbox.CommitOptions{
		Parent: run.Head, Author: bot.Name, Email: bot.Email, Time: commitTime(run),
		Message: fmt.Sprintf("Merge %s into %s\n\nForge-Run: %s/%d\n", run.Repo.DefaultBranch, run.Branch, run.Trace, run.Current().Number),
	})
	if err != nil || len(u.Conflicts) > 0 || u.Head == run.Head {
		return pipeline.Data{Update: &u}, err
	}
	ws, err := x.at(ctx, run, u.Base)
	if err != nil {
		return pipeline.Data{}, err
	}
	baseline, err := check.Run(ctx, ws, check.Options{Config: run.Config.Tests, Head: u.Base, Log: x.log, Clock: x.now, Timeout: x.testTimeout})
	return pipeline.Data{Update: &u, Tests: &baseline}, err
}

// found lists the findings that a phase's result holds.
func found(d pipeline.Data) []pipeline.Finding {
	switch {
	case d.Review != nil:
		return d.Review.Findings
	case d.Tests != nil && d.Plan == nil && d.Update == nil:
		return d.Tests.Tampered
	}
	return nil
}

// plan runs the tests at the base, so that later phases know what worked before
// the change, and asks the planner.
func (x *executor) plan(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, error) {
	from := run.Base
	if run.Current() != nil { // the plan is made again, for the work as it stands
		from = run.Head
	}
	ws, err := x.at(ctx, run, from)
	if err != nil {
		return pipeline.Data{}, err
	}
	baseline := run.Baseline // known when the plan is made again
	if baseline == nil {
		report, err := check.Run(ctx, ws, check.Options{Config: run.Config.Tests, Head: run.Base, Log: x.log, Clock: x.now, Timeout: x.testTimeout})
		if err != nil {
			return pipeline.Data{}, err
		}
		baseline = &report
		if err := ws.Checkout(ctx, run.Base); err != nil { // without what the tests left behind
			return pipeline.Data{}, err
		}
	}
	if job.Tree, err = x.gateway.Files(ctx, run.Repo, from); err != nil {
		return pipeline.Data{}, err
	}
	job.Workspace = ws
	if err := x.memory.recall(ctx, &job, "planner", job.Emit); err != nil {
		return pipeline.Data{}, err
	}
	plan, _, err := x.agent.Plan(ctx, job)
	return pipeline.Data{Plan: &plan, Tests: baseline}, err
}

// implement lets the implementer edit, and makes one commit of what changed.
func (x *executor) implement(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, error) {
	ws, err := x.at(ctx, run, run.Head)
	if err != nil {
		return pipeline.Data{}, err
	}
	job.Workspace = ws
	if job.Diff, err = x.gateway.Diff(ctx, run.Repo, run.Base, run.Head); err != nil {
		return pipeline.Data{}, err
	}
	if err := x.memory.recall(ctx, &job, "implementer", job.Emit); err != nil {
		return pipeline.Data{}, err
	}
	impl, _, err := x.agent.Implement(ctx, job)
	if err != nil {
		return pipeline.Data{}, err
	}
	changes, err := ws.Changes(ctx)
	if err != nil {
		return pipeline.Data{}, asAgentFault(err)
	}
	bot, err := x.bot(ctx)
	if err != nil {
		return pipeline.Data{}, err
	}
	impl.Parent, impl.Files = run.Head, nil
	for _, c := range changes {
		impl.Files = append(impl.Files, c.Path)
	}
	impl.Head, err = x.gateway.Commit(ctx, run.Repo, sandbox.CommitOptions{
		Parent: run.Head, Message: commitMessage(run, job.Ref, impl), Author: bot.Name, Email: bot.Email,
		Time: commitTime(run), Changes: changes, Protected: run.Config.Paths.Protected,
	})
	if err != nil {
		return pipeline.Data{}, asAgentFault(err)
	}
	return pipeline.Data{Implementation: &impl}, nil
}

// commitTime is when the iteration began, so that a phase that is carried out
// again after a crash makes the very same commit.
func commitTime(run *pipeline.Run) time.Time {
	if it := run.Current(); it != nil {
		return it.Started
	}
	return run.Started
}

// review shows the whole change to the reviewer.
func (x *executor) review(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, error) {
	ws, err := x.at(ctx, run, run.Head)
	if err != nil {
		return pipeline.Data{}, err
	}
	if job.Diff, err = x.gateway.Diff(ctx, run.Repo, run.Base, run.Head); err != nil {
		return pipeline.Data{}, err
	}
	job.Workspace = ws
	if err := x.memory.recall(ctx, &job, "reviewer", job.Emit); err != nil {
		return pipeline.Data{}, err
	}
	review, _, err := x.agent.Review(ctx, job)
	if err == nil {
		x.memory.filter(ctx, run, &review)
	}
	return pipeline.Data{Review: &review}, err
}

// test runs the tests, looks at the repository's own checks where it is told to,
// and asks for an analysis of what failed. What it has to wait for is returned in
// place of a result.
func (x *executor) test(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, *pipeline.Await, error) {
	ws, err := x.at(ctx, run, run.Head)
	if err != nil {
		return pipeline.Data{}, nil, err
	}
	patch, err := x.gateway.Diff(ctx, run.Repo, run.Base, run.Head)
	if err != nil {
		return pipeline.Data{}, nil, err
	}
	var report pipeline.TestReport
	if w := run.Await; w != nil && w.Tests != nil {
		report = *w.Tests // known since before the waiting
	} else if report, err = x.runTests(ctx, run, ws, job.Ref.Iteration, patch); err != nil {
		return pipeline.Data{}, nil, err
	}
	// What fails here is sent back at once; CI would only say it again.
	if x.ci != nil && run.Config.Tests.Checks && (report.OK() || report.None != "") {
		await, err := x.ci.add(ctx, run, &report)
		if err != nil || await != nil {
			return pipeline.Data{}, await, err
		}
	}
	if len(report.Failures) > 0 {
		if err := ws.Checkout(ctx, run.Head); err != nil {
			return pipeline.Data{}, nil, err
		}
		job.Workspace, job.Diff, job.Failures = ws, patch, report.Failures
		if err := x.memory.recall(ctx, &job, "tester", job.Emit); err != nil {
			return pipeline.Data{}, nil, err
		}
		if report.Failures, _, err = x.agent.Analyse(ctx, job); err != nil {
			return pipeline.Data{}, nil, err
		}
	}
	return pipeline.Data{Tests: &report}, nil, nil
}

// runTests runs the repository's tests in the workspace.
func (x *executor) runTests(ctx context.Context, run *pipeline.Run, ws *sandbox.Workspace, iteration int, patch string) (pipeline.TestReport, error) {
	opts := check.Options{Config: run.Config.Tests, Head: run.Head, Iteration: iteration, Patch: patch, Baseline: run.Baseline, Log: x.log, Clock: x.now, Timeout: x.testTimeout}
	for _, it := range run.Iterations {
		if it.Number < iteration && it.Tests != nil {
			opts.Earlier = append(opts.Earlier, check.Past{Iteration: it.Number, Report: it.Tests})
		}
	}
	return check.Run(ctx, ws, opts)
}

// at returns the run's workspace with sha checked out, fetching it when the
// mirror does not have it yet.
func (x *executor) at(ctx context.Context, run *pipeline.Run, sha string) (*sandbox.Workspace, error) {
	if err := x.fetch(ctx, run, sha); err != nil {
		return nil, err
	}
	x.mu.Lock()
	ws := x.open[run.ID]
	x.mu.Unlock()
	if ws != nil {
		if err := ws.Checkout(ctx, sha); err == nil || ctx.Err() != nil {
			return ws, err
		}
		x.drop(run.ID) // its worker is gone; start another
	}
	ws, err := x.spaces.Open(ctx, sandbox.OpenOptions{
		Name: fmt.Sprintf("run-%d", run.ID), GitDir: x.gateway.Dir(run.Repo), Commit: sha, Cache: cacheKey(run.Repo),
	})
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open == nil {
		x.open = map[int64]*sandbox.Workspace{}
	}
	x.open[run.ID] = ws
	return ws, nil
}

// fetch brings a commit into the mirror, when it is not there.
func (x *executor) fetch(ctx context.Context, run *pipeline.Run, sha string) error {
	if _, err := x.gateway.Resolve(ctx, run.Repo, sha); err == nil {
		return nil
	}
	token, err := x.token(ctx, run.Repo)
	if err != nil {
		return err
	}
	return x.gateway.Fetch(ctx, run.Repo, token, sha)
}

// drop closes the run's workspace, if it has one.
func (x *executor) drop(run int64) {
	x.mu.Lock()
	ws := x.open[run]
	delete(x.open, run)
	x.mu.Unlock()
	if ws == nil {
		return
	}
	if err := ws.Close(); err != nil {
		x.log.Warn("close workspace", "run", run, "error", err)
	}
}

// close closes all workspaces.
func (x *executor) close() {
	x.mu.Lock()
	var ids []int64
	for id := range x.open {
		ids = append(ids, id)
	}
	x.mu.Unlock()
	for _, id := range ids {
		x.drop(id)
	}
}

// cacheKey names a repository's build cache, which no other repository shares.
func cacheKey(r pipeline.Repo) string {
	if r.ID != 0 {
		return fmt.Sprintf("repo-%d", r.ID)
	}
	return "local-" + pipeline.Slug(r.CloneURL, 40)
}

// asAgentFault turns a refused change (a protected path, a symbolic link) into
// the implementer's fault: it is told, and tries again.
func asAgentFault(err error) error {
	var f *pipeline.Fault
	if errors.As(err, &f) || errors.Is(err, context.Canceled) {
		return err
	}
	return &pipeline.Fault{Class: pipeline.FaultAgent, Message: err.Error()}
}

// commitMessage says what the commit does and, for a fix, what it is for.
func commitMessage(run *pipeline.Run, ref pipeline.PhaseRef, impl pipeline.Implementation) string {
	subject, rest, _ := strings.Cut(strings.TrimSpace(impl.Summary), "\n")
	if subject == "" {
		subject = run.Task.Title
	}
	if r := []rune(subject); len(r) > 72 {
		rest = subject + "\n" + rest
		subject = string(r[:71]) + "…"
	}
	var b strings.Builder
	b.WriteString(subject + "\n")
	if rest = strings.TrimSpace(rest); rest != "" {
		b.WriteString("\n" + rest + "\n")
	}
	if len(impl.Addressed) > 0 {
		b.WriteString("\n")
		for _, a := range impl.Addressed {
			b.WriteString("- " + strings.Join(strings.Fields(a), " ") + "\n")
		}
	}
	fmt.Fprintf(&b, "\nForge-Run: %s/%d\n", run.Trace, ref.Iteration)
	return b.String()
}
