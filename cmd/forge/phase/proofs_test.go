package phase

import (
	"slices"
	"testing"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/proof"
)

// Tests are looked at as proofs where they are named, and where the settings ask for it.
func TestNamedProofs(t *testing.T) {
	for mode, want := range map[config.Proofs][]string{"": nil, config.ProofsWarn: {"TestA", "TestB"}, config.ProofsRequire: {"TestA", "TestB"}} {
		run := &pipeline.Run{Plan: &pipeline.Plan{Criteria: []pipeline.Criterion{{ID: "AC1"}, {ID: "AC2"}}}}
		run.Iterations = []pipeline.Iteration{{Number: 1, Impl: &pipeline.Implementation{Proofs: []proof.Claim{{Criterion: "AC1", Tests: []string{"TestA", "TestB"}}}}}}
		run.Config.Loop.Proofs = mode
		if got := namedProofs(run); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", mode, got, want)
		}
	}
}
