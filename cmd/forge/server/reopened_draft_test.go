package server_test

import (
	"testing"

	"forge/cmd/forge/server/servertest"
	"forge/pipeline"
)

// A verified pull request that a person has turned back to a draft stays one, whatever is verified after that.
func TestDraftStays(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	ready := func() bool {
		pulls, err := ts.GitHub.Pulls(servertest.Repo)
		ts.Must(err)
		return len(pulls) == 1 && !pulls[0].Draft
	}
	ts.Must(ts.GitHub.Wait(t.Context(), ready))
	ts.Must(ts.GitHub.As("acme").SetDraft(servertest.Repo, run.Published.Pull.Number, true))
	ts.Push(run.Branch, "Say why", map[string]string{"WHY.md": "because\n"})
	ts.Until("verified again, and published", func(r *pipeline.Run) bool {
		return r.State == pipeline.StateVerified && r.Head != run.Head && r.Published.Rev == r.Rev
	})
	if ready() {
		t.Error("it has left draft again")
	}
}
