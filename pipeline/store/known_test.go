package store

import (
	"errors"
	"fmt"
	"testing"

	"forge/pipeline"

	"github.com/google/go-cmp/cmp"
)

// toTests plays a run up to its test report.
func toTests(t *testing.T, d *DB, issue int, tests pipeline.TestReport) *pipeline.Run {
	t.Helper()
	run := begin(t, d, issue)
	ref := func(p pipeline.Phase, it int) *pipeline.PhaseRef {
		return &pipeline.PhaseRef{Phase: p, Iteration: it, Attempt: 1}
	}
	enter := func(id string, p *pipeline.PhaseRef) pipeline.Event {
		return ev("enter/"+id, pipeline.EventPhaseEntered, 1, pipeline.Data{Phase: p})
	}
	done := func(id string, data pipeline.Data) pipeline.Event {
		return ev("done/"+id, pipeline.EventPhaseCompleted, 2, data)
	}
	plan, implement, review, test := ref(pipeline.PhasePlan, 0), ref(pipeline.PhaseImplement, 1), ref(pipeline.PhaseReview, 1), ref(pipeline.PhaseTest, 1)
	tests.Head = "h1"
	add(t, d, run,
		enter("plan", plan), done("plan", pipeline.Data{Phase: plan, Plan: &pipeline.Plan{}, Tests: &pipeline.TestReport{Passed: 1, Names: []string{"TestNew"}}}),
		enter("implement", implement), done("implement", pipeline.Data{Phase: implement, Implementation: &pipeline.Implementation{Parent: run.Base, Head: "h1"}}),
		enter("review", review), done("review", pipeline.Data{Phase: review, Review: &pipeline.Review{Head: "h1", Ruled: true}}),
		enter("test", test), done("test", pipeline.Data{Phase: test, Tests: &tests}),
		ev("shown", pipeline.EventPublishCompleted, 3, pipeline.Data{Publication: &pipeline.Publication{Rev: 1, Head: "h1", Pull: &pipeline.PullRef{Number: 3}}}),
	)
	return run
}

// Covers V3: what a person called known is kept for the repository until it passes at
// the base, and not because it passes on somebody's branch.
func TestKnownFailures(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := toTests(t, d, 5, pipeline.TestReport{Passed: 2, Before: []pipeline.Failure{{Test: "TestOld", Key: "k1"}, {Test: "Test\x00Odd"}}})
		repo := run.Repo
		is := func(what string, want map[string]string) {
			t.Helper()
			list, err := d.KnownFailures(t.Context(), repo)
			must(t, err)
			got := map[string]string{}
			for test, k := range list {
				got[test] = fmt.Sprintf("%s of %q for #%d at %s", k.Login, k.Error, k.Pull, k.Head)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", what, diff)
			}
		}
		is("before", map[string]string{})
		gate := pipeline.Decide(run).Events[1].Data.Gate
		answer := &pipeline.Answer{Gate: gate.ID, Choice: "approve", By: pipeline.Actor{Login: "ann"}}
		add(t, d, run, ev("asked", pipeline.EventGateRequested, 4, pipeline.Data{Gate: gate}),
			ev("answered", pipeline.EventGateAnswered, 5, pipeline.Data{Answer: answer}))
		is("called known", map[string]string{"TestOld": `ann of "k1" for #3 at h1`, "Test\uFFFDOdd": `ann of "" for #3 at h1`})

		toTests(t, d, 6, pipeline.TestReport{Passed: 2, Names: []string{"TestNew", "TestOld"}})
		is("passed on a branch", map[string]string{"TestOld": `ann of "k1" for #3 at h1`, "Test\uFFFDOdd": `ann of "" for #3 at h1`})

		other := begin(t, d, 7)
		plan := &pipeline.PhaseRef{Phase: pipeline.PhasePlan, Attempt: 1}
		add(t, d, other, ev("enter", pipeline.EventPhaseEntered, 1, pipeline.Data{Phase: plan}),
			ev("done", pipeline.EventPhaseCompleted, 2,
				pipeline.Data{Phase: plan, Plan: &pipeline.Plan{}, Tests: &pipeline.TestReport{Passed: 2, Names: []string{"TestNew", "TestOld"}}}))
		is("passed at the base", map[string]string{"Test\uFFFDOdd": `ann of "" for #3 at h1`})

		repo = pipeline.Repo{Name: "site", CloneURL: "/home/ann/site"}
		is("of another repository", map[string]string{})
	})
}

// Covers T9: a reopened run is active again, unless another one is by now.
func TestReopen(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := toTests(t, d, 5, pipeline.TestReport{Passed: 2})
		add(t, d, run, ev("verified", pipeline.EventRunVerified, 4, pipeline.Data{}))
		want(t, "state", run.State, pipeline.StateVerified)
		other := begin(t, d, 6)
		_, err := d.SQL().Exec(`UPDATE runs SET issue = 5 WHERE id = $1`, other.ID)
		must(t, err)

		reopened := ev("reopened", pipeline.EventRunReopened, 5, pipeline.Data{Note: "ann pushed h2", Head: "h2"})
		var active *ActiveError
		if err := d.Append(t.Context(), run, []pipeline.Event{reopened}, nil); !errors.As(err, &active) || active.Run != other.ID ||
			run.State != pipeline.StateVerified {
			t.Errorf("reopened beside an active run: %v, %s", err, run.State)
		}
		add(t, d, other, ev("cancelled", pipeline.EventRunCancelled, 6, pipeline.Data{}))
		add(t, d, run, reopened)
		want(t, "state", run.State, pipeline.StateRunning)
		id, err := d.Find(t.Context(), repoID, 5, 0, "")
		must(t, err)
		want(t, "the issue's run", id, run.ID)
		ids, err := d.Active(t.Context(), repoID)
		must(t, err)
		want(t, "active runs", len(ids), 1)
		due, _, err := d.Due(t.Context(), now, 10)
		must(t, err)
		want(t, "due runs", len(due), 2)
	})
}

// Covers T8: a withdrawn finding is one in a state of its own.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := begin(t, d, 5)
		run.Findings = []pipeline.Issue{{Phase: pipeline.PhaseReview, State: "withdrawn",
			Finding: &pipeline.Finding{Fingerprint: "f1", Severity: pipeline.SeverityError}}}
		old := *run
		old.Findings = nil
		tx, err := d.SQL().BeginTx(t.Context(), nil)
		must(t, err)
		must(t, d.projectIssues(t.Context(), tx, run.ID, old.Findings, run.Findings))
		must(t, tx.Commit())
		want(t, "withdrawn findings", count(t, d, `SELECT COUNT(*) FROM findings WHERE state = 'withdrawn'`), 1)
	})
}
