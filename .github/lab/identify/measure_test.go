package identify

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"forge/pipeline/identity"
)

// written reads the pairs that were written by hand.
func written(t *testing.T) (pairs []Pair) {
	t.Helper()
	raw, err := os.ReadFile("../../../pipeline/testdata/identity.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(strings.TrimSpace(line), " | ")
		if len(parts) != 3 {
			t.Fatalf("%q has not three parts", line)
		}
		n := len(pairs)
		pairs = append(pairs, Pair{Kind: "reworded", Same: strings.HasPrefix(parts[0], "same"), A: parts[1], B: parts[2],
			Pull: fmt.Sprintf("acme/repo%d-fork/pull/%d", n%3, n%7)})
	}
	return pairs
}

func TestFigures(t *testing.T) {
	t.Parallel()
	pairs := []Pair{{Kind: "x", Same: true, A: "1"}, {Kind: "x", Same: true}, {Kind: "x", A: "1"}, {Kind: "x", Same: true, A: "1"}, {Kind: "y", Same: true}}
	got := figures(pairs, func(i int) bool { return pairs[i].A == "1" })
	want := []Figures{{"x", 0.667, 0.667, 4}, {"y", 0, 0, 1}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A repository is judged by the others alone: what is said of its own pairs in the
// training changes nothing, what is said of others' does.
func TestMeasureLeavesRepositoriesOut(t *testing.T) {
	t.Parallel()
	train := written(t)
	var own []Pair
	flip := func(repo string) []Pair {
		out := slices.Clone(train)
		for i := range out {
			if out[i].repository() == repo {
				out[i].Same = !out[i].Same
			}
		}
		return out
	}
	for _, p := range train {
		if p.repository() == "repo0" {
			own = append(own, p)
		}
	}
	measure := func(train []Pair) []Figures {
		rows, err := Measure(own, train)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != 3 || rows[0].Sets[0].Pairs != len(own) {
			t.Fatalf("got %+v, want three methods on %d pairs", rows, len(own))
		}
		return append(rows[0].Sets, rows[2].Sets...)
	}
	fair := measure(train)
	if got := measure(flip("repo0")); !slices.Equal(got, fair) {
		t.Errorf("with its own labels turned round: %+v, want %+v as before", got, fair)
	}
	if got := measure(flip("repo1")); slices.Equal(got, fair) {
		t.Error("the labels of the others change nothing: nothing was fitted")
	}
	if fair[0].Recall < 0.9 {
		t.Errorf("fitted on the others' pairs: %+v, want a recall of 0.9", fair[0])
	}
	if _, err := Measure(own, own); err == nil {
		t.Error("a repository was measured by a fit on itself")
	}
	other := slices.Clone(own)
	for i := range other {
		other[i].Pull = "acme/other/pull/1"
	}
	if _, err := Measure(other, own); err != nil {
		t.Errorf("another repository than that of the training: %v", err)
	}
}

// A fit gives the same weights each time, whatever the pairs are.
func TestFitIsRepeatable(t *testing.T) {
	t.Parallel()
	pairs := written(t)
	a, b := Fit(pairs), Fit(slices.Clone(pairs))
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("two fits: %v and %v", a, b)
	}
	if m := Fit(nil); m == nil || len(m.Weights) != len(identity.Features) {
		t.Errorf("a fit on nothing: %v", m)
	}
}

// What two messages share never speaks against them, whatever the pairs say.
func TestFitKeepsSigns(t *testing.T) {
	t.Parallel()
	pairs := written(t)
	var many []Pair // enough to outweigh what is assumed beforehand
	for n := range 10 {
		for _, p := range pairs {
			p.Same, p.Pull = !p.Same, fmt.Sprintf("%s%d", p.Pull, n)
			many = append(many, p)
		}
	}
	m := Fit(many)
	for _, f := range identity.Features {
		if w := m.Weights[f.Name]; f.Sign > 0 && w < 0 || f.Sign < 0 && w > 0 {
			t.Errorf("labels turned round: the weight of %s is %v", f.Name, w)
		}
	}
}

// What all comments on a pull request have in common says little; pairs of no pull
// request stand alone.
func TestSubjectWeighsWords(t *testing.T) {
	t.Parallel()
	pairs := []Pair{{A: "rotor stalls", B: "rotor overheats", Pull: "a/b/pull/1"}, {A: "rotor leaks", B: "rotor is loud", Pull: "a/b/pull/1"}, {A: "x", B: "y"}}
	l := newLibrary(pairs)
	all, none := l.compare(-1)[0], l.compare(0)[0]
	if all[0] != none[0] || all[1] >= none[1] || all[1] == 0 {
		t.Errorf("in a run about rotors: %v, alone: %v", all[1], none[1])
	}
	if apart := l.compare(-1)[2]; apart[len(apart)-1] != 0 {
		t.Errorf("pairs without a pull request know something: %v", apart)
	}
}
