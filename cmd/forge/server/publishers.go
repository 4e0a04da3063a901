package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/sandbox"
	"forge/pipeline/workspace"
)

// localPublisher publishes runs on a local repository: the branch is all there is to show.
type localPublisher struct{ gateway *sandbox.Gateway }

// Publish implements work.Publisher.
func (l localPublisher) Publish(ctx context.Context, run *pipeline.Run, again bool) (pipeline.Publication, []pipeline.Event, error) {
	pub := pipeline.Publication{Rev: run.Rev, Head: run.Published.Head}
	if run.Over && (run.Published.Head != "" || again) {
		at := cmp.Or(run.Published.Head, run.Head) // a push may have got through that was not recorded
		err := l.gateway.Delete(ctx, run.Repo, "", run.Branch, at)
		var moved *workspace.MovedError
		if again && errors.As(err, &moved) && run.Committed(moved.Head) {
			err = l.gateway.Delete(ctx, run.Repo, "", run.Branch, moved.Head)
		}
		if err == nil {
			pub.Head, pub.Deleted = "", true
		}
		return pub, nil, nil // one that somebody else has moved, or that cannot be deleted, stays
	}
	if run.Head == run.Base || run.Head == run.Published.Head {
		return pub, nil, nil
	}
	err := l.gateway.Push(ctx, run.Repo, "", pushOf(run, run.Branch, run.Head, run.Published.Head))
	var moved *workspace.MovedError
	var rejected *workspace.RejectedError
	if again && errors.As(err, &moved) && run.Committed(moved.Head) { // an attempt that was not recorded got that far
		err = l.gateway.Push(ctx, run.Repo, "", pushOf(run, run.Branch, run.Head, moved.Head))
	}
	switch {
	case errors.As(err, &moved) && moved.Head == "":
		return pub, []pipeline.Event{{Type: pipeline.EventBranchDeleted, Source: "git"}}, nil
	case errors.As(err, &moved):
		return pub, []pipeline.Event{{ID: fmt.Sprintf("run/%d/moved/%s", run.ID, moved.Head), Type: pipeline.EventBranchMoved, Source: "git", Data: pipeline.Data{Head: moved.Head}}}, nil
	case errors.As(err, &rejected):
		return pub, nil, &pipeline.Fault{Class: pipeline.FaultGitHub, Message: refusedHere(run, rejected), Final: true}
	case err != nil:
		return pub, nil, err
	}
	pub.Head = run.Head
	return pub, nil, nil
}

// refusedHere is why a local repository does not take a branch. Git writes to none that is
// checked out, in the folder or in one of its linked work trees.
func refusedHere(run *pipeline.Run, rejected *workspace.RejectedError) string {
	if !strings.Contains(rejected.Reason, "denyCurrentBranch") && !strings.Contains(rejected.Reason, "checked out") {
		return rejected.Error()
	}
	return fmt.Sprintf("the branch %s is checked out, in this folder or in a linked work tree (`git worktree list` shows where). Check out another one there, then type `%s`",
		run.Branch, command.Write(run.Slug, "continue"))
}

// noopPublisher publishes to nobody.
type noopPublisher struct{}

// Publish implements work.Publisher.
func (noopPublisher) Publish(_ context.Context, run *pipeline.Run, _ bool) (pipeline.Publication, []pipeline.Event, error) {
	return pipeline.Publication{Rev: run.Rev, Head: run.Head}, nil, nil
}
