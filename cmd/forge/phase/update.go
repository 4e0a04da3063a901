package phase

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/check"
	"forge/pipeline/config"
	"forge/pipeline/glob"
	"forge/pipeline/workspace"
)

// update takes the base branch in, and runs its tests where it now stands: what
// worked there before the change is not what it was. What does not merge by itself
// is told; in the mode for it, the implementer merges it by hand.
func (x *Executor) update(ctx context.Context, run *pipeline.Run, job agent.Job) (pipeline.Data, error) {
	u := pipeline.Update{Base: run.BaseHead, Parent: run.Head}
	if last := run.Current().Update; job.Ref.Mode == pipeline.ModeConflict && last != nil {
		u.Base = last.Base // it may have gone on again: that is the next update's
	}
	for _, sha := range []string{u.Base, run.Head} { // people push heads, too
		if err := x.fetch(ctx, run, sha); err != nil {
			return pipeline.Data{}, err
		}
	}
	bot, err := x.o.Identity(ctx)
	if err != nil {
		return pipeline.Data{}, err
	}
	o := workspace.CommitOptions{
		Parent: run.Head, Base: run.Base, Author: bot.Name, Email: bot.Email, Time: commitTime(run), Signoff: run.Config.Signoff,
		Message: fmt.Sprintf("Merge %s into %s", run.Repo.DefaultBranch, run.Branch), Run: fmt.Sprintf("%s/%d", run.Trace, run.Current().Number),
	}
	merged, err := x.o.Gateway.Merge(ctx, run.Repo, u.Base, o)
	if err != nil {
		return pipeline.Data{}, err
	}
	data := pipeline.Data{Update: &u}
	u.Head, u.Conflicts, u.Markers = merged.SHA, merged.Conflicts, merged.Markers
	if len(u.Conflicts) > 0 && job.Ref.Mode == pipeline.ModeConflict {
		if err := x.mergeByHand(ctx, run, job, o, &merged, &data); err != nil {
			return pipeline.Data{}, err
		}
	}
	if len(u.Conflicts) > 0 || u.Head == run.Head {
		return data, nil
	}
	if u.Head, err = x.signed(ctx, run, u.Head); err != nil {
		return pipeline.Data{}, err
	}
	ws, err := x.at(ctx, run, u.Base)
	if err != nil {
		return pipeline.Data{}, err
	}
	baseline, err := check.Run(ctx, ws, check.Options{Config: run.Config.Tests, Head: u.Base, Log: x.o.Log, Clock: x.o.Now, Timeout: x.o.TestTimeout})
	data.Tests = &baseline
	return data, err
}

// foreign says which of the files in conflict a module must leave as they are, "" for none:
// somebody changed them on its branch, and no answer of the implementer would be taken.
func (x *Executor) foreign(ctx context.Context, run *pipeline.Run, conflicts []string) (string, error) {
	taken, err := x.takenFrom(ctx, run)
	if err != nil {
		return "", err
	}
	owners := ownersOf(run)
	for _, name := range conflicts {
		whose := taken[name]
		for _, pattern := range slices.Sorted(maps.Keys(owners)) {
			if glob.Match(pattern, name) {
				whose = owners[pattern]
			}
		}
		if whose != "" {
			return fmt.Sprintf("%s is in conflict, and belongs to %s. Somebody changed it on the branch %s, so that a person has to merge it there: "+
				"take the module over, or leave it out", name, whose, run.Branch), nil
		}
	}
	return "", nil
}

// mergeByHand lets the implementer finish a merge with conflicts, on a tree with markers.
func (x *Executor) mergeByHand(ctx context.Context, run *pipeline.Run, job agent.Job, o workspace.CommitOptions, m *workspace.Merged, data *pipeline.Data) error {
	u := data.Update
	whose, err := x.foreign(ctx, run, m.Conflicts)
	if err != nil {
		return err
	}
	if u.Unable = whose; u.Unable != "" {
		return nil
	}
	ws, err := x.at(ctx, run, m.Markers)
	if err != nil {
		return err
	}
	job.Workspace = ws
	job.Conflict = &agent.Conflict{Branch: run.Repo.DefaultBranch, Paths: m.Conflicts, Why: m.Why}
	if job.Diff, err = x.o.Gateway.Diff(ctx, run.Repo, run.Base, run.Head); err != nil {
		return err
	}
	if job.Conflict.Theirs, err = x.o.Gateway.Diff(ctx, run.Repo, run.Base, u.Base); err != nil {
		return err
	}
	if err := x.orient(ctx, run, &job); err != nil {
		return err
	}
	if err := x.o.Memory.Recall(ctx, &job, config.RoleImplementer, job.Emit); err != nil {
		return err
	}
	impl, _, err := x.o.Implementer.Implement(ctx, job)
	data.Instructions = job.InstructionsUsed()
	if err != nil {
		return err
	}
	if u.Unable = impl.Unable; u.Unable != "" {
		return nil
	}
	if o.Changes, err = ws.Changes(ctx); err != nil {
		return asAgentFault(err)
	}
	o.Parent, o.Parents = m.Markers, []string{run.Head, u.Base}
	o.Message += "\n\n" + impl.Summary
	o.Protected, o.Owners, o.Cleared = run.Config.Paths.Protected, ownersOf(run), slices.Sorted(maps.Keys(run.Cleared))
	if u.Head, err = x.o.Gateway.Commit(ctx, run.Repo, o); err != nil {
		return asAgentFault(err)
	}
	bot := func(name, email string) bool { return name == o.Author || email == o.Email }
	if u.Met, err = x.o.Gateway.Met(ctx, run.Repo, run.Head, u.Base, u.Head, m.Conflicts, bot); err != nil {
		return err
	}
	u.Conflicts, u.Markers, u.Resolved = nil, "", impl.Summary
	return nil
}
