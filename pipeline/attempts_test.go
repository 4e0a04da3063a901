package pipeline_test

import (
	"testing"

	. "forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/pipelinetest"

	"github.com/google/go-cmp/cmp"
)

// Covers R5: of every attempt it is kept which it was, who began it and when, what was
// said of it in one line, and what came of it.
func TestAttempts(t *testing.T) {
	t.Parallel()
	p := pipelinetest.New(config.Default(), Task{Issue: 1})
	if err := p.Play("plan ok\nimplement a\nreview error it rounds twice\nimplement b\nreview ok\ntest TestRound 0.9\nimplement c\nreview ok\n"); err != nil {
		t.Fatal(err)
	}
	p.Step()
	type attempt struct {
		Number int
		Mode   Mode
		Result Result
		Brief  string
	}
	var got []attempt
	for i, it := range p.Run.Iterations {
		got = append(got, attempt{it.Number, it.Mode, it.Result, it.Brief})
		if it.Started.IsZero() || it.Ended.IsZero() != (it.Result == ResultInProgress) || i > 0 && it.Started.Before(p.Run.Iterations[i-1].Ended) {
			t.Errorf("attempt %d: started %s, ended %s", it.Number, it.Started, it.Ended)
		}
	}
	want := []attempt{{1, ModeFresh, ResultFailed, "1 error"}, {2, ModeFixFindings, ResultFailed, "1 failing test"}, {3, ModeFixFailures, ResultInProgress, ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
