package glob

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"a/b.go", "a/b.go", true}, {"a/b.go", "a/c.go", false}, {"a/*.go", "a/b.go", true}, {"a/*.go", "a/b/c.go", false},
		{"a/**", "a/b/c.go", true}, {"a/**", "a", true}, {"a/**", "ab", false}, {"**/b.go", "b.go", true}, {"**/b.go", "x/y/b.go", true},
		{"a/**/z", "a/z", true}, {"a/**/z", "a/b/c/z", true}, {"a/**/z", "a/b/c", false}, {"**", "a", true}, {"**", "a/b", true},
		{"[", "[", false}, {"a[", "a[", false}, {"*", "a/b", false}, {"", "", true}, {"", "a", false},
	} {
		if got := Match(c.pattern, c.name); got != c.want {
			t.Errorf("Match(%q, %q) = %t", c.pattern, c.name, got)
		}
	}
}

// A pattern out of a repository must not cost more than its length.
func TestMatchIsBounded(t *testing.T) {
	done := make(chan bool)
	go func() { done <- Match(strings.Repeat("**/a/", 200)+"z", strings.Repeat("a/", 200)+"y") }()
	select {
	case got := <-done:
		if got {
			t.Error("it matches")
		}
	case <-time.After(time.Minute):
		t.Fatal("it takes over a minute")
	}
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"a/**", "a/b.go", true}, {"a/**", "b/**", false}, {"a/*.go", "a/*_test.go", true}, {"a/*.go", "a/*.py", false},
		{"a*/x", "ab*/x", true}, {"a*/x", "b*/x", false}, {"**/x.go", "a/**", true}, {"a/*.go", "a/b/**", false}, {"**", "a", true},
		{"src/auth/**", "src/**/token.go", true}, {"a/[xy].go", "a/x.go", true}, {"a/[xy].go", "a/z.go", false},
	} {
		if got := Overlap(c.a, c.b); got != c.want {
			t.Errorf("Overlap(%q, %q) = %t", c.a, c.b, got)
		}
		if got := Overlap(c.b, c.a); got != c.want {
			t.Errorf("Overlap(%q, %q) = %t", c.b, c.a, got)
		}
	}
}

// Covers V6: what two patterns match, both, is never missed.
func TestOverlapMissesNothing(t *testing.T) {
	element := rapid.SampledFrom([]string{"a", "b", "ab", "ba", "*", "a*", "*b", "a*b", "?", "[ab]", "**"})
	pattern := rapid.Map(rapid.SliceOfN(element, 1, 4), func(s []string) string { return strings.Join(s, "/") })
	name := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "ba", "aab"}), 1, 4), func(s []string) string { return strings.Join(s, "/") })
	rapid.Check(t, func(t *rapid.T) {
		a, b, n := pattern.Draw(t, "a"), pattern.Draw(t, "b"), name.Draw(t, "name")
		if Match(a, n) && Match(b, n) && !Overlap(a, b) {
			t.Fatalf("%q matches %q and %q, which do not overlap", n, a, b)
		}
	})
}
