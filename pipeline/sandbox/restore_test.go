package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Paths are taken over from another commit whatever stands there now: a new file
// goes, a removed one comes back, a link or a file in the way of a directory gives
// way, modes and links are the commit's.
func TestRestore(t *testing.T) {
	f := newFixture(t, map[string]string{
		"tests/a.txt": "base a\n", "!tests/run.sh": "base\n", "@tests/link": "a.txt", "data/deep/x": "base x\n", "code.txt": "base code\n", "plain": "base\n",
	})
	w := f.open(t, newManager(t, Options{Unsafe: true}), f.head)
	ctx := t.Context()
	mustRun(ctx, t, w, `set -e
rm -r tests/link data; mkdir elsewhere; ln -s elsewhere data; echo kept >elsewhere/kept
echo evil >tests/a.txt; chmod 644 tests/run.sh; echo evil >tests/link; echo head >code.txt; echo new >tests/conftest.py
rm plain; mkdir -p plain/dir; echo x >plain/dir/x; mkdir locked; echo x >locked/x; chmod 500 locked`)
	paths := []string{"tests/a.txt", "tests/run.sh", "tests/link", "tests/conftest.py", "data/deep/x", "plain", "not/there", "locked/x"}
	if err := w.Restore(ctx, f.head, paths); err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(w.dir, "tree")
	for name, want := range map[string]string{"tests/a.txt": "base a\n", "tests/run.sh": "base\n", "data/deep/x": "base x\n",
		"code.txt": "head\n", "elsewhere/kept": "kept\n", "plain": "base\n"} {
		if got, err := os.ReadFile(filepath.Join(tree, name)); err != nil || string(got) != want {
			t.Errorf("%s = %q, %v; want %q", name, got, err, want)
		}
	}
	if to, err := os.Readlink(filepath.Join(tree, "tests/link")); err != nil || to != "a.txt" {
		t.Errorf("tests/link leads to %q, %v", to, err)
	}
	if info, err := os.Stat(filepath.Join(tree, "tests/run.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("tests/run.sh: %v, %v; want it executable", info.Mode(), err)
	}
	for _, gone := range []string{"tests/conftest.py", "not", "locked/x"} {
		if _, err := os.Lstat(filepath.Join(tree, gone)); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", gone, err)
		}
	}
	for _, bad := range []string{"", ".", "../x", "/etc/passwd", "a/../../b"} {
		if err := w.Restore(ctx, f.head, []string{bad}); err == nil {
			t.Errorf("Restore of %q: no error", bad)
		}
	}
	if err := w.Restore(ctx, strings.Repeat("0", 40), []string{"plain"}); err == nil {
		t.Error("Restore from a commit that is not there: no error")
	}
	if err := w.Restore(ctx, "HEAD", []string{"plain"}); err == nil {
		t.Error("Restore from a name: no error")
	}
}
