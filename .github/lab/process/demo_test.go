package process

import (
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata/demo.txt")

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
	long(t)
	t.Parallel()
	text, err := forge(t.Context(), nil, "demo")
	if err != nil {
		t.Fatalf("forge demo: %v\n%s", err, text)
	}
	for _, v := range varies {
		text = v.of.ReplaceAllString(text, v.new)
	}
	lines := strings.Split(text, "\n")
	slices.SortStableFunc(lines, func(a, b string) int {
		return strings.Count(a, "TIME  github") - strings.Count(b, "TIME  github")
	})
	const path = "testdata/demo.txt"
	got := strings.Join(lines, "\n")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(read(t, path), got); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", path, diff)
	}
}

// Covers V6, V10: a feature of three modules, built at the same time, one of which asks.
func TestDemoOfModules(t *testing.T) {
	long(t)
	t.Parallel()
	out, err := forge(t.Context(), nil, "demo", "--modules")
	if err != nil {
		t.Fatalf("forge demo --modules: %v\n%s", err, out)
	}
	for _, want := range []string{
		"3 modules at the same time: tax, shipping, layout", "acme answers in the issue: /forge shipping choose the same as for tax",
		"review sends the work back to the module tax", "tax goes back to work", "layout is in", "is verified, iteration 2 of 5",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

// Covers A1, A3: a model of one's own does the demo's work, here one so small that it is asked
// for code alone; a test that failed before shows the work. Its key is taken from the environment.
func TestDemoOfAnOwnModel(t *testing.T) {
	long(t)
	t.Parallel()
	const code = "```go\nfunc Total(items []Item, discount int) int {\n\tdiscount = min(max(discount, 0), 100)\n\tsum := 0\n" +
		"\tfor _, it := range items {\n\t\tsum += it.Cents * it.Count\n\t}\n\treturn sum - sum*discount/100\n}\n```"
	models := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-own" {
			http.Error(w, "{}", http.StatusUnauthorized)
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"data": []any{map[string]string{"id": "tiny-1b"}},
			"choices": []any{map[string]any{"message": map[string]string{"role": "assistant", "content": code}}}})
	}))
	defer models.Close()
	out, err := forge(t.Context(), []string{"OPENAI_API_KEY=sk-own"}, "demo", "--model", "openai/tiny-1b", "--model-url", models.URL+"/v1")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"openai/tiny-1b: it is asked for code alone", "nobody has read the change", "The rest is a person's", "1 model calls"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}
