package server

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/sandbox"
	"forge/pipeline/work"
)

// heldEvery is how often it is looked whether another process still works on a run.
const heldEvery = time.Second

// Drive goes on with a run, and those that build its modules, right here, until they end
// or wait for people. What another process holds it waits for, and says so: that may have
// died. elsewhere says that the process is alive and goes on with it.
func (a *App) Drive(ctx context.Context, id int64, say func(format string, args ...any)) (elsewhere bool, err error) {
	for {
		if err := a.look(ctx, id); err != nil {
			return false, err
		}
		a.news.Store(false)
		if err := a.Engine.Drive(ctx, id); err != nil {
			return false, err
		}
		if err := a.look(ctx, id); err != nil {
			return false, err
		}
		held, err := a.held(ctx, id)
		switch {
		case err != nil:
			return false, err
		case held != nil:
			if alive, err := a.outwait(ctx, held, say); err != nil || alive {
				return alive, err
			}
		case !a.news.Load():
			return false, nil
		}
	}
}

// lookingExecutor looks at the local repository after each phase, before anything follows
// from it.
type lookingExecutor struct {
	work.Executor
	look func(ctx context.Context, run int64) error
}

// Do implements work.Executor.
func (x lookingExecutor) Do(ctx context.Context, run *pipeline.Run, act pipeline.Action, emit work.Emit) ([]pipeline.Event, error) {
	events, err := x.Executor.Do(ctx, run, act, emit)
	if err == nil {
		err = x.look(ctx, run.ID)
	}
	return events, err
}

// family is the run, or the one that planned it as a module, and the runs of its modules.
func (a *App) family(ctx context.Context, id int64) ([]*pipeline.Run, error) {
	root, err := a.DB.Load(ctx, id)
	if err == nil && root.Part != nil {
		root, err = a.DB.Load(ctx, root.Part.Run)
	}
	if err != nil {
		return nil, err
	}
	out := []*pipeline.Run{root}
	for i := range root.Parts {
		if root.Parts[i].Run == 0 {
			continue
		}
		part, err := a.DB.Load(ctx, root.Parts[i].Run)
		if err != nil {
			return nil, err
		}
		out = append(out, part)
	}
	return out, nil
}

// look takes in what people have committed in the local repository of a run since, on
// branches of the family, and on the one that it began from: of these nobody sends
// deliveries.
func (a *App) look(ctx context.Context, id int64) error {
	if !a.local {
		return nil
	}
	runs, err := a.family(ctx, id)
	if err != nil {
		return err
	}
	root := runs[0]
	branches := []string{root.Repo.DefaultBranch}
	for _, r := range runs {
		branches = append(branches, r.Branch)
	}
	heads, _, err := a.Gateway.Heads(ctx, root.Repo, "", branches...)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.Part != nil && root.State.Ended() { // nobody wants anything of it any more
			continue
		}
		for _, n := range noticed(r, heads) {
			if err := a.takeIn(ctx, r.ID, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeIn tells a run what was seen in its repository, unless a push from here came in
// between: then the branch and the run, read once more, do not differ.
func (a *App) takeIn(ctx context.Context, id int64, n pipeline.Notice) error {
	before, _, err := a.Gateway.Heads(ctx, n.Repo, "", n.Branch)
	if err != nil {
		return err
	}
	run, err := a.DB.Load(ctx, id)
	if err != nil {
		return err
	}
	after, _, err := a.Gateway.Heads(ctx, n.Repo, "", n.Branch)
	if err != nil || before[n.Branch] != n.Head || after[n.Branch] != n.Head {
		return err
	}
	events, _ := run.Notice(n, a.now().UTC().Truncate(time.Microsecond))
	if len(events) == 0 {
		return nil
	}
	for i := range events {
		events[i].ID = fmt.Sprintf("run/%d/seen/%d/%s", id, run.Seq, events[i].ID)
	}
	if err := a.Engine.Migrate(ctx); err != nil { // a command that answers may have to wake it
		return err
	}
	a.news.Store(true)
	return a.record(ctx, id, events, nil)
}

// noticed is what a look at the branches of its repository tells of a run.
func noticed(r *pipeline.Run, heads map[string]string) (out []pipeline.Notice) {
	about := pipeline.Notice{Repo: r.Repo, Actor: OSUser()}
	if own := heads[r.Branch]; r.Published.Head != "" && !r.Over && own != r.Published.Head && own != r.Head {
		about.Kind, about.Branch, about.Head = pipeline.NoticePush, r.Branch, own
		if own == "" {
			about.Kind = pipeline.NoticeBranchDeleted
		}
		out = append(out, about)
	}
	base := r.Repo.DefaultBranch
	if now := heads[base]; r.Part == nil && now != "" && now != r.Base && now != r.BaseHead {
		about.Kind, about.Branch, about.Head = pipeline.NoticeBaseMoved, base, now
		out = append(out, about)
	}
	return out
}

// holding is another process's lease of a run.
type holding struct {
	run   int64
	owner string
	until time.Time
}

// who names the process, as far as it has said who it is.
func (h *holding) who() string {
	name, _, _ := strings.Cut(h.owner, "/")
	if !strings.HasPrefix(name, "process ") {
		return "another process"
	}
	return name
}

// held is the lease of a run of the family that another process has; nil for none.
func (a *App) held(ctx context.Context, id int64) (*holding, error) {
	runs, err := a.family(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		if r.State.Ended() {
			continue
		}
		h := holding{run: r.ID}
		if h.owner, h.until, err = a.DB.Holder(ctx, r.ID, a.now()); err != nil {
			return nil, err
		}
		if h.owner != "" {
			return &h, nil
		}
	}
	return nil, nil
}

// outwait waits until a lease is over. alive says that its process has prolonged it.
func (a *App) outwait(ctx context.Context, h *holding, say func(string, ...any)) (alive bool, err error) {
	say("Run %d is held by %s until %s; if that has died, it goes on here then. Waiting.", h.run, h.who(), h.until.Local().Format("15:04:05"))
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-a.after(heldEvery):
		}
		owner, until, err := a.DB.Holder(ctx, h.run, a.now())
		switch {
		case err != nil:
			return false, err
		case owner == "":
			return false, nil
		case owner != h.owner || !until.Equal(h.until):
			say("Run %d goes on in %s; `forge show %d` says how far it is.", h.run, (&holding{owner: owner}).who(), h.run)
			return true, nil
		}
	}
}

// processName is how this process calls itself where it holds something.
func processName() string {
	host, err := os.Hostname()
	return fmt.Sprintf("process %d on %s", os.Getpid(), cmp.Or(strings.ReplaceAll(host, "/", "-"), fmt.Sprint("a machine without a name: ", err)))
}

// localBranch is the branch that is checked out in a local repository: what a run on it
// began from; "HEAD" where no branch is.
func localBranch(ctx context.Context, g *sandbox.Gateway, repo pipeline.Repo) (string, error) {
	_, current, err := g.Heads(ctx, repo, "")
	return cmp.Or(current, repo.DefaultBranch), err
}
