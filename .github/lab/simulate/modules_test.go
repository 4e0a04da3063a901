package simulate

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The comparison hangs on nothing but its seed; a split that promises more saves more,
// and so does one of larger modules.
func TestCompareModules(t *testing.T) {
	t.Parallel()
	o := ModulesOptions{Features: 60, Sizes: []float64{1, 4}, Parallel: 3, Seed: 7, Workers: 2}
	res, err := CompareModules(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Workers = 1
	if again, _ := CompareModules(t.Context(), o); !cmp.Equal(res, again) {
		t.Errorf("with one worker it is another result:\n%s", cmp.Diff(res, again))
	}
	first, last := map[float64]ModulesRow{}, map[float64]ModulesRow{}
	features := map[float64]int{}
	for _, r := range res.Rows {
		if _, seen := first[r.Size]; !seen {
			first[r.Size] = r
		}
		last[r.Size] = r
		features[r.Size] += r.Features
	}
	for _, size := range o.Sizes {
		if features[size] != o.Features || last[size].Gain <= first[size].Gain {
			t.Errorf("of size %g: %d features, from a gain of %.2f to one of %.2f", size, features[size], first[size].Gain, last[size].Gain)
		}
	}
	if last[4].Gain <= last[1].Gain {
		t.Errorf("large modules save %.2f, small ones %.2f", last[4].Gain, last[1].Gain)
	}
}

func TestCompareModulesRefuses(t *testing.T) {
	t.Parallel()
	if _, err := CompareModules(t.Context(), ModulesOptions{Sizes: []float64{1}}); err == nil {
		t.Error("no features are compared without an error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := CompareModules(ctx, ModulesOptions{Features: 1000, Sizes: []float64{1}, Workers: 1}); err == nil {
		t.Error("an end from outside is no error")
	}
}
