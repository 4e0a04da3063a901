package metrics

import (
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"forge/pipeline/record"

	"github.com/google/go-cmp/cmp"
)

func TestNearestPeriod(t *testing.T) {
	t.Parallel()
	for days, want := range map[int]int{-4: 7, 7: 7, 13: 7, 28: 30, 30: 30, 61: 90, 365: 90} {
		if got := NearestPeriod(days); got != want {
			t.Errorf("NearestPeriod(%d) = %d, want %d", days, got, want)
		}
	}
}

func TestChangeText(t *testing.T) {
	t.Parallel()
	change := func(v float64, trend Trend) Figure { return Figure{Change: &v, Trend: trend} }
	for _, c := range []struct {
		f    Figure
		unit string
		want string
	}{
		{Figure{}, "share", ""}, {change(0.05, TrendBetter), "share", "▲ +5 pt"}, {change(-0.05, TrendWorse), "share", "▼ −5 pt"},
		{change(-120_000, TrendSteady), "ms", "· −2.0 min"}, {change(0, TrendSteady), "share", "· +0 pt"},
	} {
		if got := c.f.ChangeText(c.unit); got != c.want {
			t.Errorf("ChangeText(%+v, %s) = %q, want %q", c.f, c.unit, got, c.want)
		}
	}
}

// Covers M2: hostile labels stay one cell each, and what is not known is empty.
func TestWriteCSV(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 8, 0, 0, 0, 0, time.UTC)
	hostile := "</script>,\"x\"\n2"
	rep := compute([]record.MetricRow{{Day: DayOf(now), Metric: ToolSuccess, Label: hostile, N: 4, Total: 3}}, Options{Days: 7, Now: now})
	var b strings.Builder
	if err := rep.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 2+len(Catalogue()) {
		t.Errorf("%d lines, want a head, one for each metric, and one for the label", len(lines))
	}
	byKey := map[string][]string{}
	for _, l := range lines {
		byKey[l[3]+"/"+l[4]] = l
	}
	got := byKey["tool_success/"+hostile]
	if got == nil {
		t.Fatalf("the label is not in\n%s", b.String())
	}
	if diff := cmp.Diff([]string{"", "2026-03-02", "2026-03-08", "tool_success", hostile, "share", "4", "0.75"}, got[:8]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := byKey["cost/"]; got[6] != "0" || got[7] != "" || got[16] != "" {
		t.Errorf("cost without data: %q", got)
	}
}
