package simulate

import (
	"math"
	"testing"
)

// Covers V6: what people are told that a split takes in time and money, before they decide,
// is what the model that modules are compared by comes to in the mean.
func TestForecast(t *testing.T) {
	t.Parallel()
	const features, parallel = 300, 3
	var told, played [4]float64 // minutes and dollars in one piece, then as modules
	for i := range uint64(features) {
		f := playFeature(11, i, parallel, 1)
		whole, split := f.plan.Forecast(parallel)
		for k, v := range []float64{whole.Minutes, whole.USD, split.Minutes, split.USD} {
			told[k] += v / features
		}
		for k, v := range []float64{f.whole.minutes, f.whole.micro / 1e6, f.split.minutes, f.split.micro / 1e6} {
			played[k] += v / features
		}
	}
	for k, what := range []string{"minutes in one piece", "dollars in one piece", "minutes as modules", "dollars as modules"} {
		t.Logf("%s: told %.2f, played %.2f", what, told[k], played[k])
		if math.Abs(told[k]/played[k]-1) > 0.06 {
			t.Errorf("%s: told %.2f, played %.2f", what, told[k], played[k])
		}
	}
}
