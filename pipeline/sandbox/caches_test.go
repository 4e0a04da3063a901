package sandbox

import (
	"strings"
	"testing"
)

// plantEverywhere writes into each place where a package manager, or a tool that it
// starts, looks for what it kept; ignored directories of the work tree are among them.
const plantEverywhere = `
for dir in "$HOME/.npm/_cacache" "$HOME/.cache/pip" "$HOME/.cargo/registry" "$HOME/.cargo/git" "$HOME/.rustup" "$HOME/.config/pip" "$HOME/.config/yarn" \
	"$HOME/.local/lib/python3.11/site-packages" "$HOME/.local/share/pnpm/store" "$HOME/.m2/repository" "$HOME/.gradle/caches" "$HOME/.yarn/berry/cache" \
	"$HOME/.bundle/cache" "$HOME/.composer/cache" "$HOME/.nuget/packages" "$HOME/go/pkg/mod" \
	"$XDG_CACHE_HOME/pip" "$XDG_CACHE_HOME/uv" "$XDG_CACHE_HOME/node" "$XDG_CACHE_HOME/go-build" "$XDG_CACHE_HOME/ms-playwright" \
	"$GOCACHE/00" "$GOTMPDIR/pip" "$TMPDIR/npm" /dev/shm/cache /deps/cargo /deps/node /deps/python /gomodcache/cache /usr/lib/node_modules/x \
	node_modules/.cache/babel node_modules/evil node_modules/.vite target/debug/deps target/.fingerprint __pycache__ .venv/lib .pytest_cache/v .tox/py .eslintcache.d \
	.next/cache .turbo .nx/cache .parcel-cache .gradle build/classes .mypy_cache vendor/bundle .yarn/cache; do
	mkdir -p "$dir" 2>/dev/null && echo poison >"$dir/planted" && echo "planted $dir"
done
for file in "$HOME/.npmrc" "$HOME/.pip/pip.conf" "$HOME/.cargo/config.toml" "$HOME/.pydistutils.cfg" "$HOME/.yarnrc"; do
	mkdir -p "$(dirname "$file")" 2>/dev/null && echo planted >"$file" && echo "planted $file"
done
true`

const findPlanted = `
find / -xdev \( -name planted -o -name .npmrc -o -name pip.conf -o -name .yarnrc -o -name .pydistutils.cfg \) 2>/dev/null
for dir in "$HOME" "$XDG_CACHE_HOME" "$GOCACHE" "$GOTMPDIR" "$TMPDIR" /dev/shm /work /scratch /deps; do
	find "$dir" -name planted 2>/dev/null; done; true`

// A cache that a command filled is used by nothing that is judged afterwards: it is gone
// after the next checkout, and another workspace never sees it. That holds for every
// tool's, by where they can lie.
func TestNoCacheOutlivesACheckout(t *testing.T) {
	needBwrap(t)
	ignored := "node_modules/\ntarget/\n__pycache__/\n.venv/\n*.d/\n.*cache/\n.tox/\n.next/\n.turbo/\n.nx/\nbuild/\n.gradle/\nvendor/\n.yarn/\n"
	f := newFixture(t, map[string]string{".gitignore": ignored, "x.py": "def two(): return 3\n", "test_x.py": "import x\nassert x.two() == 2\n"})
	m := newManager(t, Options{})
	for _, attack := range []struct{ name, do, look string }{
		{"files of all tools", plantEverywhere, findPlanted},
		// The name says which interpreter, and that the source is not to be looked at.
		{"Python's compiled modules", `cat >/tmp/two.py <<'X'
def two(): return 2
X
/usr/bin/python3 -c 'import py_compile, importlib.util
py_compile.compile("/tmp/two.py", importlib.util.cache_from_source("x.py"), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)' &&
/usr/bin/python3 test_x.py && echo planted and in effect`, "/usr/bin/python3 test_x.py 2>/dev/null && echo passed; true"},
	} {
		t.Run(attack.name, func(t *testing.T) {
			w := f.open(t, m, f.head)
			r := mustRun(t.Context(), t, w, attack.do)
			if n := strings.Count(string(r.Stdout), "planted"); n == 0 || attack.do == plantEverywhere && n < 30 {
				t.Fatalf("the attack did not work: %s%s", r.Stdout, r.Stderr)
			}
			other := f.open(t, m, f.head)
			if r := mustRun(t.Context(), t, other, attack.look); len(r.Stdout) > 0 {
				t.Errorf("another workspace has\n%s", r.Stdout)
			}
			if err := w.Checkout(t.Context(), f.head); err != nil {
				t.Fatal(err)
			}
			if r := mustRun(t.Context(), t, w, attack.look); len(r.Stdout) > 0 {
				t.Errorf("after a checkout there is\n%s", r.Stdout)
			}
		})
	}
}
