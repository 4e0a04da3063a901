package phase

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/identity"
	"forge/pipeline/lens"
	"forge/pipeline/work"
	"forge/pipeline/workspace"
)

// Viewer reads a change for one thing alone.
type Viewer interface {
	View(ctx context.Context, job agent.Job, l lens.Lens) (pipeline.Review, pipeline.Usage, error)
}

// views are the reviews through lenses, under way beside the general one.
type views struct {
	list    []lens.View
	reviews []pipeline.Review // by the view's place; of those skipped, nothing
	begin   func()
	opening sync.Mutex // dependencies are installed once, and then found
	group   *errgroup.Group
	stop    context.CancelFunc
}

// startViews looks at the change through each lens that the settings name and the change
// needs, all at the same time, each in a work tree of its own. They wait for begin: what
// their prompts have in common with the general review's is in the provider's cache by
// then. Nil where the settings name none.
func (x *Executor) startViews(ctx context.Context, run *pipeline.Run, job *agent.Job) *views {
	if len(run.Config.Review.Lenses) == 0 {
		return nil
	}
	files := job.Files()
	ctx, stop := context.WithCancel(ctx)
	begun := make(chan struct{})
	v := &views{stop: stop, begin: sync.OnceFunc(func() { close(begun) })}
	v.group, ctx = errgroup.WithContext(ctx)
	job.Meter = &agent.Meter{}
	job.Emit = beginning(job.Emit, v.begin)
	for _, name := range run.Config.Review.Lenses {
		l := lens.Lens(name)
		i, worth := len(v.list), false
		v.list, v.reviews = append(v.list, lens.View{Lens: l}), append(v.reviews, pipeline.Review{})
		if worth, v.list[i].Skipped = agent.Needed(l, files); !worth {
			continue
		}
		job := *job
		v.group.Go(func() error {
			select {
			case <-begun:
			case <-ctx.Done():
				return ctx.Err()
			}
			review, err := x.view(ctx, run, job, l, &v.opening)
			v.reviews[i] = review
			return err
		})
	}
	return v
}

// beginning calls begin once the first event of a phase is kept.
func beginning(emit work.Emit, begin func()) work.Emit {
	return func(ctx context.Context, events ...pipeline.Event) error {
		defer begin()
		return emit(ctx, events...)
	}
}

// view looks through one lens.
func (x *Executor) view(ctx context.Context, run *pipeline.Run, job agent.Job, l lens.Lens, opening *sync.Mutex) (pipeline.Review, error) {
	ws, err := x.openView(ctx, run, fmt.Sprintf("%s-%d", l, run.ID), opening)
	if err != nil {
		return pipeline.Review{}, err
	}
	defer ws.Close()
	job.Workspace = ws
	review, _, err := x.o.Viewer.View(ctx, job, l)
	return review, err
}

func (x *Executor) openView(ctx context.Context, run *pipeline.Run, name string, opening *sync.Mutex) (workspace.Workspace, error) {
	opening.Lock()
	defer opening.Unlock()
	ws, err := x.space(ctx, run, workspace.OpenOptions{Name: name, Commit: run.Head})
	if err != nil {
		return nil, err
	}
	if err := x.provide(ctx, run, ws, run.Head); err != nil {
		_ = ws.Close()
		return nil, err
	}
	return ws, nil
}

// add waits for the views and adds what they found to the general review; after an
// error of that one they are stopped.
func (v *views) add(all *pipeline.Review, err error) error {
	if v == nil {
		return err
	}
	defer v.stop()
	if err != nil {
		v.stop()
		_ = v.group.Wait()
		return err
	}
	v.begin()
	if err := v.group.Wait(); err != nil {
		return err
	}
	for i := range v.list {
		before := len(all.Findings)
		if more := v.reviews[i]; v.list[i].Skipped == "" {
			for k := range more.Findings {
				more.Findings[k].Lens = string(v.list[i].Lens)
			}
			more.Summary = fmt.Sprintf("For %s: %s", v.list[i].Lens, more.Summary)
			addReview(all, more)
		}
		v.list[i].Findings = len(all.Findings) - before
	}
	all.Views = v.list
	return nil
}

// united adds findings of another view to a list. What is one of the list's in other words
// is that one; the worse severity, and the surer word, count.
func united(list, more []pipeline.Finding) []pipeline.Finding {
	known := identity.Known{Phase: pipeline.PhaseReview, Now: func(is *pipeline.Issue) identity.Place {
		return identity.Place{File: is.Finding.File, Line: is.Finding.Line}
	}}
	at := map[string]int{}
	for i := range list {
		at[list[i].Fingerprint] = i
		known.Issues = append(known.Issues, pipeline.Issue{Phase: pipeline.PhaseReview, State: pipeline.IssueOpen, Finding: &list[i]})
	}
	out := append([]pipeline.Finding{}, list...)
	for k, f := range known.Resolve(more) {
		i, same := at[f.Fingerprint]
		if !same {
			out = append(out, more[k])
			continue
		}
		o := &out[i]
		if f.Severity.Rank() > o.Severity.Rank() {
			o.Severity = f.Severity
		}
		if o.Confidence = max(o.Confidence, f.Confidence); o.Fix == nil {
			o.Fix, o.Fixable = f.Fix, o.Fixable || f.Fixable
		}
	}
	return out
}
