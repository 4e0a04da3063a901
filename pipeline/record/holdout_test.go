package record

import (
	"fmt"
	"testing"
)

// What is drawn for a run is the same when it is drawn again, and over runs it is chance.
func TestDrawHoldout(t *testing.T) {
	for _, share := range []float64{0, -1} {
		if h := DrawHoldout(share, 1, "k"); h != nil {
			t.Errorf("share %v: %+v", share, h)
		}
	}
	const runs = 20_000
	out, sameRun := 0, 0
	for i := range runs {
		h := DrawHoldout(0.1, int64(i+1), "k")
		if again := DrawHoldout(0.1, int64(i+1), "k"); *again != *h || h.Share != 0.1 {
			t.Fatalf("run %d: %+v, then %+v", i+1, h, again)
		}
		if h.Out {
			out++
		}
		if DrawHoldout(0.1, 7, fmt.Sprint(i)).Out {
			sameRun++
		}
	}
	// Within four standard deviations of 2,000.
	for _, n := range []int{out, sameRun} {
		if n < 1830 || n > 2170 {
			t.Errorf("%d of %d work without, want a tenth", n, runs)
		}
	}
	if h := DrawHoldout(1, 3, "k"); !h.Out {
		t.Error("with a share of 1 a run works with memory")
	}
}
