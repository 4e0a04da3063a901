package pipeline

import (
	"strings"
	"testing"

	"forge/pipeline/lock"
)

// What lock files have gained is known from the last iteration that brought one in line; of
// a phase that is over, and in logs from before, nothing is.
func TestLocked(t *testing.T) {
	t.Parallel()
	ref := PhaseRef{Phase: PhaseImplement, Iteration: 1, Attempt: 1}
	run := &Run{State: StateRunning}
	run.Iterations, run.Active = []Iteration{{Number: 1}}, &ref
	if run.Locked() != nil {
		t.Error("something is locked from the beginning")
	}
	late := ref
	late.Attempt = 2
	one := &lock.Update{Files: []string{"go.sum"}}
	run.Apply(Event{Seq: 1, Type: EventLockUpdated, Data: Data{Phase: &late, Lock: &lock.Update{}}})
	run.Apply(Event{Seq: 2, Type: EventLockUpdated, Data: Data{Phase: &ref, Lock: one}})
	run.Iterations = append(run.Iterations, Iteration{Number: 2})
	if got := run.Locked(); got != one {
		t.Errorf("Locked = %+v, want that of the phase that was active", got)
	}
}

// What lock files say and no manifest asks for stands in the report.
func TestReportOfLockedAlone(t *testing.T) {
	t.Parallel()
	run := &Run{}
	run.Iterations = []Iteration{{Number: 1, Review: &Review{}}}
	const said = "Installed, and not as a manifest asks for it: "
	if got := run.Report(1); strings.Contains(got, said) {
		t.Errorf("nothing was locked:\n%s", got)
	}
	run.Iterations[0].Review.LockedAlone = []string{"package-lock.json: ms 2.1.3 → 2.1.0"}
	if got := run.Report(1); !strings.Contains(got, said+"package-lock.json: ms 2.1.3 → 2.1.0") {
		t.Errorf("the report does not say so:\n%s", got)
	}
}
