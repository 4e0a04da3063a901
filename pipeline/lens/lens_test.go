package lens

import "testing"

// Covers R10: a lens is for the changes that it can say something of.
func TestNeeded(t *testing.T) {
	for _, c := range []struct {
		files string
		want  map[Lens]string // absent: needed
	}{
		{"cart.go", nil},
		{"cart_test.go", map[Lens]string{Security: "only tests change", Product: "only tests change", Performance: "only tests change"}},
		{"README.md", map[Lens]string{Security: "only documents and tests change", Performance: "only documents and tests change"}},
		{"package-lock.json", map[Lens]string{Performance: "only settings, documents and tests change"}},
		{"go.mod", map[Lens]string{Performance: "only settings, documents and tests change"}},
		{"Dockerfile", nil},
		{".github/workflows/ci.yml", map[Lens]string{Performance: "only settings, documents and tests change"}},
		{"", map[Lens]string{Security: "no file changes", Product: "no file changes", Performance: "no file changes"}},
	} {
		var files []string
		if c.files != "" {
			files = []string{c.files}
		}
		for _, l := range All() {
			ok, why := l.Needed(files)
			if ok != (c.want[l] == "") || why != c.want[l] {
				t.Errorf("%s of %q: %v, %q, want %q", l, c.files, ok, why, c.want[l])
			}
		}
	}
	if ok, _ := Performance.Needed([]string{"README.md", "go.mod", "cart.go"}); !ok {
		t.Error("code beside documents is not looked at")
	}
}
