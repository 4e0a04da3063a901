package learn

import (
	"testing"
	"time"

	"forge/pipeline"
)

// Covers H1, H2 and lessons 20: one person's word, one corner and one error do not
// rule everywhere.
func TestHabits(t *testing.T) {
	now := day(100)
	finding := func(file, code string, s pipeline.Severity) pipeline.Finding {
		return pipeline.Finding{Category: "style", Rule: "doc", Message: "no doc comment", File: file, Code: code, Severity: s, Confidence: 0.9}
	}
	decided := func(n int, people int64, dismissed bool, file, code string, ago float64) (out []Decision) {
		for i := range n {
			out = append(out, Decision{Finding: finding(file, code, pipeline.SeverityInfo), Dismissed: dismissed, Actor: pipeline.Actor{ID: int64(i)%people + 1}, Weight: 0.4,
				At: now.Add(-time.Duration(ago*24*float64(time.Hour)) - time.Duration(i)*time.Minute)})
		}
		return out
	}
	const hidden, shown = "func open() {", "func Open() {"
	others := decided(3, 3, false, "z/z.go", "x := 1", 40)
	others[0].Finding.Rule, others[1].Finding.Rule, others[2].Finding.Rule = "other", "other", "other"
	cat := func(lists ...[]Decision) (out []Decision) {
		for _, l := range lists {
			out = append(out, l...)
		}
		return out
	}
	for _, c := range []struct {
		name string
		list []Decision
		f    pipeline.Finding
		want bool
	}{
		{"nothing known", nil, finding("a/x.go", hidden, "info"), false},
		{"three people", decided(4, 3, true, "a/x.go", hidden, 1), finding("a/y.go", hidden, "info"), true},
		{"two people of three", cat(others, decided(9, 2, true, "a/x.go", hidden, 1)), finding("a/y.go", hidden, "info"), false},
		{"two people, there are no others", decided(9, 2, true, "a/x.go", hidden, 1), finding("a/y.go", hidden, "info"), true},
		{"names that others see", decided(9, 3, true, "a/x.go", hidden, 1), finding("a/y.go", shown, "info"), false},
		{"in tests", decided(9, 3, true, "a/x.go", hidden, 1), finding("a/y_test.go", hidden, "info"), false},
		{"another folder", decided(9, 3, true, "a/x.go", hidden, 1), finding("b/y.go", hidden, "info"), false},
		{"three other folders", cat(decided(3, 3, true, "a/x.go", hidden, 1), decided(3, 3, true, "b/x.go", hidden, 1), decided(3, 3, true, "c/x.go", hidden, 1)), finding("d/y.go", hidden, "info"), true},
		{"acted on in this folder", cat(decided(3, 3, true, "a/x.go", hidden, 1), decided(3, 3, true, "b/x.go", hidden, 1), decided(3, 3, true, "c/x.go", hidden, 1),
			decided(4, 2, false, "d/x.go", hidden, 2)), finding("d/y.go", hidden, "info"), false},
		{"acted on as often", cat(decided(6, 3, true, "a/x.go", hidden, 1), decided(6, 3, false, "a/x.go", hidden, 2)), finding("a/y.go", hidden, "info"), false},
		{"acted on at last", cat(decided(9, 3, true, "a/x.go", hidden, 2), decided(1, 1, false, "a/x.go", hidden, 1)), finding("a/y.go", hidden, "info"), false},
		{"long ago", decided(9, 3, true, "a/x.go", hidden, 31), finding("a/y.go", hidden, "info"), false},
		{"an error", decided(9, 3, true, "a/x.go", hidden, 1), finding("a/y.go", hidden, "error"), false},
	} {
		kept, held := Filter([]pipeline.Finding{c.f}, nil, FilterOptions{Habits: NewHabits(c.list, now)})
		if got := len(held) == 1; got != c.want || len(kept)+len(held) != 1 || got && held[0].Why == "" {
			t.Errorf("%s: kept %v, held %+v, want held %v", c.name, kept, held, c.want)
		}
	}
}

func TestDecisions(t *testing.T) {
	f := pipeline.Finding{Category: "style", Message: "x"}
	signal := func(kind pipeline.SignalKind, text string, weight float64) pipeline.Signal {
		return pipeline.Signal{Key: "k", Kind: kind, At: day(1), Actor: pipeline.Actor{ID: 1}, Weight: weight, Text: text, About: &f}
	}
	for _, c := range []struct {
		s         pipeline.Signal
		n         int
		dismissed bool
		weight    float64
	}{
		{signal(pipeline.SignalDismissed, "no", 0.8), 1, true, 0.8},
		{signal(pipeline.SignalDismissed, "", 0.8), 1, true, 0.4},
		{signal(pipeline.SignalIgnored, "", 1), 1, true, 0.5},
		{signal(pipeline.SignalApplied, "", 1), 1, false, 1},
		{signal(pipeline.SignalRewritten, "", 0.4), 1, false, 0.4},
		{signal(pipeline.SignalDismissed, "no", 0), 0, false, 0},
		{signal(pipeline.SignalApproved, "", 1), 0, false, 0},
	} {
		got := Decisions([]pipeline.Signal{c.s})
		if len(got) != c.n || c.n == 1 && (got[0].Dismissed != c.dismissed || got[0].Weight != c.weight) {
			t.Errorf("%s of weight %v: %+v", c.s.Kind, c.s.Weight, got)
		}
	}
}
