package identity

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"forge/pipeline"
)

// written reads the pairs that were written by hand, with whether they are the same,
// and whether they stand at the same code.
func written(t *testing.T) (pairs []Pair, here []bool) {
	t.Helper()
	raw, err := os.ReadFile("../testdata/identity.txt")
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
		here = append(here, strings.HasSuffix(parts[0], " here"))
	}
	return pairs, here
}

// Covers lessons 2, 25: next to no two findings are taken for one, and most are
// recognised that were only said in other words; at the same code, and beside it.
func TestResolveMeasured(t *testing.T) {
	t.Parallel()
	pairs, here := written(t)
	var found, missed, wrong float64
	for i, p := range pairs {
		k := run(finding("a.go", 10, "x := f()", p.A))
		code := "x := f()"
		if !here[i] {
			k, code = k.to(Moves{}), "y = g(y)"
		}
		got := k.Resolve([]pipeline.Finding{finding("a.go", 17, code, p.B)})[0].Fingerprint == k.names()[0]
		switch {
		case p.Same && got:
			found++
		case p.Same:
			missed++
			t.Logf("missed: %s | %s", p.A, p.B)
		case got:
			wrong++
			t.Logf("taken for one: %s | %s", p.A, p.B)
		}
	}
	precision, recall := found/(found+wrong), found/(found+missed)
	t.Logf("precision %.2f, recall %.2f", precision, recall)
	if precision < 0.95 || recall < 0.95 {
		t.Errorf("precision %.2f, recall %.2f; want 0.95 and 0.95", precision, recall)
	}
}

// The weights that are shipped are those of the features that there are, and none
// speaks the wrong way.
func TestShippedModel(t *testing.T) {
	t.Parallel()
	if len(Shipped().Weights) != int(features) {
		t.Errorf("%d weights, want %d", len(Shipped().Weights), features)
	}
	for i, name := range featureNames {
		w, ok := Shipped().Weights[name]
		if !ok || signs[i] > 0 && w < 0 || signs[i] < 0 && w > 0 {
			t.Errorf("the weight of %s is %v, there: %v", name, w, ok)
		}
	}
	if Shipped().Limit[0] <= Shipped().Limit[1] || Shipped().Limit[1] <= 0 {
		t.Errorf("the limits are %v; want the stricter one where nothing else is known", Shipped().Limit)
	}
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
	train, _ := written(t)
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
	pairs, _ := written(t)
	a, b := Fit(pairs), Fit(slices.Clone(pairs))
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("two fits: %v and %v", a, b)
	}
	if m := Fit(nil); m == nil || len(m.Weights) != int(features) {
		t.Errorf("a fit on nothing: %v", m)
	}
}

// What two messages share never speaks against them, whatever the pairs say.
func TestFitKeepsSigns(t *testing.T) {
	t.Parallel()
	pairs, _ := written(t)
	var many []Pair // enough to outweigh what is assumed beforehand
	for n := range 10 {
		for _, p := range pairs {
			p.Same, p.Pull = !p.Same, fmt.Sprintf("%s%d", p.Pull, n)
			many = append(many, p)
		}
	}
	m := Fit(many)
	for i, name := range featureNames {
		if w := m.Weights[name]; signs[i] > 0 && w < 0 || signs[i] < 0 && w > 0 {
			t.Errorf("labels turned round: the weight of %s is %v", name, w)
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
	if all[fSense] != none[fSense] || all[fSenseRare] >= none[fSenseRare] || all[fSenseRare] == 0 {
		t.Errorf("in a run about rotors: %v, alone: %v", all[fSenseRare], none[fSenseRare])
	}
	if got := l.subject("", -1).messages; got != 0 {
		t.Errorf("pairs without a pull request know %d messages", got)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	has := func(s string, v view, what string) bool {
		return slices.ContainsFunc(lexicon{}.read(s)[v], func(it item) bool { return it.id == hash(v, what) })
	}
	for _, c := range []struct {
		text string
		view view
		item string
		want bool
	}{
		{"`Close` fails", vIdent, "close", true}, {"Close fails", vIdent, "close", false}, {"calls os.Remove twice", vIdent, "remove", true},
		{"match_count is lost", vPart, "count", true}, {"parseURL is slow", vPart, "url", true}, {"close() is called", vIdent, "close", true},
		{"the index(es) are wrong", vIdent, "index", false}, {"from 30% to 70%", vOrder, "30>70", true}, {"from 70% to 30%", vOrder, "30>70", false},
		{"in app/user-list.scss, line 5", vFile, "user-list.scss", true}, {"in user.scss", vFile, "topic.scss", false}, {"v1.2 is out", vNumber, "2", true},
		{"the null pointer", vSense, senses()["nil"], true}, {"it doesn't lock", vStem, "not", true}, {"never locked", vStem, "not", true},
		{"the data is there", vStem, "is", false}, {"validation", vStem, stem("validated"), true},
	} {
		if got := has(c.text, c.view, c.item); got != c.want {
			t.Errorf("%q has %q in view %d: %v, want %v", c.text, c.item, c.view, got, c.want)
		}
	}
}
