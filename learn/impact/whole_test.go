package impact

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"forge/pipeline/record"
)

// drawnRuns plays runs, of which a share works without memory; those with it pass by as
// much more often as it helps. Every third run is of a repository that sets another share,
// and does worse anyway.
func drawnRuns(seed uint64, n int, helps float64) (list []record.Outcome) {
	rng := rand.New(rand.NewPCG(seed, 17))
	for i := range n {
		share, chance := 0.1, 0.6
		if i%3 == 0 {
			share, chance = 0.4, 0.3
		}
		h := record.DrawHoldout(share, int64(i+1), fmt.Sprint(seed))
		if !h.Out {
			chance += helps
		}
		list = append(list, record.Outcome{Run: int64(i + 1), FirstPass: rng.Float64() < chance, Holdout: h})
	}
	return list
}

// Covers M3, lessons 20: what memory as a whole is worth is looked at all the time, and
// cries wolf hardly ever; where runs do worse with it, that is found. Repositories with
// different shares are not mixed up.
func TestWholeOf(t *testing.T) {
	t.Parallel()
	const streams, runs = 100, 2000
	count := func(helps float64) (alarms, within int, mean float64) {
		for seed := range streams {
			list := drawnRuns(14001+uint64(seed), runs, helps)
			alarm := false
			for n := 20; n <= runs && !alarm; n += 20 {
				alarm = WholeOf(list[:n]).Worse()
			}
			if alarm {
				alarms++
			}
			i := WholeOf(list).FirstPass
			if i.Low <= helps && helps <= i.High {
				within++
			}
			mean += i.Value / float64(streams)
		}
		return alarms, within, mean
	}
	alarms, within, mean := count(0)
	found, harmed, harm := count(-0.15)
	t.Logf("of %d streams: %d alarms where memory does nothing, %d where it costs 15 points", streams, alarms, found)
	if 50*alarms > streams || found < 9*streams/10 || within < 98*streams/100 || harmed < 98*streams/100 {
		t.Errorf("of %d: %d alarms where memory does nothing, %d where it costs 15 points; the truth is in %d and %d intervals",
			streams, alarms, found, within, harmed)
	}
	if math.Abs(mean) > 0.01 || math.Abs(harm+0.15) > 0.01 {
		t.Errorf("estimated %+.3f and %+.3f in the mean, want 0 and -0.15", mean, harm)
	}
}

func TestWholeSays(t *testing.T) {
	t.Parallel()
	arm := func(share float64, out bool, runs, passed int) (list []record.Outcome) {
		for i := range runs {
			list = append(list, record.Outcome{FirstPass: i < passed, Holdout: &record.Holdout{Share: share, Out: out}})
		}
		return list
	}
	join := func(lists ...[]record.Outcome) (all []record.Outcome) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	for _, c := range []struct {
		name  string
		list  []record.Outcome
		says  string // "" when nothing is told
		known bool
		worse bool
	}{
		{"nothing was drawn", make([]record.Outcome, 30), "", false, false},
		{"too few", join(arm(0.1, false, 200, 100), arm(0.1, true, 19, 0)), "50 % of 200 against 0 % of 19; too few runs to tell", false, false},
		{"none without", arm(0.1, false, 4, 3), "75 % of 4 against none; too few runs", false, false},
		{"never together", join(arm(0.1, false, 100, 100), arm(0.2, true, 100, 0)), "too few runs to tell", false, false},
		{"better", join(arm(0.1, false, 200, 180), arm(0.1, true, 40, 4)), "90 % of 200 against 10 % of 40: +80 pt (+", true, false},
		{"worse", join(arm(0.1, false, 200, 20), arm(0.1, true, 40, 36)), "Runs do worse with memory: `forge memory list`", true, true},
	} {
		w := WholeOf(c.list)
		if text := w.Text(); w.Worse() != c.worse || (w.FirstPass != nil) != c.known || !strings.Contains(text, c.says) || (c.says == "") != (text == "") {
			t.Errorf("%s: %+v, %q", c.name, w, text)
		}
	}
}
