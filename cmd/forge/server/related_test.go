package server

import (
	"slices"
	"strings"
	"testing"

	"forge/pipeline"
)

// A labelled issue's open sub-issues, its type, what it is part of and what it waits for
// are told the planner and stand in the plan; an issue without them has none.
func TestRelatedIssues(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{})
	acme := ts.gh.As("acme")
	open := func(title string) int {
		t.Helper()
		n, err := acme.OpenIssue(greetRepo, title, "of its own")
		ts.must(err)
		return n
	}
	above, task, sub, done := open("Greet well"), open("The greeting lacks its comma"), open("Greet in *French*,\n@bob"), open("Greet in German")
	ts.must(acme.Relate(greetRepo, task, above, false))
	ts.must(acme.Relate(greetRepo, sub, task, true))
	ts.must(acme.Relate(greetRepo, done, task, true))
	ts.must(acme.Close(greetRepo, done))
	ts.must(acme.SetType(greetRepo, task, "Bug"))
	ts.issue = task
	ts.must(acme.Label(greetRepo, task, "forge"))
	run := ts.untilState(pipeline.StateVerified)
	want := []string{"its type: Bug", "it is part of #2 Greet well", "open sub-issue #4 Greet in *French*, @bob", "it is marked as blocked by 1 open issue"}
	if !slices.Equal(run.Plan.Related, want) {
		t.Errorf("related: %q, want %q", run.Plan.Related, want)
	}
	ts.says("**Related issues**")
	if said := ts.comments(); strings.Contains(said, "@bob") || !strings.Contains(said, "open sub-issue") {
		t.Errorf("the status comment says\n%s", said)
	}
}
