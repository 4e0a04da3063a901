package work

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"forge/pipeline"
)

// placeKept is how long a repository that was looked at counts as being where it was.
const placeKept = time.Minute

// place is what a repository is called, and until when that needs no look.
type place struct {
	name  string
	until time.Time
}

// identify sees to it that a delivery's repository is known by the name that it has. What
// a delivery calls it may be old, and may be what another repository was called before:
// where it and the store do not agree, GitHub is asked for the id. gone says that the App
// may do nothing there any more.
func (e *Engine) identify(ctx context.Context, n *pipeline.Notice) (gone bool, err error) {
	if e.Locate == nil || n.Repo.ID == 0 || n.Repo.Name == "" {
		return false, nil
	}
	name := n.Repo.FullName()
	if p, ok := e.places.Load(n.Repo.ID); ok && p.(place).name == name && e.now().Before(p.(place).until) && n.Former == "" {
		return false, nil
	}
	names, others, err := e.store.Names(ctx, n.Repo.ID, name)
	if err != nil {
		return false, err
	}
	same := len(others) == 0 && (n.Former == "" || n.Former == name)
	for _, known := range names {
		same = same && known == name
	}
	if !same {
		now, found, err := e.relocate(ctx, n.Repo.ID, n.Former, map[int64]bool{})
		if err != nil || !found {
			return !found, err
		}
		n.Repo = now
	}
	e.places.Store(n.Repo.ID, place{n.Repo.FullName(), e.now().Add(placeKept)})
	return false, nil
}

// relocate asks GitHub what a repository is called now, and brings what is kept of it under
// that name; before that, likewise, those that had the name. Of one that is gone it ends
// the runs.
func (e *Engine) relocate(ctx context.Context, id int64, former string, seen map[int64]bool) (now pipeline.Repo, found bool, err error) {
	seen[id] = true
	if now, found, err = e.Locate(ctx, id); err != nil {
		return now, false, fmt.Errorf("find repository %d: %w", id, err)
	}
	if !found {
		return now, false, e.endRuns(ctx, id)
	}
	_, others, err := e.store.Names(ctx, id, now.FullName())
	if err != nil {
		return now, true, err
	}
	for _, other := range others {
		if !seen[other] {
			if _, _, err := e.relocate(ctx, other, "", seen); err != nil {
				return now, true, err
			}
		}
	}
	told, err := e.store.Rename(ctx, now, former, e.now(), func(ctx context.Context, tx *Tx, run *pipeline.Run) error {
		return e.enqueue(ctx, tx, run.ID, laneWake, run.Part != nil)
	})
	if err != nil {
		return now, true, err
	}
	e.places.Store(id, place{now.FullName(), e.now().Add(placeKept)})
	e.Logger.InfoContext(ctx, "a repository is called otherwise", logRepo, now.FullName(), "runs", len(told))
	for _, ev := range told {
		run, err := e.store.Load(ctx, ev.Run)
		if err != nil {
			return now, true, err
		}
		e.OnEvents(run, []pipeline.Event{ev})
		e.Notify(run.ID)
	}
	return now, true, nil
}

// endRuns ends the runs of a repository that was deleted, or that the App has no access to
// any more. Nothing can be said there: who looks at the run reads why.
func (e *Engine) endRuns(ctx context.Context, id int64) error {
	e.places.Delete(id)
	ids, err := e.store.Active(ctx, id)
	if err != nil {
		return err
	}
	for _, run := range ids {
		r, err := e.store.Load(ctx, run)
		if err != nil {
			return err
		}
		_, err = e.appendIf(ctx, r, nil, func(r *pipeline.Run) ([]pipeline.Event, error) {
			if r.State.Ended() {
				return nil, nil
			}
			return []pipeline.Event{{ID: fmt.Sprintf("repository/%d/gone/after/%d", id, r.Seq), Type: pipeline.EventRunCancelled, Source: "github",
				Data: pipeline.Data{Note: goneNote(r.Repo)}}}, nil
		})
		if err != nil {
			return err
		}
		e.Logger.WarnContext(ctx, "a run ends: its repository is gone", logRun, run, logRepo, r.Repo.FullName())
	}
	return nil
}

// retryable is a fault that another try may mend.
func retryable(failed error) error {
	var f *pipeline.Fault
	if !errors.As(failed, &f) {
		return failed
	}
	out := *f
	out.Final = false
	return &out
}

func goneNote(repo pipeline.Repo) string {
	return fmt.Sprintf("%s was deleted, or belongs to an account where the App is not installed on it. Install the App there and put the label on the issue again.", repo.FullName())
}

// leftBehind ends the runs of those repositories of a notice that are gone.
func (e *Engine) leftBehind(ctx context.Context, p *inbound) error {
	var gone int
	for _, id := range p.notice.Left {
		names, _, err := e.store.Names(ctx, id, "")
		if err != nil {
			return err
		}
		if len(names) == 0 || e.Locate == nil { // nothing is kept of it
			continue
		}
		_, found, err := e.relocate(ctx, id, "", map[int64]bool{})
		if err != nil {
			return err
		}
		if !found {
			gone++
		}
	}
	if gone > 0 {
		return e.conclude(ctx, p, fmt.Sprintf("%s: %d of its repositories are gone: their runs end", p.notice.Why, gone))
	}
	return e.conclude(ctx, p, p.notice.Why)
}

// relocated looks, after something failed for good on GitHub, whether the run's repository is
// where it was. It reports whether the run has been told of another place, or ended.
func (e *Engine) relocated(ctx context.Context, run *pipeline.Run, failed error) bool {
	var f *pipeline.Fault
	if e.Locate == nil || run.Repo.ID == 0 || !errors.As(failed, &f) || f.Class != pipeline.FaultGitHub || !f.Final {
		return false
	}
	now, found, err := e.Locate(ctx, run.Repo.ID)
	if err == nil && found && strings.EqualFold(now.FullName(), run.Repo.FullName()) && now.Installation == run.Repo.Installation {
		return false
	}
	if err == nil {
		_, _, err = e.relocate(ctx, run.Repo.ID, "", map[int64]bool{})
	}
	if err != nil {
		e.Logger.WarnContext(ctx, "looking where a run's repository is", logRun, run.ID, logRepo, run.Repo.FullName(), logError, err)
	}
	return err == nil
}
