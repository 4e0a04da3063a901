package impact

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"forge/pipeline/record"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var reportedAt = time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)

// trial plays runs that recall 1 to 8 learnings, of which each is withheld by itself.
// A learning given raises the chance of a first pass by effect; big runs recall more
// and pass less.
func trial(rng *rand.Rand, runs int, rate, effect float64) (list []record.Outcome) {
	for range runs {
		ids := make([]int64, 1+rng.IntN(8))
		for i := range ids {
			ids[i] = rng.Int64N(40) + 1
		}
		var o record.Outcome
		o.Given, o.Withheld = Withhold(ids, rate, rng)
		o.FirstPass = rng.Float64() < 0.5-0.04*float64(len(ids))+effect*float64(len(o.Given))
		if !o.FirstPass {
			o.Bounces = 1 + rng.IntN(2)
		}
		list = append(list, o)
	}
	return list
}

// The pooled interval holds the truth about as often as it says, with few runs and
// with many, and does not take for an effect that bigger runs do worse.
func TestPooledCovers(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		runs   int
		effect float64
	}{{40, 0}, {300, 0}, {300, 0.06}} {
		const rounds = 1000
		held, told, sumOf := 0, 0, 0.0
		for range rounds {
			i := overall(trial(rng, c.runs, 0.1, c.effect)).FirstPass
			if i == nil {
				continue
			}
			told++
			sumOf += i.Value
			if i.Low <= c.effect && c.effect <= i.High {
				held++
			}
		}
		if told < rounds*9/10 {
			t.Errorf("%+v: told in %d of %d rounds only", c, told, rounds)
		}
		near(t, fmt.Sprintf("%+v: coverage", c), float64(held)/float64(told), 0.95, 0.03)
		near(t, fmt.Sprintf("%+v: mean", c), sumOf/float64(told), c.effect, 0.02)
	}
}

func TestPooledKnowsNothing(t *testing.T) {
	t.Parallel()
	few := []record.Outcome{{Given: []int64{1}}, {Withheld: []int64{1}}, {}}
	if o := overall(few); o.FirstPass != nil || o.Runs != 2 || o.Given != 1 || o.Withheld != 1 {
		t.Errorf("got %+v", o)
	}
	var none []record.Outcome
	for range 50 {
		none = append(none, record.Outcome{Given: []int64{1, 2}})
	}
	if o := overall(none); o.FirstPass != nil || o.Bounces != nil || o.Dismissed != nil {
		t.Errorf("nothing was withheld, but %+v", o)
	}
}

// Most useful first, then those of which too little is known.
func TestRanked(t *testing.T) {
	t.Parallel()
	var list []record.Outcome
	for i := range 20 {
		list = append(list, record.Outcome{FirstPass: i < 10, Given: []int64{3}}, record.Outcome{FirstPass: i < 4, Withheld: []int64{3}},
			record.Outcome{FirstPass: i < 4, Given: []int64{2}}, record.Outcome{FirstPass: i < 16, Withheld: []int64{2}}, record.Outcome{Given: []int64{7}})
	}
	list = append(list, record.Outcome{Withheld: []int64{7}}, record.Outcome{Given: []int64{8}})
	got := Of(list, Feedback{}, Options{Days: 30, Now: reportedAt}).Learnings
	var text []string
	for _, r := range got {
		text = append(text, fmt.Sprint(r.Learning, " ", r.Given, "/", r.Withheld, " ", r.Enough))
	}
	if s := strings.Join(text, ", "); s != "3 20/20 true, 2 20/20 true, 7 20/1 false, 8 1/0 false" {
		t.Fatalf("got %s", s)
	}
	if f := got[0].FirstPass; math.Abs(f.Value-0.3) > 1e-9 || got[1].FirstPass.High >= 0 || got[2].FirstPass != nil || got[0].Dismissed != nil {
		t.Errorf("got %+v", got)
	}
}

