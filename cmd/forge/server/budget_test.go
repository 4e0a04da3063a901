package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
)

// Covers lessons 17: the caps on a day and a month hold over all runs, with what is
// set aside for calls under way, and a human can let one run go over them.
func TestBudget(t *testing.T) {
	spent := [2]int64{8_000_000, 30_000_000}
	p := &budget{day: 10_000_000, month: 100_000_000, now: time.Now, spent: func(context.Context, time.Time) (int64, int64, error) { return spent[0], spent[1], nil }}
	run := &pipeline.Run{}
	reserve := func(micros int64) (func(), string) {
		t.Helper()
		release, err := p.Reserve(t.Context(), run, micros)
		var f *pipeline.Fault
		if err != nil && (!errors.As(err, &f) || f.Class != pipeline.FaultBudget) {
			t.Fatalf("Reserve: %v, want a fault of class budget", err)
		}
		if err != nil {
			return nil, err.Error()
		}
		return release, ""
	}
	first, why := reserve(1_500_000)
	if why != "" {
		t.Fatal(why)
	}
	if _, why := reserve(600_000); !strings.Contains(why, "$8.00 of the $10.00 for this day") || !strings.Contains(why, "day_usd") {
		t.Errorf("over the day with what is set aside: %q", why)
	}
	first()
	first() // once is enough
	second, why := reserve(2_000_000)
	if why != "" {
		t.Errorf("after the first was given back: %s", why)
	}
	run.Counters.Raised = 1_000_000
	if _, why := reserve(1_000_000); why != "" {
		t.Errorf("a human raised it by a dollar: %s", why)
	}
	second()
	spent = [2]int64{0, 99_500_000}
	run.Counters.Raised = 0
	if _, why := reserve(1_000_000); !strings.Contains(why, "month_usd") {
		t.Errorf("over the month: %q", why)
	}
	p.day, p.month = 0, 0
	if _, why := reserve(1e12); why != "" {
		t.Errorf("without caps: %s", why)
	}
}
