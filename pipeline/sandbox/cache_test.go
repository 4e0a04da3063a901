package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"forge/pipeline/workspace"
)

// goodModule passes, badModule is the same commit with a bug of the same length.
func module(result string) map[string]string {
	return map[string]string{
		"go.mod": "module example.com/x\n\ngo 1.24\n",
		"x.go":   "package x\n\nfunc Two() int { return " + result + " }\n",
		"x_test.go": "package x\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif Two() != 2 {\n" +
			"\t\tt.Fatal(Two())\n\t}\n}\n",
	}
}

// poison builds the commit that has the bug, then the one without, and makes the
// cache give the second's object for the first: what a hostile command does that
// knows which commit will be judged.
const poison = `set -e
cd "$(mktemp -d "${TMPDIR:-/tmp}/XXXXXX")"; here=$PWD; cd /work
objects() { go list -test -export -f '{{.ImportPath}} {{.Export}}' . | sed -n 's/^example.com\/x \(\[.*\] \)\{0,1\}//p'; }
cp x.go x_test.go go.mod "$here"
printf 'package x\n\nfunc Two() int { return 3 }\n' >x.go
printf 'package x\n\nimport "testing"\n\nfunc TestTwo(t *testing.T) {\n\tif Two() != 2 {\n\t\tt.Fatal(Two())\n\t}\n}\n' >x_test.go
objects >"$here/bad"
printf 'package x\n\nfunc Two() int { return 2 }\n' >x.go
objects >"$here/good"
cp "$here/x.go" "$here/x_test.go" .
paste -d' ' "$here/bad" "$here/good" | while read -r bad good; do
	test "$bad" != "$good" || continue
	new=$(basename "$good"); new=${new%-d}; size=$(stat -Lc %s "$good"); old=$(basename "$bad"); old=${old%-d}
	grep -rl --include='*-a' "$old" "$GOCACHE" | while read -r entry; do
		id=$(basename "$entry"); printf 'v1 %s %s %20d %20d\n' "${id%-a}" "$new" "$size" "$(date +%s)000000000" >"$here/entry"
		cat "$here/entry" >"$entry.new" && mv "$entry.new" "$entry"
	done
done
echo poisoned
`

// sharedCache is a state directory that outlives the test: a cold build cache
// costs half a minute.
func sharedCache(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(os.TempDir(), "forge-sandbox-test-"+strconv.Itoa(os.Geteuid()))
	if err := os.MkdirAll(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	} else if uid, _ := ownerOf(info); uid != os.Geteuid() {
		t.Fatalf("%s belongs to user %d: remove it", dir, uid)
	}
	return dir
}

// goTest runs the module's tests as a verdict does.
func goTest(t *testing.T, w *Workspace) (out string, passed bool) {
	t.Helper()
	r, err := w.Run(t.Context(), workspace.Command{Args: []string{"go", "test", "-count=1", "./..."}})
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Stdout) + string(r.Stderr), r.Exit == 0
}
