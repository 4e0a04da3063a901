package server

import (
	"testing"

	"forge/pipeline"
)

// A verified pull request that a person has turned back to a draft stays one, whatever is verified after that.
func TestDraftStays(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{})
	ts.label("acme")
	run := ts.untilState(pipeline.StateVerified)
	ready := func() bool {
		pulls, err := ts.gh.Pulls(greetRepo)
		ts.must(err)
		return len(pulls) == 1 && !pulls[0].Draft
	}
	ts.must(ts.gh.Wait(t.Context(), ready))
	ts.must(ts.gh.As("acme").SetDraft(greetRepo, run.Published.Pull.Number, true))
	ts.push(run.Branch, "Say why", map[string]string{"WHY.md": "because\n"})
	ts.until("verified again, and published", func(r *pipeline.Run) bool {
		return r.State == pipeline.StateVerified && r.Head != run.Head && r.Published.Rev == r.Rev
	})
	if ready() {
		t.Error("it has left draft again")
	}
}
