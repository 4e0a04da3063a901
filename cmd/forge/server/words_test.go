package server_test

import (
	"strings"
	"testing"

	"forge/cmd/forge/server/servertest"
	"forge/github/githubtest"
	"forge/pipeline"
)

// speak says what may be wrong on a pull request, in three ways that are no requested changes.
func speak(ts *servertest.Server, pull int) {
	ts.T.Helper()
	acme := ts.GitHub.As("acme")
	_, err := acme.Comment(servertest.Repo, pull, "WORD-PULL it fails for an empty name")
	ts.Must(err)
	ts.Must(acme.Review(servertest.Repo, pull, githubtest.Review{Event: "COMMENT", Body: "WORD-REVIEW fix it, please", Path: "greet.sh", Line: 1, Comment: "WORD-LINE this is wrong"}))
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
	ts := servertest.New(t, servertest.Options{Tape: tape, On: func(ts *servertest.Server, r *pipeline.Run, e pipeline.Event) {
		switch {
		case e.Type == pipeline.EventPhaseCompleted && e.Data.Phase.Phase == pipeline.PhaseImplement && !implemented: // the review reads anew
			implemented = true
			ts.Comment("acme", "WORD-ISSUE names may have spaces")
		case e.Type == pipeline.EventBounce && r.Published.Pull != nil && !spoke:
			spoke = true
			speak(ts, r.Published.Pull.Number)
		}
	}})
	ts.Label("acme")
	run := ts.Until("ends or asks", func(r *pipeline.Run) bool { return r.State != pipeline.StateRunning })
	if !spoke || run.State != pipeline.StateVerified || len(run.Iterations) != 2 {
		t.Errorf("spoke %v, it is %s after %d iterations: %+v", spoke, run.State, len(run.Iterations), run.Fault)
	}
}

// hints are Forge's answers on a pull request to words that change nothing.
func hints(ts *servertest.Server, pull int) (out []string) {
	ts.T.Helper()
	pulls, err := ts.GitHub.Pulls(servertest.Repo)
	ts.Must(err)
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
	ts := servertest.New(t, servertest.Options{})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateVerified)
	pull := run.Published.Pull.Number
	acme := ts.GitHub.As("acme")
	_, err := acme.Comment(servertest.Repo, pull, "Thanks!")
	ts.Must(err)
	_, err = ts.GitHub.As("eve").Comment(servertest.Repo, pull, "This must not be merged")
	ts.Must(err)
	ts.Outcome("issue_comment", "nothing new: issue comment created by eve")
	if got := hints(ts, pull); len(got) > 0 {
		t.Errorf("thanks and strangers are told %q", got)
	}
	ts.Must(acme.Review(servertest.Repo, pull, githubtest.Review{Event: "COMMENT", Path: "greet.sh", Line: 1, Comment: "This is wrong for names with spaces."}))
	ts.Outcome("pull_request_review_comment", "acme is told what such words do")
	_, err = acme.Comment(servertest.Repo, pull, "It also fails for an empty name.")
	ts.Must(err)
	ts.Outcome("issue_comment", "nothing new: issue comment created by acme")
	got := hints(ts, pull)
	if len(got) != 1 || !strings.Contains(got[0], "#discussion_r") || !strings.Contains(got[0], "request changes in a review") || !strings.Contains(got[0], "`/forge continue`") {
		t.Errorf("it says %q", got)
	}
	_, err = acme.Comment(servertest.Repo, ts.Issue, "It also fails for two names.")
	ts.Must(err)
	ts.Says("These words alone change nothing: run 1 is verified")
}

// asked is a review of a person that requests changes, with its comment on a line.
func asked(ts *servertest.Server, pull int) (review, comment int64) {
	ts.T.Helper()
	pulls, err := ts.GitHub.Pulls(servertest.Repo)
	ts.Must(err)
	for _, p := range pulls {
		if p.Number != pull {
			continue
		}
		for _, v := range p.Reviews {
			if v.State == "CHANGES_REQUESTED" {
				review = v.ID
			}
		}
		for _, t := range p.Threads {
			for _, c := range t.Comments {
				if c.Author == "acme" {
					comment = c.ID
				}
			}
		}
	}
	return review, comment
}

