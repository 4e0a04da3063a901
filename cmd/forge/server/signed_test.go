package server_test

import (
	"testing"

	"forge/cmd/forge/server/servertest"
	"forge/github/githubtest"
	"forge/pipeline"
)

// Covers D3: a run whose branch must be signed is verified with commits that GitHub signed, also
// those that take the base in.
func TestRunWithSignedCommits(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{
		Files: map[string]string{".github/forge.yml": "tests:\n  commands: [sh test.sh]\nsignoff: true\nbranch_name: forge/{type}/{issue}\ncommit_message: \"[{issue}] {summary}\"\n"},
		On: func(ts *servertest.Server, run *pipeline.Run, e pipeline.Event) {
			if e.Type == pipeline.EventPhaseApproved && run.Counters.Updates == 0 {
				if _, err := ts.GitHub.As("acme").PushFiles(servertest.Repo, githubtest.Push{Branch: "main", Message: "Other work", Files: map[string]*string{"OTHER.md": new("x\n")}}); err != nil {
					ts.T.Error(err)
				}
			}
		},
	})
	ts.Must(ts.GitHub.SetRules(servertest.Repo, githubtest.Rule{Type: "required_signatures", Pattern: "forge/*"}, githubtest.Rule{Type: "pull_request", Pattern: "release"}))
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	if run.Branch != "forge/fix/1" || run.Counters.Updates != 1 || run.Counters.Moved != 0 {
		t.Errorf("branch %s, %d updates, %d moves", run.Branch, run.Counters.Updates, run.Counters.Moved)
	}
	n := ts.GitHub.Mutations()
	if n["graphql/createCommitOnBranch"] != 1 || n["repos/merge"] != 1 || n["git/push"] != 0 {
		t.Errorf("what was made: %v", n)
	}
	pulls, err := ts.GitHub.Pulls(servertest.Repo)
	ts.Must(err)
	if len(pulls) != 1 || pulls[0].Draft {
		t.Errorf("pull requests %+v", pulls)
	}
}

// What cannot be signed is not pushed: people are told why.
func TestRunThatCannotBeSigned(t *testing.T) {
	t.Parallel()

	ts := servertest.New(t, servertest.Options{Files: map[string]string{"greet.sh": "#!/bin/sh\necho hello $1\n"}})
	ts.Must(ts.GitHub.SetRules(servertest.Repo, githubtest.Rule{Type: "required_signatures", Pattern: "main"}))
	ts.Label("acme")
	ts.Says(`would take the executable bit of "greet.sh" away`)
	ts.Says("or change what the commit does")
	run := ts.Until("at a gate", func(r *pipeline.Run) bool { return r.Gate() != nil })
	if g := run.Gate().Guard; g.Name != pipeline.GuardPublish {
		t.Errorf("guard %+v", g)
	}
	if n := ts.GitHub.Mutations(); n["git/push"] != 0 || n["graphql/createCommitOnBranch"] != 0 {
		t.Errorf("what was made: %v", n)
	}
	// Without the rule, the same commit goes by git.
	ts.Must(ts.GitHub.SetRules(servertest.Repo))
	ts.Forge.ForgetSigning()
	ts.Comment("acme", "/forge continue")
	ts.UntilState(pipeline.StateVerified)
}
