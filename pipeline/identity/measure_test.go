package identity

import (
	"os"
	"slices"
	"strings"
	"testing"

	"forge/pipeline"
)

// pair are two messages that were written by hand: whether they are the same, and whether
// they stand at the same code.
type pair struct {
	same, here bool
	a, b       string
}

func written(t *testing.T) (pairs []pair) {
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
		pairs = append(pairs, pair{strings.HasPrefix(parts[0], "same"), strings.HasSuffix(parts[0], " here"), parts[1], parts[2]})
	}
	return pairs
}

// Covers lessons 2, 25: next to no two findings are taken for one, and most are
// recognised that were only said in other words; at the same code, and beside it.
func TestResolveMeasured(t *testing.T) {
	t.Parallel()
	var found, missed, wrong float64
	for _, p := range written(t) {
		k := run(finding("a.go", 10, "x := f()", p.a))
		code := "x := f()"
		if !p.here {
			k, code = k.to(Moves{}), "y = g(y)"
		}
		got := k.Resolve([]pipeline.Finding{finding("a.go", 17, code, p.b)})[0].Fingerprint == k.names()[0]
		switch {
		case p.same && got:
			found++
		case p.same:
			missed++
			t.Logf("missed: %s | %s", p.a, p.b)
		case got:
			wrong++
			t.Logf("taken for one: %s | %s", p.a, p.b)
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
	if len(Shipped().Weights) != len(Features) {
		t.Errorf("%d weights, want %d", len(Shipped().Weights), len(Features))
	}
	for _, f := range Features {
		w, ok := Shipped().Weights[f.Name]
		if !ok || f.Sign > 0 && w < 0 || f.Sign < 0 && w > 0 {
			t.Errorf("the weight of %s is %v, there: %v", f.Name, w, ok)
		}
	}
	if Shipped().Limit[0] <= Shipped().Limit[1] || Shipped().Limit[1] <= 0 {
		t.Errorf("the limits are %v; want the stricter one where nothing else is known", Shipped().Limit)
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
