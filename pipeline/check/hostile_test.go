package check

import (
	"fmt"
	"strings"
	"testing"
)

// Covers S30: each of these would end the server, by its stack or by its memory.
func TestHostileSources(t *testing.T) {
	t.Parallel()
	var chain strings.Builder
	chain.WriteString("package a\n")
	for i := range 25_000 {
		fmt.Fprintf(&chain, "type t%d [len(t%d{})]int\n", i, i+1)
	}
	source := chain.String()
	if units, ok := goUnits([]string{"a.go"}, func(string) []byte { return []byte(source) }, true); ok {
		t.Errorf("a chain of 25,000 types is followed: %d units", len(units))
	}
	long := "package a\nfunc f() {\n" + strings.Repeat("\n", maxDeclared) + "}\n"
	if units, ok := goUnits([]string{"a.go"}, func(string) []byte { return []byte(long) }, true); !ok || len(units) != 1 {
		t.Errorf("a long function: %d units, %v", len(units), ok)
	}
	p := &nodePackage{Scripts: map[string]string{"a": strings.Repeat("npm run a && ", 10_000)}}
	left := maxInner
	if got := p.inner("npm run a && node --test", 3, &left); len(got) > 10*maxInner {
		t.Errorf("scripts that run one another come to %d bytes", len(got))
	}
	left = maxInner
	p.Scripts = map[string]string{"a": "npm run b", "b": "node --test"}
	if got := p.inner("npm run a", 3, &left); got != "node --test" {
		t.Errorf("inner = %q", got)
	}
}
