//go:build e2e

package check

import (
	"flag"
	"strings"
	"testing"

	"forge/pipeline/config"
	"forge/pipeline/quality"
)

var everything = flag.Bool("all", false, "try what takes minutes, too")

func init() { live = true }

// A benchmark that nothing changed is measured 100 times, for real, on a machine that does
// other things meanwhile: nobody is blamed for it.
func TestUnchangedBenchmark(t *testing.T) {
	if !*everything {
		t.Skip("takes minutes: see -all")
	}
	gate := config.Quality{Use: quality.GoBench, WorseBy: "10%",
		Command: "test -x b.test || go test -c -o b.test . >/dev/null; ./b.test -test.run '^$' -test.bench . -test.benchtime 5ms -test.count 3"}
	alarms, hidden := 0, 0
	for range 100 {
		m := newGated(t, goBenchmark, "-- README.md --\nnothing\n", gate).measure()
		if m.Error != "" || m.Base == nil {
			t.Fatalf("%+v", m)
		}
		if !m.OK {
			alarms++
			t.Logf("%v against %v: %s", m.Value, *m.Base, m.Note)
		} else if strings.Contains(m.Note, "not shown") {
			hidden++
		}
	}
	t.Logf("%d false alarms; %d times the medians alone would have given one", alarms, hidden)
	if alarms > 0 {
		t.Errorf("%d false alarms in 100 runs of a benchmark that nothing changed", alarms)
	}
}
