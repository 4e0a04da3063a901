package deps

import (
	"strings"
	"testing"
)

// A module whose packages are in the repository is not locked: what these lack is told.
func TestVendoredModule(t *testing.T) {
	vendored := func(now map[string]string) string {
		before := map[string]string{"go.mod": goMod, "a.go": "package a\n", "vendor/modules.txt": "# example.com/left v1.0.0\n## explicit\nexample.com/left\nexample.com/left/in\n"}
		list, err := FindLocks(edit(before, now), whole)
		if err != nil || len(list) > 1 {
			t.Fatalf("found %v, %v", list, err)
		}
		if len(list) == 0 {
			return ""
		}
		return list[0].Refused
	}
	const right = goMod + "require example.com/right v1.0.0\n"
	imports := func(p string) map[string]string {
		return map[string]string{"b.go": "package a\n\nimport _ \"" + p + "\"\n"}
	}
	txt := map[string]string{"go.mod": right, "vendor/modules.txt": "# example.com/left v1.0.0\n## explicit\nexample.com/left\n# example.com/right v1.0.0\n## explicit\nexample.com/right\n"}
	for _, tt := range []struct {
		name string
		now  map[string]string
		want string
	}{
		{"a module is required", map[string]string{"go.mod": right}, "example.com/right v1.0.0"},
		{"another version", map[string]string{"go.mod": strings.Replace(goMod, "v1.0.0", "v1.1.0", 1)}, "example.com/left v1.1.0"},
		{"a package is imported", imports("example.com/right/deep"), "example.com/right/deep"},
		{"one that is there", imports("example.com/left/in"), ""},
		{"the language", map[string]string{"go.mod": strings.Replace(goMod, "1.22", "1.23", 1)}, ""},
		{"with all that it needs", txt, ""},
	} {
		got := vendored(tt.now)
		if tt.want == "" && got != "" || tt.want != "" && (!strings.Contains(got, "vendor/ has not "+tt.want) || !strings.Contains(got, "go mod vendor")) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
