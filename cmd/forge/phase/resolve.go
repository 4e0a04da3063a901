package phase

import (
	"context"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/upstream"
)

// answer lets the planner answer what another agent says about the plan. It may look at
// the work as it stands, and changes nothing.
func (x *Executor) answer(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, error) {
	ws, err := x.at(ctx, run, run.Head)
	if err != nil {
		return pipeline.Data{}, err
	}
	if err := x.orient(ctx, run, &job); err != nil {
		return pipeline.Data{}, err
	}
	job.Workspace = ws
	reply, _, err := x.o.Planner.Resolve(ctx, job)
	if err != nil {
		return pipeline.Data{}, err
	}
	return pipeline.Data{Upstream: &upstream.Feedback{ID: run.Feedback().ID, Reply: &reply}, Instructions: job.InstructionsUsed()}, nil
}
