package feedback

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The matched lines are equal, in order, and as many as the longest common
// subsequence has.
func TestMatch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		a, b := rapid.SliceOfN(line, 0, 12).Draw(t, "a"), rapid.SliceOfN(line, 0, 12).Draw(t, "b")
		n, last := 0, -1
		for i, j := range match(a, b) {
			if j < 0 {
				continue
			}
			if j <= last || a[i] != b[j] {
				t.Fatalf("match(%q, %q): line %d with %d", a, b, i, j)
			}
			n, last = n+1, j
		}
		if want := common(a, b); n != want {
			t.Fatalf("match(%q, %q) has %d lines, want %d", a, b, n, want)
		}
	})
}

// common is the length of the longest common subsequence, by the book.
func common(a, b []string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for i := range a {
		for j := range b {
			rows[i+1][j+1] = max(rows[i][j+1], rows[i+1][j])
			if a[i] == b[j] {
				rows[i+1][j+1] = rows[i][j] + 1
			}
		}
	}
	return rows[len(a)][len(b)]
}

func TestFollow(t *testing.T) {
	t.Parallel()
	old := split("a\nb\nc\nd\ne\n")
	for _, c := range []struct{ now, want string }{
		{"a\nb\nc\nd\ne\n", "c"},
		{"x\ny\na\nb\nc\nd\ne\n", "c"},
		{"a\nb\nC\nd\ne\n", "C"},
		{"a\nb\nC\nD\nd\ne\n", "C D"},
		{"a\nb\nc\nnew\nd\ne\n", "c new"},
		{"a\nb\nd\ne\n", ""},
		{"A\nb\nC\nd\nE\n", "C"},
		{"c\n", "c"},
		{"", ""},
		{"q\nw\n", "q w"},
	} {
		now := split(c.now)
		if got := strings.Join(follow(old, now, place{2, 3}).of(now), " "); got != c.want {
			t.Errorf("follow to %q = %q, want %q", c.now, got, c.want)
		}
	}
}

// Wherever other lines come and go, the followed ones are found again.
func TestFollowMoves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		above, below := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 6), rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "z"}), 0, 6)
		top, end, top2, end2 := above.Draw(t, "top"), below.Draw(t, "end"), above.Draw(t, "top2"), below.Draw(t, "end2")
		a := slices.Concat(top, []string{"one", "two"}, end)
		b := slices.Concat(top2, []string{"one", "two"}, end2)
		if got := follow(a, b, place{len(top), len(top) + 2}).of(b); index(got, []string{"one", "two"}) < 0 {
			t.Fatalf("follow(%q, %q) = %q", a, b, got)
		}
	})
}

// Versions that differ too much are matched at both ends.
func TestMatchFarApart(t *testing.T) {
	t.Parallel()
	var a, b []string
	for range maxEdits {
		a, b = append(a, "old"), append(b, "new")
	}
	m := match(slices.Concat([]string{"top"}, a, []string{"end"}), slices.Concat([]string{"top"}, b, []string{"end"}))
	if m[0] != 0 || m[1] != -1 || m[len(m)-1] != len(b)+1 {
		t.Errorf("match = %d, %d, …, %d; want 0, -1, …, %d", m[0], m[1], m[len(m)-1], len(b)+1)
	}
}

func TestSame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"\tif x {\n\t\ty()\n\t}\n", "if x {\n\ty()\n}\n", true},
		{"a \r\nb\r\n", "a\nb\n", true},
		{"if x:\n    y()\n", "if x:\ny()\n", false},
		{"a\n", "a\n\n", false},
		{"", "", true},
	} {
		if got := same(split(c.a), split(c.b)); got != c.want {
			t.Errorf("same(%q, %q) = %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	const patch = "@@ -1,5 +1,6 @@\n a\n-b\n+B\n c\n-d\n+D\n+DD\n e\n@@ -20,2 +20,1 @@ func f()\n x\n-y\n\\ No newline at end of file"
	want := []change{
		{path: "f.go", line: 2, before: []string{"b"}, after: []string{"B"}},
		{path: "f.go", line: 4, before: []string{"d"}, after: []string{"D", "DD"}},
		{path: "f.go", line: 21, before: []string{"y"}},
	}
	got := changes("f.go", patch)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(change{})); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"", "nonsense", "@@ -1,9 +1,9 @@\n a\n"} {
		if got := changes("f.go", bad); got != nil {
			t.Errorf("changes(%q) = %+v, want none", bad, got)
		}
	}
	inverse := changes("f.go", "@@ -1,6 +1,5 @@\n a\n-B\n+b\n c\n-D\n-DD\n+d\n e\n@@ -20,1 +20,2 @@\n x\n+y\n")
	if s := undoes(inverse, got); s != 1 {
		t.Errorf("the inverse undoes %v, want 1", s)
	}
	if s := undoes(got, got); s != 0 {
		t.Errorf("the change undoes %v of itself, want 0", s)
	}
	if s := undoes(changes("f.go", "@@ -1,3 +1,3 @@\n a\n-B\n+b\n c\n"), got); s < 0.3 || s > 0.35 {
		t.Errorf("a part undoes %v, want 2 of 6 lines", s)
	}
	if s := undoes(inverse, changes("g.go", patch)); s != 0 {
		t.Errorf("another file's change is undone by %v, want 0", s)
	}
	if s := undoes(inverse, nil); s != 0 {
		t.Errorf("nothing is undone by %v, want 0", s)
	}
}

func FuzzChanges(f *testing.F) {
	f.Add("@@ -1,2 +1,2 @@\n a\n-b\n+c\n")
	f.Fuzz(func(t *testing.T, patch string) {
		for _, c := range changes("f", patch) {
			if len(c.before)+len(c.after) == 0 {
				t.Errorf("changes(%q) has an empty one", patch)
			}
		}
	})
}
