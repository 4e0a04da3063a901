package identity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"forge/pipeline"
)

func finding(file string, line int, code, message string) pipeline.Finding {
	f := pipeline.Finding{Severity: pipeline.SeverityError, Category: "correctness", File: file, Line: line, Code: code, Message: message}
	f.Fingerprint = f.Digest()
	return f
}

// run is a run that knows findings, as Resolve named them when they were new.
func run(list ...pipeline.Finding) Known {
	k := Known{Phase: pipeline.PhaseReview}
	for _, f := range k.Resolve(list) {
		k.Issues = append(k.Issues, pipeline.Issue{Finding: &f, Phase: pipeline.PhaseReview, State: "open"})
	}
	return k
}

func (k Known) names() []string {
	var out []string
	for i := range k.Issues {
		out = append(out, k.Issues[i].Fingerprint())
	}
	return out
}

func names(list []pipeline.Finding) []string {
	var out []string
	for _, f := range list {
		out = append(out, f.Fingerprint)
	}
	return out
}

// to gives all known issues places by a patch.
func (k Known) to(m Moves) Known {
	k.Now = func(is *pipeline.Issue) Place { return m.At(is.Finding.File, is.Finding.Line) }
	return k
}

const said = "The error returned by Close is ignored"

// Covers lessons 25: the same words about the same code in two files are two
// findings, in one review and in the next.
func TestSameWordsInTwoFiles(t *testing.T) {
	t.Parallel()
	a, b, c := finding("a.go", 3, "f.Close()", said), finding("b.go", 3, "f.Close()", said), finding("c.go", 3, "f.Close()", said)
	k := run(a, b, c)
	n := k.names()
	if n[0] == n[1] || n[1] == n[2] || n[0] == n[2] {
		t.Fatalf("three findings have the fingerprints %q", n)
	}
	if got := names(k.Resolve([]pipeline.Finding{c, a})); got[0] != n[2] || got[1] != n[0] {
		t.Errorf("c.go and a.go, seen again, are %q, want %q and %q", got, n[2], n[0])
	}
	if got := names(run(a).Resolve([]pipeline.Finding{b})); got[0] == run(a).names()[0] {
		t.Error("what was known of a.go was taken for what is new in b.go")
	}
}

