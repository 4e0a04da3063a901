package sandbox

import (
	_ "embed"
	"errors"
	"forge/pipeline/workspace"
	"strings"
	"testing"
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
		for _, spelling := range []string{name, strings.ToUpper(name), strings.ToLower(name)} {
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
// could be taken away without a test's failing guards nothing.
func TestEveryProtectionIsNeeded(t *testing.T) {
	refused, _ := samples(t)
	needed := map[string]bool{}
	for _, name := range refused {
		var by []string
		for _, rule := range protectedPaths() {
			if matchGlob(strings.ToLower(rule), strings.ToLower(name)) {
				by = append(by, rule)
			}
		}
		if len(by) == 1 {
			needed[by[0]] = true
		}
	}
	for _, rule := range protectedPaths() {
		if !needed[rule] {
			t.Errorf("no path of testdata/protected.txt is refused by %q alone", rule)
		}
	}
}
