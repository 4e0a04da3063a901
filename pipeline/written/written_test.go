package written

import "testing"

func TestByMachine(t *testing.T) {
	for file, want := range map[string]bool{
		"go.sum": true, "web/package-lock.json": true, "api/v1/x.pb.go": true, "lib/x.gen.js": true, "vendor/a/b.go": true, "a/node_modules/x/index.js": true, "ui/app.min.js": true,
		"a/__snapshots__/x.snap": true, "third_party/z/z.c": true, "dist/index.js": true, "zz_generated.deepcopy.go": true, "Cargo.lock": true,
		"go.mod": false, "main.go": false, "lock.go": false, "vendor.go": false, "distance/a.go": false, "generated.go": false, "src/lock/lock.rs": false,
	} {
		if got := ByMachine(file); got != want {
			t.Errorf("ByMachine(%q) = %v, want %v", file, got, want)
		}
	}
}
