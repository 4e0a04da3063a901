package agent

import (
	"testing"

	"forge/pipeline/lens"
)

// Covers R10: a lens is for the changes that it can say something of.
func TestNeeded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		files string
		want  map[lens.Lens]string // absent: needed
	}{
		{"cart.go", nil},
		{"cart_test.go", map[lens.Lens]string{lens.Security: "only tests change", lens.Product: "only tests change", lens.Performance: "only tests change"}},
		{"README.md", map[lens.Lens]string{lens.Security: "only documents and tests change", lens.Performance: "only documents and tests change"}},
		{"package-lock.json", map[lens.Lens]string{lens.Performance: "only settings, documents and tests change"}},
		{"go.mod", map[lens.Lens]string{lens.Performance: "only settings, documents and tests change"}},
		{"Dockerfile", nil},
		{".github/workflows/ci.yml", map[lens.Lens]string{lens.Performance: "only settings, documents and tests change"}},
		{"", map[lens.Lens]string{lens.Security: "no file changes", lens.Product: "no file changes", lens.Performance: "no file changes"}},
	} {
		var files []string
		if c.files != "" {
			files = []string{c.files}
		}
		for _, l := range lens.All() {
			ok, why := Needed(l, files)
			if ok != (c.want[l] == "") || why != c.want[l] {
				t.Errorf("%s of %q: %v, %q, want %q", l, c.files, ok, why, c.want[l])
			}
		}
	}
	if ok, _ := Needed(lens.Performance, []string{"README.md", "go.mod", "cart.go"}); !ok {
		t.Error("code beside documents is not looked at")
	}
}