// Covers lessons 25: the same line twice in a file is two findings; which of them
// is still there is told by the line.
func TestSameLineTwice(t *testing.T) {
	t.Parallel()
	a, b := finding("a.go", 10, "f.Close()", said), finding("a.go", 50, "\tf.Close()", said)
	k := run(a, b)
	n := k.names()
	if n[0] == n[1] {
		t.Fatal("two findings have one fingerprint")
	}
	at := func(lines ...int) (out []pipeline.Finding) {
		for _, l := range lines {
			out = append(out, finding("a.go", l, "f.Close()", said))
		}
		return out
	}
	for name, c := range map[string]struct {
		found []pipeline.Finding
		want  []string
	}{
		"both, the other way round": {at(50, 10), []string{n[1], n[0]}},
		"both, moved by 38":         {at(48, 88), n},
		"the first alone":           {at(12), n[:1]},
		"the second alone":          {at(45), n[1:]},
	} {
		if got := names(k.Resolve(c.found)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	got := names(k.Resolve(at(10, 50, 70)))
	if !slices.Equal(got[:2], n) || slices.Contains(n, got[2]) {
		t.Errorf("a third one: %q, want %q and a new one", got, n)
	}
	// The second was fixed, and 40 lines were put before the first: by the patch, not
	// by the nearest line.
	moved := k.to(ReadMoves("diff --git a/a.go b/a.go\n@@ -0,0 +1,40 @@\n" + repeat("+x\n", 40) + "@@ -50 +90 @@\n-\tf.Close()\n+\treturn f.Close()\n"))
	if got := names(moved.Resolve(at(50))); got[0] != n[0] {
		t.Errorf("line 50, that was 10: %q, want %q", got, n[0])
	}
	// The first stands where it stood: what is found elsewhere is not it.
	still := run(a).to(Moves{})
	if got := names(still.Resolve(at(50))); got[0] == n[0] {
		t.Error("another equal line was taken for one that has not changed")
	}
}

func repeat(s string, n int) (out string) {
	for range n {
		out += s
	}
	return out
}

// Covers lessons 25: a renamed file is followed by the patch; one that is gone by
// the code alone.
func TestRenamedFile(t *testing.T) {
	t.Parallel()
	a := finding("a.go", 10, "f.Close()", said)
	k := run(a)
	want := k.names()[0]
	renamed := k.to(ReadMoves("diff --git a/a.go b/dir/new.go\nsimilarity index 90%\nrename from a.go\nrename to dir/new.go\n@@ -1,2 +1,3 @@\n x\n+y\n z\n"))
	gone := k.to(ReadMoves("diff --git a/a.go b/a.go\ndeleted file mode 100644\n@@ -1 +0,0 @@\n-x\n"))
	for name, c := range map[string]struct {
		k    Known
		f    pipeline.Finding
		same bool
	}{
		"renamed":                      {renamed, finding("dir/new.go", 11, "f.Close()", "The returned error of Close is ignored"), true},
		"renamed, still the old name":  {renamed, a, false},
		"renamed, another file":        {renamed, finding("b.go", 10, "f.Close()", said), false},
		"gone, the same code":          {gone, finding("b.go", 70, "f.Close()", said), true},
		"gone, other code":             {gone, finding("b.go", 10, "g.Close()", said), false},
		"there, the same code outside": {k, finding("b.go", 10, "f.Close()", said), false},
	} {
		if got := c.k.Resolve([]pipeline.Finding{c.f}); (got[0].Fingerprint == want) != c.same {
			t.Errorf("%s: recognised = %v, want %v", name, !c.same, c.same)
		}
	}
}

// Covers T2, lessons 2, 3: a finding in other words keeps its identity, and with it
// its count and its dismissal; another about the same code does not.
func TestReworded(t *testing.T) {
	t.Parallel()
	first := finding("a.go", 10, "f.Close()", said)
	again := func(edit func(*pipeline.Finding)) pipeline.Finding {
		f := first
		f.Message = "The returned error of Close is ignored"
		edit(&f)
		f.Fingerprint = f.Digest()
		return f
	}
	for name, c := range map[string]struct {
		f    pipeline.Finding
		same bool
	}{
		"said as before":    {first, true},
		"reworded":          {again(func(*pipeline.Finding) {}), true},
		"within more":       {again(func(f *pipeline.Finding) { f.Code, f.Line, f.EndLine = "defer func() {\n  f.Close()\n}()", 9, 11 }), true},
		"other category":    {again(func(f *pipeline.Finding) { f.Category = "style" }), true},
		"edited code":       {again(func(f *pipeline.Finding) { f.Code, f.Line = "defer f.Close()", 12 }), true},
		"something else":    {again(func(f *pipeline.Finding) { f.Message = "The file is closed twice" }), false},
		"another criterion": {again(func(f *pipeline.Finding) { f.Criterion = "AC2" }), false},
		"other file":        {again(func(f *pipeline.Finding) { f.File = "b.go" }), false},
		"no file":           {again(func(f *pipeline.Finding) { f.File, f.Line, f.Code = "", 0, "" }), false},
		"nothing said":      {again(func(f *pipeline.Finding) { f.Message = "!" }), false},
	} {
		k := run(first)
		list := []pipeline.Finding{c.f}
		if got := k.Resolve(list); (got[0].Fingerprint == first.Fingerprint) != c.same {
			t.Errorf("%s: recognised = %v, want %v", name, !c.same, c.same)
		}
		if list[0].Fingerprint != c.f.Fingerprint {
			t.Errorf("%s: the caller's list was changed", name)
		}
	}
	both := run(first).Resolve([]pipeline.Finding{first, again(func(*pipeline.Finding) {})})
	if both[0].Fingerprint != first.Fingerprint || both[1].Fingerprint == first.Fingerprint {
		t.Error("two findings of one review became one")
	}
}

// What stands a few lines from a known finding whose code has not changed is that
// finding only where neither names something else; far from it, it never is.
func TestBesideAndElsewhere(t *testing.T) {
	t.Parallel()
	const long = "The temporary file is left behind when the rename fails"
	const again = "When the rename fails, the temporary file is left behind"
	still := func(f pipeline.Finding) Known { return run(f).to(Moves{}) }
	changed := func(f pipeline.Finding) Known {
		return run(f).to(Moves{"a.go": {to: "a.go", hunks: []hunk{{f.Line, 1, 0}}}})
	}
	first := finding("a.go", 10, "x := f()", long)
	for name, c := range map[string]struct {
		k    Known
		f    pipeline.Finding
		same bool
	}{
		"beside, reworded":        {still(first), finding("a.go", 13, "os.Rename(a, b)", again), true},
		"far from unchanged code": {still(first), finding("a.go", 60, "os.Rename(a, b)", again), false},
		"far from changed code":   {changed(first), finding("a.go", 60, "os.Rename(a, b)", again), true},
		"at changed code":         {changed(first), finding("a.go", 11, "y := g()", "The temporary file stays behind after a failed rename"), true},
		"an equal line beside":    {still(first), finding("a.go", 13, "x := f()", again), false},
		"at changed code, moved by 200": {run(first).to(Moves{"a.go": {to: "a.go", hunks: []hunk{{0, 0, 200}, {10, 1, 200}}}}),
			finding("a.go", 212, "y := g()", "The temporary file stays behind after a failed rename"), true},
		"the same template beside": {still(finding("a.go", 10, "func Parse()", "Exported function Parse has no doc comment")),
			finding("a.go", 14, "func Format()", "Exported function Format has no doc comment"), false},
		"the same template elsewhere": {changed(finding("a.go", 10, "os.Remove(a)", "The error returned by os.Remove is ignored")),
			finding("a.go", 80, "os.Rename(a, b)", "The error returned by os.Rename is ignored"), false},
		"few words elsewhere":            {changed(finding("a.go", 10, "a.x()", "Error ignored")), finding("a.go", 80, "b.y()", "Error ignored"), false},
		"few words, the very same place": {still(finding("a.go", 10, "a.x()", "Typo")), finding("a.go", 10, "a.x()", "Typo"), true},
		"no code, the very same place":   {run(finding("a.go", 10, "", "Typo")), finding("a.go", 10, "", "Typo"), true},
		"a line of a file's finding":     {run(finding("a.go", 0, "", long)), finding("a.go", 60, "os.Rename(a, b)", again), true},
		"a bracket is no code": {run(finding("a.go", 10, "}", long)),
			finding("a.go", 90, "if x {\n}", "The temporary file stays behind after a failed rename"), false},
	} {
		if got := c.k.Resolve([]pipeline.Finding{c.f}); (got[0].Fingerprint == c.k.names()[0]) != c.same {
			t.Errorf("%s: recognised = %v, want %v", name, !c.same, c.same)
		}
	}
}

// Covers lessons 3: what was dismissed takes in less than what is open.
func TestDismissedIsNarrower(t *testing.T) {
	t.Parallel()
	k := run(finding("a.go", 10, "w.Write(x)", "Password is written to the log"))
	again := []pipeline.Finding{finding("a.go", 10, "w.Write(x)", "The log contains the password")}
	if got := k.Resolve(again); got[0].Fingerprint != k.names()[0] {
		t.Error("an open finding was not recognised")
	}
	k.Issues[0].State = "dismissed"
	if got := k.Resolve(again); got[0].Fingerprint == k.names()[0] {
		t.Error("a dismissal took in what is only like it")
	}
}

// A finding of another phase is not recognised, and its fingerprint not given away.
func TestOtherPhase(t *testing.T) {
	t.Parallel()
	f := finding("a_test.go", 10, "t.Skip()", "The test is skipped")
	k := run(f)
	k.Phase = pipeline.PhaseTest
	if got := k.Resolve([]pipeline.Finding{f}); got[0].Fingerprint == f.Fingerprint {
		t.Error("two phases' findings have one fingerprint")
	}
	if got := (Known{Issues: []pipeline.Issue{{Failure: &pipeline.Failure{}, Phase: k.Phase}},
		Phase: k.Phase}).Resolve([]pipeline.Finding{f}); got[0].Fingerprint != f.Fingerprint {
		t.Error("a failure was taken for a finding")
	}
}

// What Resolve promises for any findings whatever: one to one, within the place, in
// whatever order the lists are.
func TestResolveProperties(t *testing.T) {
	t.Parallel()
	files := []string{"", "a.go", "b.go"}
	codes := []string{"", "f.Close()", "g.Close()", "if err := f.Close(); err != nil {\n\treturn err\n}"}
	says := []string{said, "The returned error of Close is ignored", "Close is called twice", "", "?", "user may be nil"}
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		draw := func() (out []pipeline.Finding) {
			for range rnd.IntN(6) {
				f := finding(files[rnd.IntN(3)], rnd.IntN(30), codes[rnd.IntN(4)], says[rnd.IntN(len(says))])
				f.EndLine = f.Line * rnd.IntN(2)
				out = append(out, f)
			}
			return out
		}
		k, found := run(draw()...), draw()
		if rnd.IntN(2) == 0 {
			k = k.to(Moves{"a.go": {to: []string{"", "a.go", "b.go"}[rnd.IntN(3)], hunks: []hunk{{1 + rnd.IntN(20), rnd.IntN(5), rnd.IntN(9) - 4}}}})
		}
		for i := range k.Issues {
			k.Issues[i].State = []pipeline.IssueState{pipeline.IssueOpen, pipeline.IssueFixed, pipeline.IssueDismissed, pipeline.IssueAccepted}[rnd.IntN(4)]
		}
		got := k.Resolve(found)
		seen := map[string]bool{}
		for _, f := range got {
			if seen[f.Fingerprint] || len(f.Fingerprint) != 16 {
				t.Fatalf("seed %d: fingerprint %q is there twice, or is none", seed, f.Fingerprint)
			}
			seen[f.Fingerprint] = true
			if i := slices.Index(k.names(), f.Fingerprint); i >= 0 {
				was := k.Issues[i].Finding.File
				if now := k.Now; now != nil && was != "" {
					if was = now(&k.Issues[i]).File; was == "" {
						was = f.File
					}
				}
				if was != f.File {
					t.Fatalf("seed %d: a finding of %q was recognised in %q", seed, was, f.File)
				}
			}
		}
		mixed := Known{Issues: slices.Clone(k.Issues), Phase: k.Phase, Now: k.Now}
		rnd.Shuffle(len(mixed.Issues), func(i, j int) { mixed.Issues[i], mixed.Issues[j] = mixed.Issues[j], mixed.Issues[i] })
		order := rnd.Perm(len(found))
		shuffled := make([]pipeline.Finding, len(found))
		for i, at := range order {
			shuffled[i] = found[at]
		}
		if a, b := byContent(got), byContent(mixed.Resolve(shuffled)); !slices.Equal(a, b) {
			t.Fatalf("seed %d: in another order: %q, want %q", seed, b, a)
		}
	}
}

func byContent(list []pipeline.Finding) []string {
	var out []string
	for _, f := range list {
		out = append(out, fmt.Sprintf("%s:%d-%d %q %q = %s", f.File, f.Line, f.EndLine, f.Code, f.Message, f.Fingerprint))
	}
	slices.Sort(out)
	return out
}

// The assignment's sum is the greatest, by trying all of them.
func TestAssignIsOptimal(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		scores := make([][]float64, 1+rnd.IntN(5))
		cols := 1 + rnd.IntN(5)
		for i := range scores {
			scores[i] = make([]float64, cols)
			for j := range scores[i] {
				scores[i][j] = max(0, rnd.Float64()-0.4)
			}
		}
		var got float64
		seen := map[int]bool{}
		for i, j := range assign(scores) {
			if j < 0 {
				continue
			}
			if seen[j] {
				t.Fatalf("seed %d: column %d is given twice", seed, j)
			}
			seen[j] = true
			got += scores[i][j]
		}
		if want := best(scores, 0, 0); got < want-1e-9 {
			t.Fatalf("seed %d: the sum is %v, want %v", seed, got, want)
		}
	}
}

