package predict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// comments are judged comments of several repositories: by writer, their share of valid
// ones; what it is in a repository differs.
func comments(n int, seed uint64, shares map[string]float64) (out []Comment) {
	rng := rand.New(rand.NewPCG(seed, 7))
	writers := []string{"a", "b"}
	for i := range n {
		c := Comment{By: writers[rng.IntN(2)], Text: fmt.Sprintf("The name number%d may be wrong here", rng.IntN(40)),
			Path: fmt.Sprintf("d/f%d.go", rng.IntN(9)), Line: i, End: i + rng.IntN(4),
			Category: "Code Defect", Context: "Diff Level", Language: "Go", Pull: fmt.Sprintf("o/r%d/pull/%d", i%8, i%40)}
		c.Valid = rng.Float64() < shares[c.By]
		out = append(out, c)
	}
	return out
}

// The judgement on comments is predicted for repositories that were not seen, where there is anything to
// tell; where there is not, none is held back.
func TestMeasureJudged(t *testing.T) {
	t.Parallel()
	f := MeasureJudged(comments(1200, 1, map[string]float64{"a": 0.95, "b": 0.05}), nil)
	if f.AUC < 0.85 || f.Brier > 0.5*f.BaseBrier || f.InvalidLess < 0.5 || f.ValidLost > 0.12 {
		t.Errorf("of writers of whom one is mostly wrong: %+v", f)
	}
	for seed := range uint64(5) {
		f := MeasureJudged(comments(800, seed, map[string]float64{"a": 0.7, "b": 0.7}), nil)
		if math.Abs(f.AUC-0.5) > 0.1 || f.ValidLost > 0 || f.InvalidLess > 0 || f.Brier > 1.05*f.BaseBrier {
			t.Errorf("seed %d, of nothing but chance: %+v", seed, f)
		}
	}
	// What is said of a repository does not depend on how it was judged.
	list := comments(400, 3, map[string]float64{"a": 0.9, "b": 0.3})
	turned := append([]Comment(nil), list...)
	for i := range turned {
		if turned[i].Repo() == "r1" {
			turned[i].Valid = !turned[i].Valid
		}
	}
	known := examplesOf(list)
	one, other := newJudged(without(known, "r1")), newJudged(without(examplesOf(turned), "r1"))
	if a, b := one.valid(&known[1]), other.valid(&known[1]); a != b {
		t.Errorf("the model of the others has seen it: %v and %v", a, b)
	}
	if got := MeasureJudged(nil, nil); got.AUC != 0.5 || got.Brier != 0 {
		t.Errorf("of nothing: %+v", got)
	}
	all := MeasureJudged(list[:1], list[1:])
	if !(all.Brier >= 0 && all.Brier <= 1) {
		t.Errorf("of one: %+v", all)
	}
}
