package servertest

import (
	"context"
	"testing"
	"time"

	"forge/github/githubtest"
	"forge/pipeline/record"
)

// Judge has a test fail, at its end, for whatever Forge did on GitHub that it must never
// do. Call it when the GitHub is made: it looks when everything that is made later has ended.
func Judge(t *testing.T, gh *githubtest.Server, slug string) {
	t.Helper()
	t.Cleanup(func() {
		for _, v := range gh.Violations(slug) {
			t.Errorf("Forge must never do this: %s", v)
		}
	})
}

// Kept wants every delivery that was acknowledged to be known, so that none is lost. What
// was acknowledged a moment ago may still be on its way from one place to another.
func Kept(t *testing.T, gh *githubtest.Server, find func(ctx context.Context, guid string) (*record.Delivery, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, d := range gh.Deliveries() {
		for d.StatusCode/100 == 2 {
			_, err := find(ctx, d.GUID)
			if err == nil {
				break
			}
			select {
			case <-tick.C:
				continue
			case <-ctx.Done():
			}
			t.Errorf("delivery %s (%s) was acknowledged and is lost: %v", d.GUID, d.Event, err)
			break
		}
	}
}
