package impact

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"forge/pipeline/record"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var reportedAt = time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)

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

func TestWeeks(t *testing.T) {
	t.Parallel()
	at := func(days int, dismissed bool) Decided { return Decided{dismissed, reportedAt.AddDate(0, 0, -days)} }
	rep := Of(nil, Feedback{Decided: []Decided{at(0, false), at(1, false), at(2, true), at(8, true), at(40, true), at(-1, true)},
		Suppressed: []time.Time{at(1, true).At, at(1, true).At, at(40, true).At}}, Options{Days: 10, Now: reportedAt})
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
	if empty.Weeks[0].Interval != nil {
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
