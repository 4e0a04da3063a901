package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is remembered of a mirror goes with the mirror, and nobody who asked can change it.
func TestKnown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, map[string]string{"a.txt": "a", "b.txt": "b"})
	for range 2 {
		if sha, err := f.gateway.Resolve(t.Context(), f.repo, f.head); err != nil || sha != f.head {
			t.Fatalf("%q, %v", sha, err)
		}
		paths, err := f.gateway.Files(t.Context(), f.repo, f.head)
		if diff := cmp.Diff([]string{"a.txt", "b.txt"}, paths); diff != "" || err != nil {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
		paths[0] = "changed"
	}
	dir := f.gateway.Dir(f.repo)
	if err := os.Rename(dir, dir+".gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.gateway.Files(t.Context(), f.repo, f.head); err == nil {
		t.Error("a mirror that is gone has files")
	}
	if err := os.Rename(dir+".gone", dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, readyFile)); err != nil { // it is being made
		t.Fatal(err)
	}
	other := "0123456789abcdef0123456789abcdef01234567"
	if _, err := f.gateway.Resolve(t.Context(), f.repo, other); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a commit that is not there: %v", err)
	}
	if f.gateway.known.has(commitKey(dir, f.head)) {
		t.Error("what is remembered of a mirror that is not whole is used")
	}
}
