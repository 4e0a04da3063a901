//go:build soak

package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"forge/cmd/forge/shell"
)

// varies is what differs from one demo to the next: times, addresses, commits, counts
// of what is published as it comes, and what the sandbox says of this machine.
var varies = []struct {
	of  *regexp.Regexp
	new string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "HOST"},
	{regexp.MustCompile(`(?m)^ *\d+\.\ds`), "TIME"},
	{regexp.MustCompile(`\((?:\d+m ?)?\d+(?:\.\d+)?s\)`), "(TIME)"},
	{regexp.MustCompile(`\b[0-9a-f]{7}\b`), "COMMIT"},
	{regexp.MustCompile(`\d+ events, \d+ GitHub calls`), "N events, N GitHub calls"},
	{regexp.MustCompile(`pullrequestreview-\d+`), "pullrequestreview-N"},
	{regexp.MustCompile(`(?m)^Forge \S+:`), "Forge VERSION:"},
}

// What the demo shows changes on purpose only. Lines about GitHub come when GitHub
// answers, so they are compared apart from the others.
func TestDemoIsAsItWas(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if code := Main(t.Context(), []string{"demo"}, &out, &out); code != shell.Done {
		t.Fatalf("forge demo exits with %d:\n%s", code, out.String())
	}
	text := out.String()
	for _, v := range varies {
		text = v.of.ReplaceAllString(text, v.new)
	}
	lines := strings.Split(text, "\n")
	slices.SortStableFunc(lines, func(a, b string) int {
		return strings.Count(a, "TIME  github") - strings.Count(b, "TIME  github")
	})
	golden(t, "demo.txt", []byte(strings.Join(lines, "\n")))
}

// Covers V6, V10: a feature of three modules, built at the same time, one of which asks.
func TestDemoOfModules(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if code := Main(t.Context(), []string{"demo", "--modules"}, &out, &out); code != shell.Done {
		t.Fatalf("forge demo --modules exits with %d:\n%s", code, out.String())
	}
	for _, want := range []string{
		"3 modules at the same time: tax, shipping, layout", "acme answers in the issue: /forge shipping choose the same as for tax",
		"review sends the work back to the module tax", "tax goes back to work", "layout is in", "is verified, iteration 2 of 5",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}
