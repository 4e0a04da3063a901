package metrics

import (
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/upstream"
)

// A matter that comes again did not hold, and a human was asked about it; one that does
// not, held. A run that lets agents tell nobody adds nothing.
func TestUpstream(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 8, 0, 0, 0, 0, time.UTC)
	ask := func(kind upstream.Kind, about string) upstream.Feedback {
		return upstream.Feedback{Kind: kind, State: upstream.Resolved, Raised: at, Taken: at.Add(2 * time.Second),
			Ask: upstream.Ask{About: []string{about}}}
	}
	again := ask(upstream.Missed, "AC1")
	again.Why, again.Taken = "it came again", time.Time{}
	for _, on := range []bool{true, false} {
		m := measurer{sums: sums{}, ended: at}
		m.run.State = pipeline.StateVerified
		m.run.Config.Upstream.Enabled = on
		m.run.Upstream = []upstream.Feedback{ask(upstream.Missed, "AC1"), ask(upstream.Missed, "AC2"), again}
		m.finishUpstream()
		got := map[string][2]int64{}
		for _, row := range m.sums.rows() {
			n := got[row.Metric+" "+row.Label]
			got[row.Metric+" "+row.Label] = [2]int64{n[0] + row.N, n[1] + row.Total}
		}
		if !on {
			if len(got) > 0 {
				t.Errorf("off: %v", got)
			}
			continue
		}
		for key, want := range map[string][2]int64{
			"upstream ": {1, 3}, "upstream missed": {1, 3}, "upstream constraint": {1, 0}, "upstream_response missed": {2, 4000},
			"upstream_escalation missed": {3, 1}, "upstream_held missed": {3, 2},
		} {
			if got[key] != want {
				t.Errorf("%s: %v, want %v; all: %v", key, got[key], want, got)
			}
		}
	}
}