// What a review asks for is what it says by the time that somebody works on it: its text is
// edited and its comment deleted while the rework waits. A stranger's edit changes nothing.
func TestRequestedChangesAreEdited(t *testing.T) {
	t.Parallel()
	tape := servertest.GreeterTape + "-- implementer 2/1 --\n@expect Write down the reason.\n>>> write\npath: NOTES.md\ncontent: \"greets politely\\n\"\n-- implementer 2/2 --\n>>> submit\nsummary: Write it down\naddressed: [{id: F1, what: written down}]\n" +
		"-- quality 2/1 --\n@expect asked for by a person] Write down the reason.\n>>> submit\nsummary: Written down.\nrisk: 1\nfindings: []\nrulings: [{id: F1, verdict: fixed, why: see NOTES.md}]\n"
	ts := servertest.New(t, servertest.Options{Tape: tape, On: once(pipeline.EventPhaseApproved, func(ts *servertest.Server, r *pipeline.Run) {
		pull := r.Published.Pull.Number
		acme := ts.GitHub.As("acme")
		ts.Must(acme.Review(servertest.Repo, pull, githubtest.Review{Event: "REQUEST_CHANGES", Body: "Write down why.", Path: "greet.sh", Line: 1, Comment: "This needs a note."}))
		ts.Outcome("pull_request_review", "2 changes requested")
		review, comment := asked(ts, pull)
		ts.Must(acme.EditReview(servertest.Repo, pull, review, "Write down the reason."))
		ts.Outcome("pull_request_review", "1 requested change has other words now")
		ts.Must(acme.DeleteComment(servertest.Repo, comment))
		ts.Outcome("pull_request_review_comment", "1 requested change is taken back")
	})})
	ts.Label("acme")
	run := ts.Until("ends or asks", func(r *pipeline.Run) bool { return r.State != pipeline.StateRunning })
	if run.State != pipeline.StateVerified || len(run.Iterations) != 2 || len(run.Notes) != 1 || !strings.Contains(run.Notes[0], "Write down the reason.") {
		t.Errorf("it is %s after %d iterations, notes %q", run.State, len(run.Iterations), run.Notes)
	}
	pull := run.Published.Pull.Number
	review, _ := asked(ts, pull)
	ts.Must(ts.GitHub.As("acme").EditReview(servertest.Repo, pull, review, "Write down all reasons."))
	ts.Outcome("pull_request_review", "acme is told what such words do")
	if got := hints(ts, pull); len(got) != 1 || !strings.Contains(got[0], "run 1 is verified") || !strings.Contains(got[0], "request changes in a review") {
		t.Errorf("it says %q", got)
	}
}

// noted is the round that writes down what a review's text asks for.
const noted = "-- implementer 2/1 --\n>>> write\npath: NOTES.md\ncontent: \"greets politely\\n\"\n-- implementer 2/2 --\n>>> submit\nsummary: Write it down\n" +
	"addressed: [{id: F1, what: written down}]\n" +
	"-- quality 2/1 --\n>>> submit\nsummary: Written down.\nrisk: 1\nfindings: []\nrulings: [{id: F1, verdict: fixed, why: see NOTES.md}]\n"

// A review that is dismissed asks for nothing any more.
func TestRequestedChangesAreDismissed(t *testing.T) {
	t.Parallel()
	ts := servertest.New(t, servertest.Options{On: once(pipeline.EventPhaseApproved, func(ts *servertest.Server, r *pipeline.Run) {
		pull := r.Published.Pull.Number
		acme := ts.GitHub.As("acme")
		ts.Must(acme.Review(servertest.Repo, pull, githubtest.Review{Event: "REQUEST_CHANGES", Body: "Write down why.", Path: "greet.sh", Line: 1, Comment: "This needs a note."}))
		ts.Outcome("pull_request_review", "2 changes requested")
		review, _ := asked(ts, pull)
		ts.Must(acme.Dismiss(servertest.Repo, pull, review, "Seen too late: it is written down."))
		ts.Outcome("pull_request_review", "2 requested changes are taken back")
	})})
	ts.Label("acme")
	run := ts.Until("ends or asks", func(r *pipeline.Run) bool { return r.State != pipeline.StateRunning })
	if run.State != pipeline.StateVerified || len(run.Iterations) != 1 || len(run.Notes) != 0 {
		t.Errorf("it is %s after %d iterations, notes %q", run.State, len(run.Iterations), run.Notes)
	}
}

// Where a human is asked because nothing is done, an approval is told what does answer, and
// changes that are requested are the answer.
func TestReviewsAtTheGate(t *testing.T) {
	t.Parallel()
	tape := servertest.GreeterTape + "-- implementer 2/1 --\n>>> submit\nsummary: Nothing to do\naddressed: [{id: F1, what: it was thought about}]\n" + strings.NewReplacer("implementer 2/", "implementer 2@3/",
		"addressed: [", "addressed: [{id: F2, what: written down}, ", "rulings: [", "rulings: [{id: F2, verdict: fixed, why: see NOTES.md}, ").Replace(noted)
	ts := servertest.New(t, servertest.Options{Tape: tape, On: once(pipeline.EventPhaseApproved, func(ts *servertest.Server, r *pipeline.Run) {
		ts.Must(ts.GitHub.As("acme").Review(servertest.Repo, r.Published.Pull.Number, githubtest.Review{Event: "REQUEST_CHANGES", Body: "Think about it."}))
		ts.Outcome("pull_request_review", "1 change requested")
	})})
	ts.Label("acme")
	run := ts.UntilState(pipeline.StateWaiting)
	pull := run.Published.Pull.Number
	ts.Must(ts.GitHub.As("acme").Review(servertest.Repo, pull, githubtest.Review{Event: "APPROVE"}))
	ts.Outcome("pull_request_review", "acme is told what such words do")
	if said := ts.Comments(); !strings.Contains(said, "An approval alone does not answer what run 1 asks. `/forge accept`: take it as it is") {
		t.Errorf("it says %s", said)
	}
	ts.Must(ts.GitHub.As("acme").Review(servertest.Repo, pull, githubtest.Review{Event: "REQUEST_CHANGES", Body: "Write down why."}))
	run = ts.Until("ends or asks", func(r *pipeline.Run) bool { return r.Gates[0].Closed && r.State != pipeline.StateRunning })
	if run.State != pipeline.StateVerified || len(run.Iterations) != 2 || len(run.Findings) != 2 {
		t.Errorf("it is %s after %d iterations: %+v", run.State, len(run.Iterations), run.Gate())
	}
}
