package webhook

import (
	"testing"
	"time"

	"forge/pipeline/record"
)

// A group is what waits already, or what is wanted, or what came until it was late.
func TestGather(t *testing.T) {
	t.Parallel()
	one := waiting{delivery: &record.Delivery{Payload: []byte("x")}}
	for name, c := range map[string]struct {
		queued, want int
		late, closed bool
		group        int
	}{
		"alone":                     {want: 0, group: 1},
		"all that waits":            {queued: 5, want: 2, group: 6},
		"as many as are wanted":     {queued: 3, want: 4, group: 4},
		"late":                      {queued: 2, want: 60, late: true, group: 3},
		"closed while it waits":     {queued: 2, want: 60, closed: true, group: 3},
		"no more than a commit has": {queued: maxBatch + 5, want: 1000, group: maxBatch},
	} {
		k := newCommitter(nil, nil)
		for range c.queued {
			k.queue <- one
		}
		late := make(chan time.Time, 1)
		if c.late {
			late <- time.Time{}
		}
		if c.closed {
			close(k.queue)
		}
		if got := len(k.gather(nil, one, c.want, late)); got != c.group {
			t.Errorf("%s: a group of %d, want %d", name, got, c.group)
		}
	}
}
