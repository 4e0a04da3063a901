package play

import (
	"forge/cmd/forge/server/servertest"
	"strings"
	"testing"

	"forge/github/githubtest"
	"forge/pipeline"
)

// Covers lessons 11, 18: doubled and shuffled deliveries make no difference.
func TestDeliveriesInDisorder(t *testing.T) {
	t.Parallel()
	ts := newServer(t, servertest.Options{})
	gh := ts.GitHub
	gh.SetDeliveryFaults(githubtest.DeliveryFaults{Duplicate: 1, Shuffle: 0.5})
	ts.Label("acme")
	ts.UntilState(pipeline.StateVerified)
	came := map[string]int{}
	for _, d := range gh.Deliveries() {
		came[d.GUID]++
	}
	if n := len(gh.Deliveries()) - len(came); n < 3 {
		t.Fatalf("%d deliveries came twice", n)
	}
	pulls, err := gh.Pulls(servertest.Repo)
	if err != nil || len(pulls) != 1 || len(pulls[0].Checks) != 1 {
		t.Fatalf("%v, %+v; want one pull request with one check", err, pulls)
	}
	issue, err := gh.Issue(servertest.Repo, 1)
	if err != nil {
		t.Fatal(err)
	}
	for where, comments := range map[string][]githubtest.Comment{"issue": issue.Comments, "pull request": pulls[0].Comments} {
		seen := map[string]bool{}
		for _, c := range comments {
			_, mark, _ := strings.Cut(c.Body, "<!-- forge:")
			if seen[mark] {
				t.Errorf("twice on the %s: %s", where, c.Body)
			}
			seen[mark] = true
		}
		if where == "issue" && len(seen) == 0 {
			t.Errorf("nothing is said on the %s", where)
		}
	}
}
