package work

import (
	"context"
	"fmt"

	"forge/pipeline"
)

// reviewed makes the notice of a human's verdict on the pull request, or of new words of one,
// a notice that the run acts on, when they may command it.
func (e *Engine) reviewed(ctx context.Context, run *pipeline.Run, n pipeline.Notice) (pipeline.Notice, error) {
	f := n.Feedback
	verdict := f != nil && f.Event == "pull_request_review" && f.Action == "submitted" && f.State != "commented" && (!run.State.Ended() || run.Reopenable())
	anew := false
	if rewords(f) && !run.State.Ended() {
		_, anew = run.Heard(f.Review)
	}
	if !verdict && !anew || n.Actor.Bot {
		return n, nil
	}
	may, err := e.mayWrite(ctx, n)
	if err != nil || !may {
		return n, err
	}
	if anew {
		n.Kind = pipeline.NoticeAskedAnew
		return n, nil
	}
	if n.Review, err = e.requested(ctx, n); err != nil {
		return n, err
	}
	n.Kind, n.Verdict = pipeline.NoticeReviewed, f.State
	return n, nil
}

// rewords reports whether somebody has changed what a review says, or taken of it away.
func rewords(f *pipeline.Feedback) bool {
	switch {
	case f == nil:
		return false
	case f.Event == "pull_request_review":
		return f.Action == "edited" || f.Action == "dismissed"
	}
	return f.Event == "pull_request_review_comment" && (f.Action == "edited" || f.Action == "deleted")
}

// requested reads what a human's review asks for by now.
func (e *Engine) requested(ctx context.Context, n pipeline.Notice) (*pipeline.Review, error) {
	asked, err := e.Hub.Requested(ctx, n.Repo, n.Pull, *n.Feedback)
	if err != nil {
		return nil, fmt.Errorf("read what the review of %s asks for: %w", n.Feedback.Author.Login, err)
	}
	return &asked, nil
}