func best(scores [][]float64, i int, used uint) float64 {
	if i == len(scores) {
		return 0
	}
	most := best(scores, i+1, used)
	for j, s := range scores[i] {
		if used&(1<<j) == 0 {
			most = max(most, s+best(scores, i+1, used|1<<j))
		}
	}
	return most
}

// Whatever the texts are: nothing panics, what is the same is recognised, and no two
// findings become one.
func FuzzResolve(f *testing.F) {
	f.Add("The error returned by Close is ignored", "`f.Close()` in a.go:12 isn't checked (30% → 70%)", "f.Close()", 10, 12)
	f.Add("", "\xff\x00", "}", 0, -5)
	f.Add("XMLHTTPRequest2 ΑΒΓ ß 手機 '’s_$@", "x's", "", 1<<40, 1)
	f.Fuzz(func(t *testing.T, a, b, code string, line, line2 int) {
		one, two := finding("a.go", line, code, a), finding("a.go", line2, code+b, b)
		k := run(one, two)
		n := k.names()
		if n[0] == n[1] {
			t.Fatalf("two findings have the fingerprint %s", n[0])
		}
		got := names(k.Resolve([]pipeline.Finding{two, one, finding("b.go", line, code, a)}))
		if slices.Contains(n, got[2]) || got[0] == got[1] || got[0] == got[2] || got[1] == got[2] {
			t.Fatalf("known %q, seen again with another in another file: %q", n, got)
		}
		if alone := run(one); alone.Resolve([]pipeline.Finding{one})[0].Fingerprint != alone.names()[0] {
			t.Fatal("the very same finding was not recognised")
		}
	})
}

// A run with 200 findings in one file, and 50 new ones.
func BenchmarkResolve(b *testing.B) {
	message := func(i, verb int) string {
		return fmt.Sprintf("%s `value%d` before it is handed to `handler%d.Serve`: when request %d comes without a body, the pointer is nil and the server answers with a panic instead of an error. Return `errEmpty%d` early, as the other handlers of this package do.",
			[]string{"Nothing checks", "There is no check of"}[verb], i, i%40, i, i%7)
	}
	var known, found []pipeline.Finding
	for i := range 200 {
		known = append(known, finding("a.go", i*7, fmt.Sprintf("v%d := f(%d)", i, i), message(i, 0)))
	}
	for i := range 50 {
		found = append(found, finding("a.go", i*21+3, fmt.Sprintf("v%d := f(%d)", i*3, i*3), message(i*3, 1)))
	}
	k := run(known...)
	for b.Loop() {
		k.Resolve(found)
	}
}