func TestReliabilityAndWeeks(t *testing.T) {
	t.Parallel()
	at := func(days int, confidence float64, right bool) Decided {
		return Decided{Judged{"style", confidence, right}, reportedAt.AddDate(0, 0, -days)}
	}
	rep := Of(nil, Feedback{Decided: []Decided{at(0, 0.9, true), at(1, 0.9, true), at(2, 0.9, false), at(8, 0.2, false), at(40, 0.2, false), at(-1, 0.2, false)},
		Suppressed: []time.Time{at(1, 0, false).At, at(1, 0, false).At, at(40, 0, false).At}}, Options{Days: 10, Now: reportedAt})
	c := rep.Calibration
	if c.Count != 4 || *c.Right != 0.5 || *c.Base != 0.25 || len(c.Bins) != 2 || c.Bins[1].Interval[0] >= 2.0/3 || c.Bins[1].Interval[1] <= 2.0/3 {
		t.Errorf("got %+v", c)
	}
	near(t, "Brier", *c.Brier, (0.01+0.01+0.81+0.04)/4, 1e-9)
	want := []Week{{From: "2026-03-22", Decided: 1, Dismissed: 1}, {From: "2026-03-25", Decided: 3, Dismissed: 1, Suppressed: 2}}
	if diff := cmp.Diff(want, rep.Weeks, cmpopts.IgnoreFields(Week{}, "Interval")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if most, known := rep.Weeks[1].AtMost(); most != 0.6 || !known {
		t.Errorf("with what was held back at most %v, %v; want (1 + 2) of (3 + 2)", most, known)
	}
	if most, known := (Week{}).AtMost(); most != 0 || known {
		t.Errorf("of an empty week %v, %v", most, known)
	}
	if rep.From != "2026-03-22" || rep.To != "2026-03-31" {
		t.Errorf("from %s to %s", rep.From, rep.To)
	}
	empty := Of(nil, Feedback{}, Options{Days: 10, Now: reportedAt})
	if empty.Calibration.Brier != nil || empty.Weeks[0].Interval != nil {
		t.Errorf("got %+v", empty)
	}
}

// Whatever happened, the report can be written as JSON, intervals hold their value,
// and nothing is counted twice.
func TestReportIsFinite(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.Int64Range(1, 6), 0, 4, rapid.ID[int64])
		var list []record.Outcome
		for range rapid.IntRange(0, 40).Draw(t, "runs") {
			var o record.Outcome
			for _, id := range ids.Draw(t, "recalled") {
				if rapid.Bool().Draw(t, "given") {
					o.Given = append(o.Given, id)
				} else {
					o.Withheld = append(o.Withheld, id)
				}
			}
			o.FirstPass, o.Bounces, o.Findings = rapid.Bool().Draw(t, "pass"), rapid.IntRange(0, 3).Draw(t, "bounces"), rapid.IntRange(0, 2).Draw(t, "findings")
			o.Dismissed = rapid.IntRange(0, o.Findings).Draw(t, "dismissed")
			list = append(list, o)
		}
		rep := Of(list, Feedback{}, Options{Days: 7, Now: reportedAt})
		if _, err := json.Marshal(rep); err != nil {
			t.Fatal(err)
		}
		given := 0
		for _, r := range rep.Learnings {
			given += r.Given
			for _, i := range []*Interval{r.FirstPass, r.Bounces, r.Dismissed} {
				if i != nil && !(i.Low <= i.Value+1e-9 && i.Value <= i.High+1e-9) {
					t.Fatalf("learning %d: %+v", r.Learning, i)
				}
			}
		}
		if given != rep.Overall.Given {
			t.Fatalf("%d given in all, %d by learning", rep.Overall.Given, given)
		}
	})
}

func TestIntervalText(t *testing.T) {
	t.Parallel()
	for share, want := range map[bool]string{true: "+8 pt (−2 to +18)", false: "+0.08 (−0.02 to +0.18)"} {
		if got := (Interval{Value: 0.08, Low: -0.02, High: 0.18}).Text(share); got != want {
			t.Errorf("Text(%v) = %q, want %q", share, got, want)
		}
	}
}
