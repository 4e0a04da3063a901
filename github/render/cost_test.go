package render

import (
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/module"
)

// Covers lessons 17: what is not known is not shown as $0.00 of $10.00.
func TestSpent(t *testing.T) {
	t.Parallel()
	run := &pipeline.Run{Config: config.Default()}
	run.Config.Limits.Tokens = 5000
	for _, tt := range []struct {
		usage pipeline.Usage
		want  string
	}{
		{pipeline.Usage{MicroUSD: 1_250_000, Input: 10}, "cost **$1.25** of $10.00"},
		{pipeline.Usage{Unpriced: 1200, Input: 1000, Output: 200}, "**cost unknown** (1200 tokens of 5000)"},
		{pipeline.Usage{Unpriced: 1200, MicroUSD: 1_250_000, Input: 2000, Output: 200}, "cost **$1.25 + cost unknown** of $10.00 (2200 tokens of 5000)"},
	} {
		run.Usage = tt.usage
		if got := spent(run); got != tt.want {
			t.Errorf("%+v is shown as %q, want %q", tt.usage, got, tt.want)
		}
	}
	run.Usage = pipeline.Usage{MicroUSD: 1_000_000, Input: 10}
	run.Parts = []module.Part{{ID: "a", MicroUSD: 500_000, Tokens: 10}, {ID: "b", Tokens: 80, Unpriced: 80}}
	if got, want := spent(run), "cost **$1.50 + cost unknown** of $10.00 (100 tokens of 5000)"; got != want {
		t.Errorf("with modules it is shown as %q, want %q", got, want)
	}
	run.Parts = nil
	run.Usage = pipeline.Usage{Unpriced: 1200, Input: 1200}
	run.Spent = map[pipeline.Phase]pipeline.Usage{pipeline.PhasePlan: run.Usage}
	if got := testView(run).phases(); !strings.Contains(got, "cost unknown") {
		t.Errorf("the phases show no unknown cost:\n%s", got)
	}
}
