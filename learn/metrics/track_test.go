package metrics

import (
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/track"
)

// A run counts for the track that people or a score chose; one of no track for none.
func TestTrackResult(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		track *track.Choice
		state pipeline.State
		label string
		total int64
	}{
		{&track.Choice{Track: track.Standard}, pipeline.StateVerified, "standard", 1},
		{&track.Choice{Track: track.Quick, By: track.ByScore}, pipeline.StateFailed, "quick", 0},
		{nil, pipeline.StateVerified, "", 0},
	} {
		m := measurer{sums: sums{}, ended: time.Date(2026, 3, 8, 0, 0, 0, 0, time.UTC)}
		m.run.State, m.run.Track = c.state, c.track
		m.finish(nil)
		found := false
		for _, row := range m.sums.rows() {
			if row.Metric == TrackResult {
				found = true
				if row.Label != c.label || row.N != 1 || row.Total != c.total {
					t.Errorf("%v: %+v", c.track, row)
				}
			}
		}
		if found != (c.track != nil) {
			t.Errorf("%v: counted %v", c.track, found)
		}
	}
}
