package deps

import (
	"strings"
	"testing"
)

// A module whose packages are in the repository is not locked: what these lack is told.
func TestVendoredModule(t *testing.T) {
	t.Parallel()
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

// Packages of others are not written by hand, and whoever has done it: it is said.
func TestVendoredByHand(t *testing.T) {
	t.Parallel()
	before := map[string]string{"go.mod": goMod, "vendor/modules.txt": "# example.com/left v1.0.0\n", "vendor/example.com/left/a.go": "package left\n",
		"php/vendor/composer/installed.json": "[]", "rs/vendor/left/.cargo-checksum.json": "{}", "src/vendor/list.go": "package vendor\n"}
	for _, tt := range []struct{ file, want string }{
		{"vendor/example.com/left/a.go", "vendor/: example.com/left/a.go"},
		{"vendor/example.com/right/a.go", "vendor/: example.com/right/a.go"},
		{"vendor/modules.txt", "vendor/: modules.txt"},
		{"lib/vendor/modules.txt", "lib/vendor/: modules.txt"},
		{"php/vendor/acme/left/a.php", "php/vendor/: acme/left/a.php"},
		{"rs/vendor/left/src/lib.rs", "rs/vendor/: left/src/lib.rs"},
		{"web/node_modules/left/index.js", "web/node_modules/: left/index.js"},
		{"src/vendor/list.go", ""}, // the repository's own
		{"rs/vendor/own.rs", ""},
		{"testdata/vendor/modules.txt", ""},
		{"internal/testdata/node_modules/left/index.js", ""},
	} {
		e := edit(before, map[string]string{tt.file: "other"})
		if got := strings.Join(Vendored(e.Changed, e.Before, e.Now), "\n"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.file, got, tt.want)
		}
		wrong, err := HandWritten(e, func(string) bool { return false })
		if err != nil || (len(wrong) > 0) != (tt.want != "") || tt.want != "" && !strings.Contains(wrong[0], tt.want) {
			t.Errorf("%s: refused with %q, %v, want %q", tt.file, wrong, err, tt.want)
		}
	}
}
