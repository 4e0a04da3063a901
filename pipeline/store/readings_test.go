package store

import (
	"path/filepath"
	"testing"
	"time"

	"forge/pipeline/measure"

	"github.com/google/go-cmp/cmp"
)

func TestReadingsAfterARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forge.db")
	d := openPath(t, path)
	base := measure.One(3)
	must(t, d.KeepReading(t.Context(), "acme/site", "k", &base, now))
	must(t, d.Close())
	d = openPath(t, path)
	defer d.Close()
	if got := reading(t, d, "acme/site", "k"); got == nil || got.Series[0].Samples[0] != 3 {
		t.Errorf("%+v", got)
	}
}

// reading is what was kept; nil: nothing.
func reading(t *testing.T, d *DB, repo, key string) *measure.Reading {
	t.Helper()
	r := &measure.Reading{}
	there, err := d.Reading(t.Context(), repo, key, r)
	must(t, err)
	if !there {
		return nil
	}
	return r
}

// What was measured at a base is there after a restart, for its repository and way of
// measuring alone, and for a month.
func TestReadings(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		base := measure.Reading{Series: []measure.Series{{Samples: []float64{1.5e6}}}, Parts: []measure.Part{{Name: "a\x00b", Value: 1}}}
		must(t, d.KeepReading(t.Context(), "acme/site", "k1", &base, now))
		must(t, d.KeepReading(t.Context(), "acme/site", "k1", &base, now))
		if got := reading(t, d, "acme/site", "k1"); got == nil || got.Series[0].Samples[0] != 1.5e6 {
			t.Errorf("kept: %+v", got)
		}
		for _, other := range [][2]string{{"acme/shop", "k1"}, {"acme/site", "k2"}} {
			if got := reading(t, d, other[0], other[1]); got != nil {
				t.Errorf("%v: %+v", other, got)
			}
		}
		later := measure.One(2)
		must(t, d.KeepReading(t.Context(), "acme/site", "k2", &later, now.Add(31*24*time.Hour)))
		if got := reading(t, d, "acme/site", "k1"); got != nil {
			t.Errorf("after a month: %+v", got)
		}
		if d := cmp.Diff(&later, reading(t, d, "acme/site", "k2")); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	})
}
