package simulate

import (
	"math"
	"testing"
)

// A reviewer misses what it has missed: however often it looks, some defects stay unseen,
// while a first look finds as many as without that.
func TestMissesAreCorrelated(t *testing.T) {
	t.Parallel()
	const defects = 1500
	seen := func(blind, recall float64, looks int) float64 {
		w := newWorld(&Model{Recall: recall, Blind: blind, Recheck: 1}, 5, 1)
		for range defects {
			w.add(1)
		}
		found := map[int]bool{}
		for range looks {
			w.review("head")
			for i := range w.defects {
				if w.defects[i].told {
					found[i] = true
				}
			}
		}
		return float64(len(found)) / defects
	}
	for _, c := range []struct{ blind, recall, first, all float64 }{
		{0, 0.5, 0.5, 1}, {0.25, 0.5, 0.5, 0.75}, {0.45, 0.35, 0.35, 0.55}, {0.45, 0.7, 0.7, 0.7}, {0.3, 1, 1, 1}, {0.3, 0, 0, 0},
	} {
		first, all := seen(c.blind, c.recall, 1), seen(c.blind, c.recall, 30)
		if math.Abs(first-c.first) > 0.03 || math.Abs(all-c.all) > 0.03 {
			t.Errorf("blind for %.2f, recall %.2f: a look finds %.2f, thirty find %.2f; want %.2f, %.2f", c.blind, c.recall, first, all, c.first, c.all)
		}
	}
}

// What people's time is worth counts for every question.
func TestCostOfQuestions(t *testing.T) {
	t.Parallel()
	a := Tally{Runs: 10, Verified: 5, Sound: 4, Escalated: 5, MicroUSD: 20_000_000}
	for question, want := range map[float64][2]float64{0: {4, 5}, 5: {9, 11.25}, 10: {14, 17.5}} {
		if got := [2]float64{a.CostPerVerified(question), a.CostPerSound(question)}; got != want {
			t.Errorf("at $%.0f a question: %v, want %v", question, got, want)
		}
	}
}
