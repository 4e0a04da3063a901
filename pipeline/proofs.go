package pipeline

import (
	"slices"

	"forge/pipeline/config"
	"forge/pipeline/proof"
	"forge/pipeline/testname"
)

// proofTest begins the name of the failure that a criterion without a proof is.
const proofTest = "proof/"

// Traces reports whether a plan says which words of the task each of its criteria is for.
func (r *Run) Traces() bool { return r.Config.Loop.Proofs.On() || r.Track.Above() }

// Claims are what the implementer names as shown, by criterion, since the plan was made.
func (r *Run) Claims() []proof.Claim { return r.claims(len(r.Iterations)) }

// claims are those up to an iteration.
func (r *Run) claims(last int) []proof.Claim {
	var out []proof.Claim
	for i := range r.Iterations[:last] {
		it := &r.Iterations[i]
		if it.Impl == nil || it.Number <= r.PlanIteration {
			continue
		}
		for _, c := range it.Impl.Proofs {
			c.Commit = it.Impl.Head
			out = proof.Merge(out, []proof.Claim{c})
		}
	}
	return out
}

// Proofs has a row for each criterion of the plan: the tests that the implementer, or the
// module that owns it, names for it up to an iteration, as they went in it. Where nothing was
// claimed, they are those of the reviewer's evidence that passed.
func (r *Run) Proofs(it *Iteration) []proof.Row {
	if r.Plan == nil || it == nil || it.Tests == nil {
		return nil
	}
	ran := proof.Ran{Passed: it.Tests.Names, Pending: it.Tests.Pending, Flaky: it.Tests.Flaky, Skipped: it.Tests.Skips, Trial: it.Tests.Trial,
		Same: testname.Same, Base: func(test string) string { return testname.Parse(test).Base }}
	for _, f := range slices.Concat(it.Tests.Failures, it.Tests.Before) {
		ran.Failed = append(ran.Failed, f.Test)
	}
	ran.Failed = append(ran.Failed, it.Tests.Accepted...)
	if r.Baseline != nil {
		ran.Before = r.Baseline.Names
	}
	said := r.evidence(it)
	var out []proof.Row
	for _, c := range r.Plan.Criteria {
		claim := r.shownBy(c, it.Number)
		row := ran.Row(claim, said[c.ID])
		if len(claim.Tests) == 0 && claim.Why == "" && !r.Config.Loop.Proofs.On() {
			row = ran.Row(proof.Claim{Criterion: c.ID, Tests: ran.Found(said[c.ID])}, said[c.ID])
		}
		row.Text, row.For = c.Text, c.For
		out = append(out, row)
	}
	return out
}

// shownBy is what is named for a criterion: the run's own, else that of the module which
// owns it. A module's run may call the criterion by another id.
func (r *Run) shownBy(c Criterion, last int) proof.Claim {
	for _, own := range r.claims(last) {
		if own.Criterion == c.ID {
			return own
		}
	}
	for i := range r.Parts {
		if tests := r.Parts[i].Proofs[c.Text]; len(tests) > 0 {
			return proof.Claim{Criterion: c.ID, Tests: tests, Commit: r.Parts[i].As}
		}
	}
	return proof.Claim{Criterion: c.ID}
}

// partProofs are the tests that a module's run names, by its criteria's words.
func (r *Run) partProofs() map[string][]string {
	var out map[string][]string
	for _, claim := range r.Claims() {
		for _, c := range r.Plan.Criteria {
			if c.ID == claim.Criterion {
				put(&out, c.Text, claim.Tests)
			}
		}
	}
	return out
}

// evidence is what the newest review that judged a criterion says of it, up to an iteration.
func (r *Run) evidence(it *Iteration) map[string]string {
	out := map[string]string{}
	for i := range r.Iterations[:it.Number] {
		if v := r.Iterations[i].Review; v != nil {
			for _, c := range v.Compliance {
				if delete(out, c.Criterion); c.Met {
					out[c.Criterion] = c.Evidence
				}
			}
		}
	}
	return out
}

// Unproved are the criteria that the tests of the current head do not show, as failures,
// where the settings require it and nothing else fails: whoever writes the missing test
// needs a head that passes.
func (r *Run) Unproved(t *TestReport) []Failure {
	it := r.Current()
	passed := t.None == "" && t.Unclean == "" && t.Passed > 0 && len(t.Failures)+len(t.Tampered) == 0 // what failed before may pass by a person's word
	if r.Config.Loop.Proofs != config.ProofsRequire || it == nil || !passed {
		return nil
	}
	now := *it
	now.Tests = t
	var out []Failure
	for _, row := range r.Proofs(&now) {
		lacks := row.Lacks()
		if lacks == "" || row.Unsure() { // another test would be no better known
			continue
		}
		f := Failure{Test: proofTest + row.Criterion, Error: "no test shows that " + row.Criterion + " is met: " + lacks,
			Cause: "proof", Analysis: row.Criterion + " says: " + row.Text, Confidence: 1,
			Fix: &Fix{Description: "Write a test that fails without the change and shows the criterion, or name the one that is there, in proofs, as the test runner prints its name."}}
		f.Fingerprint = f.Digest()
		out = append(out, f)
	}
	return out
}

// onlyProofs reports whether all that an iteration was for is that tests be named, and
// that it names some: then there need not be a commit.
func (r *Run) onlyProofs(it *Iteration) bool {
	if len(it.Impl.Proofs) == 0 || len(r.unresolved())+len(r.Requested) > 0 {
		return false
	}
	some := false
	for i := range r.Failures {
		if is := &r.Failures[i]; is.State == IssueOpen {
			if is.Failure.Cause != "proof" {
				return false
			}
			some = true
		}
	}
	return some
}
