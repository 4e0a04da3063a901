package phase

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"forge/pipeline"
	"forge/pipeline/glob"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// at returns the run's workspace with sha checked out, fetching it when the
// mirror does not have it yet.
func (x *Executor) at(ctx context.Context, run *pipeline.Run, sha string) (workspace.Workspace, error) {
	if err := x.fetch(ctx, run, sha); err != nil {
		return nil, err
	}
	x.mu.Lock()
	ws := x.open[run.ID]
	x.mu.Unlock()
	if ws != nil {
		err := ws.Checkout(ctx, sha)
		if err == nil {
			err = x.provide(ctx, run, ws, sha)
		}
		if err == nil || ctx.Err() != nil {
			return ws, err
		}
		x.Close(run.ID) // its worker is gone; start another
	}
	taken, err := x.takenFrom(ctx, run)
	if err != nil {
		return nil, err
	}
	ws, err = x.space(ctx, run, workspace.OpenOptions{
		Name: fmt.Sprintf("run-%d", run.ID), Commit: sha,
		Protected: run.Config.Paths.Protected, Owners: ownersOf(run), Taken: taken,
	})
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	x.open[run.ID] = ws
	x.mu.Unlock()
	return ws, x.provide(ctx, run, ws, sha)
}

// ownersOf says whose the paths are that a module must leave as they are.
func ownersOf(run *pipeline.Run) map[string]string {
	if run.Part == nil {
		return nil
	}
	out := map[string]string{}
	for _, glob := range run.Part.Others {
		out[glob] = "the integration"
	}
	for glob, id := range run.Part.Owners {
		out[glob] = "the module " + id
	}
	for _, name := range run.Part.Contract {
		out[name] = "the contract between the modules"
	}
	return out
}

// unowned is whose the files are that no module owns.
const unowned = "no module, so that the integration alone changes it"

// takenFrom lists the files that a module must leave as they are because no module owns
// them: of two that change one, the merge would be luck. New files, and what the contract
// brings, are not among them.
func (x *Executor) takenFrom(ctx context.Context, run *pipeline.Run) (map[string]string, error) {
	if run.Part == nil {
		return nil, nil
	}
	if err := x.fetch(ctx, run, run.Part.Base); err != nil {
		return nil, err
	}
	files, err := x.o.Gateway.Files(ctx, run.Repo, run.Part.Base)
	if err != nil {
		return nil, err
	}
	split, out := partsOf(run.Part), map[string]string{}
	for _, name := range files {
		told := slices.Contains(run.Part.Contract, name) || slices.ContainsFunc(run.Part.Others, func(p string) bool { return glob.Match(p, name) })
		if !told && split.Owner(name, glob.Match) == "" {
			out[name] = unowned
		}
	}
	return out, nil
}

// fetch brings a commit into the mirror, when it is not there.
func (x *Executor) fetch(ctx context.Context, run *pipeline.Run, sha string) error {
	if _, err := x.o.Gateway.Resolve(ctx, run.Repo, sha); err == nil {
		return nil
	}
	token, err := x.o.Token(ctx, run.Repo)
	if err != nil {
		return err
	}
	return x.o.Gateway.Fetch(ctx, run.Repo, token, sha)
}

// Close closes the run's workspace, if it has one.
func (x *Executor) Close(run int64) {
	x.mu.Lock()
	ws := x.open[run]
	delete(x.open, run)
	delete(x.said, run)
	delete(x.setup, run)
	delete(x.fits, run)
	delete(x.plans, run)
	delete(x.tiersAt, run)
	delete(x.images, run)
	x.mu.Unlock()
	if ws == nil {
		return
	}
	if err := ws.Close(); err != nil {
		x.o.Log.Warn("close workspace", "run", run, "error", err)
	}
}

// Open returns the runs whose workspaces are open.
func (x *Executor) Open() []int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Sorted(maps.Keys(x.open))
}

// CloseAll closes all workspaces.
func (x *Executor) CloseAll() {
	for _, id := range x.Open() {
		x.Close(id)
	}
}

// cacheKey names a repository's environments, which no other repository shares.
func cacheKey(r pipeline.Repo) string {
	if r.ID != 0 {
		return fmt.Sprintf("repo-%d", r.ID)
	}
	sum := sha256.Sum256([]byte(r.CloneURL))
	return fmt.Sprintf("local-%s-%x", text.Slug(r.Name, 40), sum[:6])
}
