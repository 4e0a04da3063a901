package server_test

import (
	"slices"
	"strings"
	"testing"

	"forge/cmd/forge/server/servertest"
	"forge/pipeline"
)

// A labelled issue's open sub-issues, its type, what it is part of and what it waits for
// are told the planner and stand in the plan; an issue without them has none.
func TestRelatedIssues(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{})
	acme := ts.GitHub.As("acme")
	open := func(title string) int {
		t.Helper()
		n, err := acme.OpenIssue(servertest.Repo, title, "of its own")
		ts.Must(err)
		return n
	}
	above, task, sub, done := open("Greet well"), open("The greeting lacks its comma"), open("Greet in *French*,\n@bob"), open("Greet in German")
	ts.Must(acme.Relate(servertest.Repo, task, above, false))
	ts.Must(acme.Relate(servertest.Repo, sub, task, true))
	ts.Must(acme.Relate(servertest.Repo, done, task, true))
	ts.Must(acme.Close(servertest.Repo, done))
	ts.Must(acme.SetType(servertest.Repo, task, "Bug"))
	ts.Issue = task
	ts.Must(acme.Label(servertest.Repo, task, "forge"))
	run := ts.UntilState(pipeline.StateVerified)
	want := []string{"its type: Bug", "it is part of #2 Greet well", "open sub-issue #4 Greet in *French*, @bob", "it is marked as blocked by 1 open issue"}
	if !slices.Equal(run.Plan.Related, want) {
		t.Errorf("related: %q, want %q", run.Plan.Related, want)
	}
	ts.Says("**Related issues**")
	if said := ts.Comments(); strings.Contains(said, "@bob") || !strings.Contains(said, "open sub-issue") {
		t.Errorf("the status comment says\n%s", said)
	}
}
