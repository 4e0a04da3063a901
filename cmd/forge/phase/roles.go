package phase

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/role"
	"forge/pipeline/workspace"
)

// Drafter writes down, in the place of a role, what is wanted or how it is to be built.
type Drafter interface {
	Draft(ctx context.Context, job agent.Job, r role.Role) (role.Artefact, pipeline.Usage, error)
	// Align returns what the design and the user interface contradict each other in.
	Align(ctx context.Context, job agent.Job) ([]role.Clash, pipeline.Usage, error)
}

// analyse lets roles write down what is wanted, one on top of the other. The tests run at
// the base first: where there is nothing to run, a human is asked before that is paid for.
func (x *Executor) analyse(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, error) {
	ws, baseline, err := x.based(ctx, run)
	if err != nil {
		return pipeline.Data{}, err
	}
	if untestable(run, baseline) {
		return pipeline.Data{Tests: baseline}, nil
	}
	if err := x.orient(ctx, run, &job); err != nil {
		return pipeline.Data{}, err
	}
	job.Workspace, job.Baseline, job.Meter = ws, baseline, &agent.Meter{}
	due := run.Due()
	data := pipeline.Data{Tests: baseline, Instructions: job.InstructionsUsed()}
	for _, who := range due {
		a, _, err := x.o.Drafter.Draft(ctx, job, who)
		if err != nil {
			return pipeline.Data{}, err
		}
		data.Artefacts = append(data.Artefacts, a)
		job.Run = with(job.Run, a)
	}
	return data, nil
}

// design lets roles write down how it is to be built, at the same time and each in a work
// tree of its own. What they contradict each other in goes back to both before anything is
// planned, unless the architect has to design again anyway.
func (x *Executor) design(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, error) {
	if err := x.fetch(ctx, run, planned(run)); err != nil {
		return pipeline.Data{}, err
	}
	if err := x.orient(ctx, run, &job); err != nil {
		return pipeline.Data{}, err
	}
	job.Meter = &agent.Meter{}
	due := run.Due()
	out := make([]role.Artefact, len(due))
	group, inner := errgroup.WithContext(ctx)
	for i, who := range due {
		group.Go(func() (err error) {
			out[i], err = x.draft(inner, run, job, who)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return pipeline.Data{}, err
	}
	data := pipeline.Data{Artefacts: out, Instructions: job.InstructionsUsed()}
	for _, a := range out {
		job.Run = with(job.Run, a)
	}
	design := role.Of(job.Run.Artefacts, role.Architect)
	if design == nil || role.Of(job.Run.Artefacts, role.UX) == nil || len(design.Infeasible) > 0 {
		return data, nil
	}
	clashes, _, err := x.o.Drafter.Align(ctx, job)
	if err != nil || len(clashes) == 0 {
		return data, err
	}
	aligned := *design
	aligned.Clashes = clashes
	data.Artefacts = role.Put(data.Artefacts, aligned) // or beside it, where a human has designed
	return data, nil
}

func (x *Executor) draft(ctx context.Context, run *pipeline.Run, job agent.Job, who role.Role) (role.Artefact, error) {
	ws, err := x.space(ctx, run, workspace.OpenOptions{Name: fmt.Sprintf("%s-%d", who, run.ID), Commit: planned(run)})
	if err != nil {
		return role.Artefact{}, err
	}
	defer ws.Close()
	job.Workspace = ws
	a, _, err := x.o.Drafter.Draft(ctx, job, who)
	return a, err
}

// with is a run with what a role has written.
func with(run *pipeline.Run, a role.Artefact) *pipeline.Run {
	out := *run
	out.Artefacts = role.Put(run.Artefacts, a)
	return &out
}
