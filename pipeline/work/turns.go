package work

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"forge/pipeline"
)

// turnWindow is what the limits of a place are for.
const turnWindow = time.Hour

// tells is how many turns over a limit still try to say that it is reached: what they say
// has one key, so that it stands there once even when the first try fails.
const tells = 3

// answers reports whether a delivery may still be answered where it came from. What talks to
// itself through Forge (two bots, or one that quotes it) has to come to an end. The words
// are what to say instead, and their key, when the limit has just been reached.
func (e *Engine) answers(ctx context.Context, p *inbound) (may bool, words, key string, err error) {
	n := p.notice
	number := cmp.Or(n.Issue, n.Pull)
	if n.Thread != 0 {
		may, words, key, err = e.within(ctx, fmt.Sprintf("answers/%d#%d/%d", n.Repo.ID, number, n.Thread), "this conversation", e.ThreadAnswers)
		if !may || err != nil {
			return may, words, key, err
		}
	}
	return e.within(ctx, fmt.Sprintf("answers/%d#%d", n.Repo.ID, number), "this place", e.Answers)
}

// within counts an answer in a place against its limit; 0 is none.
func (e *Engine) within(ctx context.Context, place, called string, limit int) (may bool, words, key string, err error) {
	if limit <= 0 {
		return true, "", "", nil
	}
	n, since, err := e.store.Turn(ctx, place, e.now(), turnWindow)
	if err != nil || n <= limit {
		return err == nil, "", "", err
	}
	if n <= limit+tells {
		words = fmt.Sprintf("Forge has answered %d times in %s within an hour, and is quiet here until %s. It still does what people with write access say.",
			limit, called, since.Add(turnWindow).UTC().Format("15:04 UTC"))
		key = fmt.Sprintf("quiet/%s/%d", place, since.Unix())
	}
	return false, words, key, nil
}

// remarked reports whether a delivery is looked at by itself: each remark on a pull request
// costs calls of GitHub, whoever made it. One too many is done with, in the given words; on
// a run's pull request the next poll finds it.
func (e *Engine) remarked(ctx context.Context, p *inbound, otherwise string) (bool, error) {
	n := p.notice
	if n.Kind != pipeline.NoticeFeedback || e.Observer == nil {
		return true, nil
	}
	may, _, _, err := e.within(ctx, fmt.Sprintf("remarks/%d#%d", n.Repo.ID, cmp.Or(n.Pull, n.Issue)), "", e.Remarks)
	if may || err != nil {
		return may, err
	}
	return false, e.conclude(ctx, p, fmt.Sprintf("%s: over %d remarks there within an hour", otherwise, e.Remarks))
}
