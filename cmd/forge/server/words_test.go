package server

import (
	"strings"
	"testing"

	"forge/cmd/forge/server/servertest"
	"forge/github/githubtest"
	"forge/pipeline"
)

// speak says what may be wrong on a pull request, in three ways that are no requested changes.
func (ts *testServer) speak(pull int) {
	ts.t.Helper()
	acme := ts.gh.As("acme")
	_, err := acme.Comment(greetRepo, pull, "WORD-PULL it fails for an empty name")
	ts.must(err)
	ts.must(acme.Review(greetRepo, pull, githubtest.Review{Event: "COMMENT", Body: "WORD-REVIEW fix it, please", Path: "greet.sh", Line: 1, Comment: "WORD-LINE this is wrong"}))
}

// Covers D5: what people with write access say beside requested changes, on the issue and on
// the pull request, is in the prompts of whoever works on it next.
func TestWordsReachTheAgents(t *testing.T) {
	t.Parallel()
	expect := "@expect WORD-ISSUE\n@expect WORD-PULL\n@expect WORD-REVIEW\n@expect about greet.sh:1 as it was then\n@expect WORD-LINE\n"
	tape := strings.Replace(servertest.GreeterTape, "-- implementer */1 --", `-- implementer 2/1 --
`+expect+`>>> edit
path: greet.sh
old: "echo hello, $1"
new: "echo hello, \"$1\""
-- implementer 2/2 --
>>> submit
summary: Quote the name
addressed: [{id: F1, what: it is quoted}]
-- implementer */1 --`, 1)
	tape = strings.Replace(tape, "-- quality */1 --", `-- quality 1/1 --
@expect WORD-ISSUE
>>> submit
summary: Not what was said.
risk: 50
findings: [{severity: error, category: correctness, message: The name is split at spaces, file: greet.sh, line: 1, confidence: 0.9}]
-- quality 2/1 --
`+expect+`>>> submit
summary: Right.
risk: 1
findings: []
rulings: [{id: F1, verdict: fixed, why: it is quoted}]
-- quality */1 --`, 1)
	implemented, spoke := false, false
	ts := newTestServer(t, testOptions{tape: tape, on: func(ts *testServer, r *pipeline.Run, e pipeline.Event) {
		switch {
		case e.Type == pipeline.EventPhaseCompleted && e.Data.Phase.Phase == pipeline.PhaseImplement && !implemented: // the review reads anew
			implemented = true
			ts.comment("acme", "WORD-ISSUE names may have spaces")
		case e.Type == pipeline.EventBounce && r.Published.Pull != nil && !spoke:
			spoke = true
			ts.speak(r.Published.Pull.Number)
		}
	}})
	ts.label("acme")
	run := ts.until("ends or asks", func(r *pipeline.Run) bool { return r.State != pipeline.StateRunning })
	if !spoke || run.State != pipeline.StateVerified || len(run.Iterations) != 2 {
		t.Errorf("spoke %v, it is %s after %d iterations: %+v", spoke, run.State, len(run.Iterations), run.Fault)
	}
}

// hints are Forge's answers on a pull request to words that change nothing.
func (ts *testServer) hints(pull int) (out []string) {
	ts.t.Helper()
	pulls, err := ts.gh.Pulls(greetRepo)
	ts.must(err)
	for _, p := range pulls {
		for _, c := range p.Issue.Comments {
			if p.Number == pull && strings.Contains(c.Body, "alone change nothing") {
				out = append(out, c.Body)
			}
		}
	}
	return out
}

