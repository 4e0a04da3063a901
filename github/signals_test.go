package github

import (
	"testing"

	"forge/github/render/rendertest"
	"forge/pipeline"
)

// Bots and foreign repositories give no signals, and cost no call.
func TestSignalsOfNobody(t *testing.T) {
	t.Parallel()
	f, alice := newFake(t), pipeline.Actor{ID: 7, Login: "alice"}
	a := f.app(t)
	run := &pipeline.Run{Repo: rendertest.Repo(), Published: pipeline.Publication{Pull: &pipeline.PullRef{Number: 8}}}
	fb := &pipeline.Feedback{Event: "pull_request_review_thread", Action: "resolved"}
	other := rendertest.Repo()
	other.ID++
	unpublished := &pipeline.Run{Repo: rendertest.Repo()}
	for name, c := range map[string]struct {
		run *pipeline.Run
		n   pipeline.Notice
	}{
		"a bot":              {run, pipeline.Notice{Repo: rendertest.Repo(), Actor: pipeline.Actor{ID: 50, Bot: true}, Feedback: fb}},
		"another repository": {run, pipeline.Notice{Repo: other, Actor: alice, Feedback: fb}},
		"no feedback":        {run, pipeline.Notice{Repo: rendertest.Repo(), Actor: alice}},
		"no pull request":    {unpublished, pipeline.Notice{Repo: rendertest.Repo(), Actor: alice, Feedback: fb}},
		"no run":             {nil, pipeline.Notice{Repo: rendertest.Repo(), Actor: alice, Feedback: fb}},
	} {
		if got, err := a.Signals(t.Context(), c.run, c.n, nil); err != nil || got != nil || f.calls != 0 {
			t.Errorf("%s: %v, %v after %d calls; want nothing at no cost", name, got, err, f.calls)
		}
	}
	if got, err := a.Poll(t.Context(), unpublished, nil); err != nil || got != nil || f.calls != 0 {
		t.Errorf("polling without a pull request: %v, %v after %d calls", got, err, f.calls)
	}
}
