package sandbox

import (
	_ "embed"
	"errors"
	"slices"
	"strings"
	"testing"

	"forge/pipeline/workspace"
)

//go:embed testdata/protected.txt
var protectedSamples string

// samples reads testdata/protected.txt: paths that are refused, and those that are not.
func samples(t *testing.T) (refused, honest []string) {
	t.Helper()
	into := &refused
	for line := range strings.Lines(protectedSamples) {
		switch line = strings.TrimSpace(line); {
		case line == "allowed:":
			into = &honest
		case line != "" && !strings.HasPrefix(line, "#"):
			*into = append(*into, strings.Fields(line)...)
		}
	}
	return refused, honest
}

// Covers S16: what gives rights, runs without a word or steers agents is refused, and
// what ordinary tasks change is not.
func TestProtectedPaths(t *testing.T) {
	refused, honest := samples(t)
	for _, name := range refused {
		for _, spelling := range []string{name, strings.ToUpper(name), strings.ToLower(name), strings.ReplaceAll(name, "s", "ſ"), strings.ReplaceAll(name, "fi", "ﬁ"),
			strings.ReplaceAll(name, "/", "./"), name + ". ", name + "::$DATA", name[:1] + "\u200d" + name[1:], name + "\ufe0f"} {
			var p *workspace.ProtectedError
			if err := checkProtected(spelling, nil, nil); !errors.As(err, &p) {
				t.Errorf("checkProtected(%q) = %v; want it refused", spelling, err)
			}
		}
		if err := checkProtected(name, nil, []string{name}); err != nil {
			t.Errorf("checkProtected(%q) = %v, although it is allowed", name, err)
		}
	}
	for _, name := range honest {
		if err := checkProtected(name, nil, nil); err != nil {
			t.Errorf("checkProtected(%q) = %v; want it allowed", name, err)
		}
	}
}

// A rule without which each path would still be refused protects nothing, and one that
// could be taken away without a test's failing guards nothing. So with what is open.
func TestEveryProtectionIsNeeded(t *testing.T) {
	refused, honest := samples(t)
	rules, open := protectedPaths()
	only := func(globs, names []string) map[string]bool {
		out := map[string]bool{}
		for _, name := range names {
			if by := slices.DeleteFunc(slices.Clone(globs), func(g string) bool { return !matchGlob(folded(g), folded(name)) }); len(by) == 1 {
				out[by[0]] = true
			}
		}
		return out
	}
	needed := only(rules, refused)
	for _, rule := range rules {
		if !needed[rule] {
			t.Errorf("no path of testdata/protected.txt is refused by %q alone", rule)
		}
	}
	var parts []string
	for _, name := range honest {
		parts = append(parts, strings.Split(name, "/")...)
	}
	needed = only(open, parts)
	for _, name := range open {
		if !needed[name] {
			t.Errorf("no path of testdata/protected.txt is allowed by %q alone", name)
		}
	}
}
