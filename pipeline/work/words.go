package work

import (
	"context"
	"fmt"
	"strings"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/text"
)

// unheard tells somebody with write access whose words nothing is sure to read any more what
// does change the work: once for each run, so that a talk is not answered line by line, and
// once for each review that they edit. It returns that for the delivery's outcome.
func (e *Engine) unheard(ctx context.Context, run *pipeline.Run, p *inbound) (string, error) {
	n := p.notice
	words, key := unanswered(run, n), ""
	switch {
	case words != "":
		key = fmt.Sprintf("run/%d/%s/approved", run.ID, run.Gate().ID)
	case !asks(run, n) || e.Idle != nil && e.Idle(n.Feedback.Body):
		return "", nil
	default:
		words, key = fate(run), fmt.Sprintf("run/%d/words", run.ID)
	}
	if asked, _ := run.Heard(n.Feedback.Review); asked && rewords(n.Feedback) {
		key = fmt.Sprintf("run/%d/review/%d/edited", run.ID, n.Feedback.Review)
		if !run.State.Ended() && run.Published.Pull != nil {
			words = fmt.Sprintf("These words alone change nothing: what they said before counts as done. To have more changed, request changes in a review of #%d.", run.Published.Pull.Number)
		}
	}
	if words == "" {
		return "", nil
	}
	may, err := e.mayWrite(ctx, n)
	if !may || err != nil {
		return "", err
	}
	if f := n.Feedback; f.Event == "pull_request_review_comment" && f.Action == "created" { // it may be a requested change, of which another delivery tells
		asked, err := e.requested(ctx, n)
		if err != nil || len(asked.Findings) > 0 {
			return "", err
		}
	}
	if may, _, _, err = e.within(ctx, key, "", tells); !may || err != nil { // it stands there
		return "", err
	}
	told := *p
	told.notice.Thread, told.notice.Comment, told.notice.Reviewed = 0, n.Feedback.Review, true // all in one place, where the key is found again
	if len(n.Feedback.Comments) > 0 {
		told.notice.Comment, told.notice.Reviewed = n.Feedback.Comments[0], false
	}
	return ", " + n.Actor.Login + " is told what such words do", e.replyOnce(ctx, &told, words, key)
}

// unanswered says what answers the open question in place of an approval; "" where that does, or
// there is none.
func unanswered(run *pipeline.Run, n pipeline.Notice) string {
	f, g := n.Feedback, run.Gate()
	if f == nil || f.Event != "pull_request_review" || f.Action != "submitted" || f.State != "approved" || g == nil || n.Actor.Bot {
		return ""
	}
	approval := pipeline.Notice{Kind: pipeline.NoticeReviewed, Actor: n.Actor, Verdict: f.State}
	if events, _ := run.Notice(approval, f.At); len(events) > 0 {
		return ""
	}
	words := fmt.Sprintf("An approval alone does not answer what run %d asks.", run.ID)
	for _, c := range g.Choices {
		if c.Name == "accept" || c.Name == "approve" {
			words += fmt.Sprintf(" `%s`: %s.", command.Write(run.Slug, strings.TrimSpace(c.Name+" "+c.Arg)), c.Label)
		}
	}
	return words + " Whoever dismisses a review takes back what it requested."
}

// asks reports whether a notice is of words of a person's own, in a place where they may ask
// for something: not in an answer to what Forge said, which is feedback.
func asks(run *pipeline.Run, n pipeline.Notice) bool {
	f := n.Feedback
	if f == nil || n.Actor.Bot || f.Author.Bot || n.Command.Name != "" || strings.TrimSpace(f.Body) == "" {
		return false
	}
	if f.State == "dismissed" || f.State == "changes_requested" && f.Action == "submitted" {
		return false
	}
	if f.Action != "created" && f.Action != "submitted" && f.Action != "edited" || f.Event == "pull_request_review_thread" {
		return false
	}
	for _, a := range run.Published.Artefacts {
		if f.ReplyTo != 0 && a.ID == f.ReplyTo {
			return false
		}
	}
	return true
}

// fate says what becomes of words that nobody requests as changes; "" where a later phase
// reads them, a person is asked anyway, or nothing can come of them.
func fate(run *pipeline.Run) string {
	it, a := run.Current(), run.Active
	again := fmt.Sprintf("`%s` with the words on the lines below it", command.Write(run.Slug, "continue"))
	switch {
	case run.Part != nil || run.Published.Pull == nil:
	case run.Reopenable():
		return fmt.Sprintf("These words alone change nothing: run %d is %s. To have the work changed, request changes in a review of #%d, or write %s.", run.ID, run.State, run.Published.Pull.Number, again)
	case run.State == pipeline.StateRunning && it != nil && (it.Review != nil || a != nil && a.Phase == pipeline.PhaseReview):
		return fmt.Sprintf("The review of %s may have begun without these words. If the work goes back, the next round reads them; if it is verified first, they alone change nothing. "+
			"Requested changes in a review of #%d send it back now; once it is verified, so does %s.", text.ShortSHA(run.Head), run.Published.Pull.Number, again)
	}
	return ""
}

// onIssue takes in what was said on an issue without a command: agents read it there.
func (e *Engine) onIssue(ctx context.Context, run *pipeline.Run, p *inbound) error {
	outcome, told := p.notice.Why, ""
	if run != nil {
		var err error
		if told, err = e.unheard(ctx, run, p); err != nil {
			return err
		}
		if told != "" {
			outcome = fmt.Sprintf("run %d: %s%s", run.ID, outcome, told)
		}
	}
	return e.store.Tx(ctx, func(ctx context.Context, tx *Tx) error { return e.settle(ctx, tx, p, outcome, told == "") })
}
