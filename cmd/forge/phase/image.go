package phase

import (
	"context"

	"forge/pipeline"
	"forge/pipeline/image"
	"forge/pipeline/workspace"
)

// pulled is what became of the image that a run's settings name.
type pulled struct {
	named string
	image image.Image
	why   string // it is not to be had; "": it is, or none is named
}

// space opens a workspace of the run's repository, in the image that its settings name.
func (x *Executor) space(ctx context.Context, run *pipeline.Run, o workspace.OpenOptions) (workspace.Workspace, error) {
	root, err := x.image(ctx, run)
	if err != nil {
		return nil, err
	}
	o.GitDir, o.Cache, o.Owner = x.o.Gateway.Dir(run.Repo), cacheKey(run.Repo), run.Root()
	o.Root, o.RootEnv = root.image.Dir, root.image.Env
	return x.o.Spaces.Open(ctx, o)
}

// image finds the image of a run, once for as long as its workspace is open. One that is not to
// be had is no error: commands see the server's own system then, and the run says so.
func (x *Executor) image(ctx context.Context, run *pipeline.Run) (pulled, error) {
	named := run.Config.Setup.Image
	if named == "" {
		return pulled{}, nil
	}
	x.mu.Lock()
	known, ok := x.images[run.ID]
	x.mu.Unlock()
	if ok && known.named == named {
		return known, nil
	}
	r := pulled{named: named, why: "this server pulls no images (`dependencies: off`, or there is no sandbox)"}
	if x.o.Images != nil {
		r.why = ""
		var err error
		if r.image, err = x.o.Images(ctx, named); ctx.Err() != nil {
			return r, ctx.Err()
		} else if err != nil {
			x.o.Log.Warn("pull an image", "run", run.ID, "image", named, "error", err)
			r.why = err.Error()
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.images[run.ID] = r
	return r, nil
}