// Words that came when nothing reads them any more do not get lost in silence: whoever wrote
// them is told once what they have to do. Thanks are not answered, nor are strangers.
func TestWordsTooLate(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{})
	ts.label("acme")
	run := ts.untilState(pipeline.StateVerified)
	pull := run.Published.Pull.Number
	acme := ts.gh.As("acme")
	_, err := acme.Comment(greetRepo, pull, "Thanks, LGTM!")
	ts.must(err)
	_, err = ts.gh.As("eve").Comment(greetRepo, pull, "This must not be merged")
	ts.must(err)
	ts.outcome("issue_comment", "nothing new: issue comment created by eve")
	if got := ts.hints(pull); len(got) > 0 {
		t.Errorf("thanks and strangers are told %q", got)
	}
	ts.must(acme.Review(greetRepo, pull, githubtest.Review{Event: "COMMENT", Path: "greet.sh", Line: 1, Comment: "This is wrong for names with spaces."}))
	ts.outcome("pull_request_review_comment", "acme is told what such words do")
	_, err = acme.Comment(greetRepo, pull, "It also fails for an empty name.")
	ts.must(err)
	ts.outcome("issue_comment", "nothing new: issue comment created by acme")
	got := ts.hints(pull)
	if len(got) != 1 || !strings.Contains(got[0], "#discussion_r") || !strings.Contains(got[0], "request changes in a review") || !strings.Contains(got[0], "`/forge continue`") {
		t.Errorf("it says %q", got)
	}
	_, err = acme.Comment(greetRepo, ts.issue, "It also fails for two names.")
	ts.must(err)
	ts.says("These words alone change nothing: run 1 is verified")
}

// What comes while the last review or the tests are under way is answered, too.
func TestWordsDuringTheVerdict(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{on: once(pipeline.EventPhaseApproved, func(ts *testServer, r *pipeline.Run) {
		_, err := ts.gh.As("acme").Comment(greetRepo, r.Published.Pull.Number, "I do not like this at all: fix it")
		ts.must(err)
	})})
	ts.label("acme")
	run := ts.untilState(pipeline.StateVerified)
	ts.outcome("issue_comment", "acme is told what such words do")
	if got := ts.hints(run.Published.Pull.Number); len(got) != 1 {
		t.Errorf("it says %q", got)
	}
}

// Covers D5: a task that is edited after the verdict is what a reopened run plans for, and
// whoever edits it hears what makes it go on.
func TestEditedAfterTheVerdict(t *testing.T) {
	t.Parallel()
	tape := strings.Replace(servertest.GreeterTape, "-- implementer */1 --", `-- planner 1/1 --
@expect EDITWORD
>>> submit
summary: Quote the name, too
steps: [Edit greet.sh]
criteria: [{id: AC1, text: A comma follows hello}]
-- implementer 2/1 --
@expect EDITWORD
>>> edit
path: greet.sh
old: "echo hello, $1"
new: "echo hello, \"$1\""
-- implementer 2/2 --
>>> submit
summary: Quote the name
addressed: [{id: F1, what: it is quoted}]
-- quality 2/1 --
@expect EDITWORD
>>> submit
summary: Right.
risk: 1
findings: []
rulings: [{id: F1, verdict: fixed, why: it is quoted, evidence: "greet.sh:1"}]
-- implementer */1 --`, 1)
	ts := newTestServer(t, testOptions{tape: tape})
	ts.label("acme")
	run := ts.untilState(pipeline.StateVerified)
	ts.must(ts.gh.As("acme").EditIssue(greetRepo, ts.issue, "", "It prints `hello Ann` where `hello, Ann` is right. EDITWORD: names have spaces."))
	ts.says("Run 1 is verified for the text as it was.")
	ts.must(ts.gh.As("acme").Review(greetRepo, run.Published.Pull.Number, githubtest.Review{Event: "REQUEST_CHANGES", Body: "See the issue, it has changed."}))
	run = ts.until("comes to an end again", func(r *pipeline.Run) bool { return len(r.Reopened) == 1 && r.State != pipeline.StateRunning })
	if run.State != pipeline.StateVerified || len(run.PastPlans) != 1 || len(run.Iterations) != 2 {
		t.Errorf("it is %s after %d plans and %d iterations: %+v, %+v", run.State, len(run.PastPlans)+1, len(run.Iterations), run.Gate(), run.Fault)
	}
}
