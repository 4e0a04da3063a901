package pipeline

import (
	"strings"
	"testing"

	"forge/pipeline/config"
	"forge/pipeline/measure"
	"forge/pipeline/module"
)

// Tests that passed verify nothing while a gate that blocks has no value on their head,
// whatever else is in the report.
func TestUnmeasuredGateStops(t *testing.T) {
	t.Parallel()
	no := false
	gates := []config.Quality{{Name: "size"}, {Use: "go-vet"}, {Name: "hint", Block: &no}}
	for _, c := range []struct {
		name     string
		measures []measure.Result
		want     string
	}{
		{"none is measured", nil, "size, go-vet"},
		{"one is", []measure.Result{{Name: "size", OK: true}}, "go-vet"},
		{"one has no value", []measure.Result{{Name: "size", OK: true}, {Name: "go-vet", Error: "it broke"}}, "go-vet"},
		{"all that block", []measure.Result{{Name: "size", OK: true}, {Name: "go-vet", OK: true}}, ""},
	} {
		r := &Run{ID: 1, State: StateRunning, Head: "head", Config: config.Default()}
		r.Config.Quality = gates
		it := &Iteration{Number: 1, Review: &Review{Head: "head"}, Tests: &TestReport{Head: "head", Total: 1, Passed: 1, Measures: c.measures}}
		r.Iterations = []Iteration{*it}
		act := r.wantsTests(it)
		if c.want == "" {
			if act != nil {
				t.Errorf("%s: %+v", c.name, act.Events)
			}
			continue
		}
		if act == nil {
			t.Errorf("%s: nothing stops it", c.name)
			continue
		}
		g := act.Events[0].Data.Guard
		if g == nil || g.Name != GuardUnclean || !strings.HasSuffix(g.Detail, "was not measured on this commit: "+c.want) {
			t.Errorf("%s: %+v", c.name, g)
		}
	}
}

// Covers T3: what passes its tests and was read by nobody is put to a person, who is enough;
// of a module the whole is read.
func TestUnreadStops(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(r *Run, it *Iteration)
		asks   bool
	}{
		{"nobody has read it", func(*Run, *Iteration) {}, true},
		{"the tests fail: that comes first", func(_ *Run, it *Iteration) { it.Tests.Failures = []Failure{{Test: "a"}} }, false},
		{"a person has looked", func(_ *Run, it *Iteration) { it.Forced = true }, false},
		{"a module", func(r *Run, _ *Iteration) { r.Part = &module.Of{} }, false},
		{"somebody has read a part", func(_ *Run, it *Iteration) { it.Review.Reviewed = []string{"b.py"} }, false},
	} {
		r := &Run{ID: 1, State: StateRunning, Head: "head", Config: config.Default()}
		it := &Iteration{Number: 1, Review: &Review{Head: "head", NotReviewed: []Skipped{{Path: "a.py", Why: "the model is asked for code alone"}}},
			Tests: &TestReport{Head: "head", Total: 1, Passed: 1}}
		c.change(r, it)
		r.Iterations = []Iteration{*it}
		asks := false
		if act := r.wantsTests(it); act != nil && len(act.Events) > 0 && act.Events[0].Data.Guard != nil {
			asks = act.Events[0].Data.Guard.Name == GuardHuman
		}
		if asks != c.asks {
			t.Errorf("%s: a person is asked: %v", c.name, asks)
		}
	}
}

func TestMeasureTable(t *testing.T) {
	t.Parallel()
	base := 480000.0
	r := &TestReport{Measures: []measure.Result{
		{Name: "size", Unit: "bytes", Value: 2.5e6, Base: &base, Bound: "at most 500 kB", Block: true, Owner: []string{"architect"}, Parts: []measure.Part{{Name: "a|b.js", Value: 2e6}}},
		{Name: "lint", Bound: "at most 0", Error: "it broke", Block: false},
	}}
	want := "| quality gate | | value | bound | base |\n| --- | --- | --- | --- | --- |\n" +
		"| size | ❌ | 2.5 MB | at most 500 kB | 480 kB |\n| lint | ⚠️ (a warning) | not measured | at most 0 | – |\n"
	if got := r.MeasureTable(); got != want {
		t.Errorf("%s", got)
	}
	notes := strings.Join(r.MeasureNotes(), "\n")
	if notes != "size: 2.5 MB, at most 500 kB; 480 kB at the base; a|b.js: 2 MB, 0 bytes at the base, so 2 MB more; answered for by architect\nlint: not measured: it broke" {
		t.Errorf("%s", notes)
	}
	if (&TestReport{}).MeasureTable() != "" || (*TestReport)(nil).MeasureTable() != "" {
		t.Error("without gates there is a table")
	}
}
