package track

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var big = func() []string {
	files := []string{"go.mod", "web/app.tsx", "auth/login.go", "store/db.go", "cmd/forge/main.go"}
	for len(files) < smallFiles {
		files = append(files, "lib/"+strings.Repeat("x", len(files))+".go")
	}
	return files
}()

func TestScore(t *testing.T) {
	list := func(n int) string { return strings.Repeat("- one thing\n", n) }
	for _, c := range []struct {
		name, title, body string
		tree              []string
		want              int
		why               string
	}{
		{"small", "The greeting lacks its comma", "It prints `hello Ann` where `hello, Ann` is right.", big, 0, ""},
		{"three asks", "Three", list(3), big, 0, ""},
		{"asks in a block of code", "Five", "~~~\n" + list(6) + "~~~\nIt is ~~~ so.", big, 0, ""},
		{"asks in a hidden comment", "Five", "<!-- what to say:\n" + list(6) + "-->\nIt is so.", big, 0, ""},
		{"asks behind them", "Five", "~~~\nx\n~~~\n<!-- y -->\n" + list(5), big, 2, "5 asks"},
		{"five asks", "Five", list(5), big, 2, "5 asks"},
		{"many asks", "Nine", list(9), big, 3, "9 asks"},
		{"sentences", "Sentences", "A must be. B should be. C has to be. D needs to be. E is.", big, 1, "4 asks"},
		{"asks in code", "Code", "```\n" + list(9) + "```", big, 0, ""},
		{"long", "Long", strings.Repeat("word ", manyWords), big, 1, "401 words"},
		{"packages", "Packages", "Change auth/login.go and `store`.", big, 1, "2 packages (auth, store)"},
		{"one package", "Packages", "Change auth/login.go and `auth`.", big, 0, ""},
		{"words that are folders", "Store it and auth it", "cmd, store, auth", big, 0, ""},
		{"a file of the UI", "A file", "Change `web/app.tsx`.", []string{}, 1, "UI"},
		{"words of the UI", "Two buttons", "", big, 1, "UI"},
		{"words of the UI without one", "Two buttons", "", []string{"main.go"}, 0, ""},
		{"quality", "Fast", "It answers within 200 ms.", big, 1, `quality ("within 200 ms")`},
		{"novelty", "A new service", "", big, 2, `"new service"`},
		{"small repository", "A new service", "", []string{"main.go"}, 1, `"new service", a small repository`},
	} {
		got, why := Score(c.title, c.body, c.tree)
		if got != c.want || strings.Join(why, ", ") != c.why {
			t.Errorf("%s: Score gives %d (%s), want %d (%s)", c.name, got, strings.Join(why, ", "), c.want, c.why)
		}
	}
}

func TestChoose(t *testing.T) {
	tree := func() ([]string, error) { return big, nil }
	body := "- a\n- b\n- c\n- d\n- e\n- f\n- g\n"
	for _, c := range []struct {
		set, label Track
		want       string
	}{
		{"", "", "quick"}, {Quick, "", "quick"}, {"", Quick, "quick"}, {Quick, Quick, "quick"},
		{Standard, "", "standard, by the settings"}, {Standard, Quick, "quick, by a label"}, {Auto, Quick, "quick, by a label"},
		{Auto, "", "standard, by its score of 3: 7 asks"}, {Full, "", "full, by the settings"}, {"", Full, "full, by a label"},
		{Standard, Full, "full, by a label"}, {Full, Quick, "quick, by a label"},
	} {
		got, err := Choose(c.set, c.label, "Many", body, tree)
		if err != nil || got.String() != c.want || got.Above() != (got.Name() != Quick) {
			t.Errorf("Choose(%q, %q) is %q, %v, want %q", c.set, c.label, got, err, c.want)
		}
	}
	more := body + "\nA new service that answers within 200 ms.\n"
	if c, _ := Choose(Auto, "", "Many", more, tree); c.Track != Full || c.Score != 6 || c.UI {
		t.Errorf("many asks for a new service: %v", c)
	}
	if c, _ := Choose(Full, "", "A button", "", tree); !c.UI {
		t.Errorf("a task of the user interface: %+v", c)
	}
	for _, set := range []Track{"", Quick} { // nothing is stored of what nobody asked for
		if got, _ := Choose(set, "", "Many", body, tree); got != nil {
			t.Errorf("Choose(%q) is %+v, want nil", set, got)
		}
	}
	broken := func() ([]string, error) { return nil, errors.New("away") }
	if _, err := Choose(Auto, "", "Many", body, broken); err == nil {
		t.Error("a tree that cannot be read is no error")
	}
	if _, err := Choose("", Full, "Many", body, broken); err == nil {
		t.Error("a tree that cannot be read is no error on the full track")
	}
	if _, err := Choose(Standard, "", "Many", body, broken); err != nil {
		t.Errorf("the tree is read where it decides nothing: %v", err)
	}
}

func TestLabels(t *testing.T) {
	for _, c := range []struct {
		start  string
		labels []string
		want   Track
	}{
		{"forge", []string{"bug", "forge"}, ""},
		{"forge", []string{"forge", "Forge:Quick"}, Quick},
		{"bot", []string{"forge:quick"}, ""},
		{"bot", []string{"bot:quick"}, Quick},
		{"forge", []string{"forge:full"}, Full},
		{"forge", []string{"forge:full", "forge:quick"}, Quick},
	} {
		if got := Labels(c.start, c.labels); got != c.want {
			t.Errorf("Labels(%q, %q) is %q, want %q", c.start, c.labels, got, c.want)
		}
	}
}

// Whatever the text, a score is not below 0, is told, and is the same the next time.
func TestScoreOfAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.String().Draw(t, "body")
		tree := rapid.SliceOfN(rapid.SampledFrom(big), 0, 80).Draw(t, "tree")
		points, why := Score("Title", body, tree)
		if points < 0 || points > 0 != (len(why) > 0) && !slices.Contains(why, "a small repository") {
			t.Fatalf("Score is %d by %q", points, why)
		}
		again, _ := Score("Title", body, tree)
		if again != points {
			t.Fatalf("Score is %d, then %d", points, again)
		}
	})
}

// Covers R10: the more a task asks for, the more of its limits it gets, and never more than all.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		body string
		want string
	}{
		{"It is wrong.", "50 % of those that are set, by its score of 0"},
		{"It answers within 200 ms.", "70 % of those that are set, by its score of 1: quality (\"within 200 ms\")"},
		{"A new service answers within 200 ms.", "85 % of those that are set, by its score of 3: quality (\"within 200 ms\"), \"new service\""},
		{"- a\n- b\n- c\n- d\n- e\n- f\n\nA new service answers within 200 ms.", "100 % of those that are set, by its score of 6: 6 asks, quality (\"within 200 ms\"), \"new service\""},
	} {
		f := FitOf("x", c.body, nil)
		if f.String() != c.want {
			t.Errorf("%q: %s, want %s", c.body, f, c.want)
		}
		if got := f.Of(5); got > 5 || got < 1 || f.Of(0) != 0 {
			t.Errorf("%q: %d of 5", c.body, got)
		}
	}
}
