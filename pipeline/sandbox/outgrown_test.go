package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Covers S8: a work tree has too much by its bytes or by its files, in the scratch
// directory too, and a directory that is shut hides nothing.
func TestTooBig(t *testing.T) {
	for _, tt := range []struct {
		name  string
		dir   string // of three files, beneath the worker's
		shut  bool   // to its own user
		files int
		bytes int64
		taken int64 // of the disk, since the worker began
		want  bool
	}{
		{"little", "tree", false, 10, 1 << 20, 0, false},
		{"bytes", "tree", false, 10, 10_000, 0, true},
		{"files", "tree", false, 2, 1 << 20, 0, true},
		{"files, far more than can be read", "tree", false, 1, 1 << 20, 0, true},
		{"files, in several directories", "tree/d", false, 3, 1 << 20, 0, true},
		{"scratch", "copies/tmp", false, 10, 10_000, 0, true},
		{"scratch may have twice as much", "copies/tmp", false, 10, 25_000, 0, false},
		{"deep", "tree" + strings.Repeat("/d", maxDepth+2), false, 1000, 1 << 20, 0, true},
		{"shut, with little", "tree/d", true, 10, 1 << 34, 0, false},
		{"shut, and the disk filled", "tree/d", true, 10, 1 << 34, 1 << 40, true},
	} {
		w := &worker{setup: setup{Dir: t.TempDir(), Limits: Limits{TreeFiles: tt.files, TreeBytes: tt.bytes}}}
		at := filepath.Join(w.Dir, tt.dir)
		for _, dir := range []string{at, filepath.Join(w.Dir, "tree")} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			if err := writeFile(filepath.Join(at, name), strings.Repeat("x", 9000), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if tt.shut {
			if err := os.Chmod(at, 0); err != nil {
				t.Fatal(err)
			}
		}
		root, err := os.OpenRoot(filepath.Join(w.Dir, "tree"))
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		w.tree, w.freeAtFirst = &tree{root: root, limits: w.Limits}, freeBytes(w.Dir)+tt.taken
		if got := w.outgrown(); got != tt.want {
			t.Errorf("%s: outgrown = %v, want %v", tt.name, got, tt.want)
		}
		if err := removeTree(w.Dir); err != nil {
			t.Error(err)
		}
	}
}
