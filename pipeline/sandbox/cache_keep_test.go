package sandbox

import (
	"strings"
	"testing"

	"forge/pipeline/workspace"
)

// likeSeed says of the Go build cache what is not as the seed has it.
const likeSeed = `exec /usr/bin/python3 - <<'X'
import os
top, seed = os.environ["GOCACHE"], "/seed/go-build"
if os.path.islink(top): print("the cache is a link")
entries = set()
for name in os.listdir(top):
    dir = os.path.join(top, name)
    if name == "trim.txt" and os.path.isfile(dir) and not os.path.islink(dir): continue
    if len(name) != 2 or os.path.islink(dir) or not os.path.isdir(dir) or os.stat(dir).st_mode & 0o777 != 0o700:
        print("odd", name)
        continue
    for file in os.listdir(dir):
        key, path = name + "/" + file, os.path.join(dir, file)
        entries.add(key)
        if file.endswith("-d"):
            right = os.path.islink(path) and os.readlink(path) == seed + "/" + key
        else:
            right = file.endswith("-a") and os.path.isfile(path) and not os.path.islink(path) and os.path.exists(seed + "/" + key) \
                and os.stat(path).st_nlink == 1 and open(path, "rb").read() == open(seed + "/" + key, "rb").read()
        if not right: print("odd", key)
for name in os.listdir(seed):
    for file in os.listdir(seed + "/" + name):
        if file[-2:] in ("-a", "-d") and name + "/" + file not in entries: print("lacks", name + "/" + file)
X`

// What commands left alone of the private cache serves the next checkout; whatever they
// touched, in any way, is made anew.
func TestCacheIsKeptWhereUntouched(t *testing.T) {
	needBwrap(t)
	if testing.Short() {
		t.Skip("compiles packages")
	}
	f := newFixture(t, module("2"))
	w := f.open(t, newManager(t, Options{Dir: sharedCache(t)}), f.head)
	if err := w.Warm(t.Context(), workspace.Command{Args: []string{"go", "test", "./..."}}); err != nil {
		t.Fatal(err)
	}
	run := func(script string) string {
		t.Helper()
		r := mustRun(t.Context(), t, w, script)
		return string(r.Stdout) + string(r.Stderr)
	}
	next := func() {
		t.Helper()
		if err := w.Checkout(t.Context(), f.head); err != nil {
			t.Fatal(err)
		}
	}
	next()
	const inodes = `find "$GOCACHE" -mindepth 2 -printf '%i %p\n' | sort`
	first := run(inodes)
	next()
	if again := run(inodes); again != first || strings.Count(first, "\n") < 100 {
		t.Errorf("the cache was made anew, or has little in it:\n%.500s\nwas\n%.500s", again, first)
	}
	for name, attack := range map[string]string{
		"rewritten in place":      `touch -r "$a" /tmp/time; sed -i.old 's/0/1/' /tmp/time; tr 0-9 1-90 <"$a" >/tmp/x; cat /tmp/x >"$a"; touch -r /tmp/time "$a"`,
		"rewritten by a mapping":  `/usr/bin/python3 -c 'import mmap,os,sys; s=os.stat(sys.argv[1]); f=open(sys.argv[1],"r+b"); m=mmap.mmap(f.fileno(),0); m[3:9]=b"abcdef"; m.close(); f.close(); os.utime(sys.argv[1],ns=(s.st_atime_ns,s.st_mtime_ns))' "$a"`,
		"replaced by a copy":      `cp -p "$a" /tmp/y; tr 0-9 1-90 <"$a" >/tmp/x; touch -r "$a" /tmp/x; mv /tmp/x "$a"`,
		"two swapped":             `mv "$a" /tmp/x; mv "$b" "$a"; mv /tmp/x "$b"`,
		"linked elsewhere":        `ln -sfn /etc/passwd "$d"`,
		"a file for a link":       `rm "$d"; echo evil >"$d"`,
		"a link for a file":       `rm "$a"; ln -s "$d" "$a"`,
		"a second name":           `ln "$a" "$GOCACHE/00/` + strings.Repeat("0", 64) + `-a"`,
		"entries of its own":      `echo evil >"$GOCACHE/00/` + strings.Repeat("f", 64) + `-a"; echo evil >"$GOCACHE/README"; mkdir "$GOCACHE/fuzz"`,
		"a directory as an entry": `rm "$a"; mkdir "$a"; echo evil >"$a/x"`,
		"a directory by a link":   `mv "${a%/*}" /tmp/z; ln -s /tmp/z "${a%/*}"; echo evil >"$a"`,
		"a directory moved":       `mv "${a%/*}" "$GOCACHE/zz"; mv "${b%/*}" "${a%/*}"; mv "$GOCACHE/zz" "${b%/*}"`,
		"shut":                    `echo evil >"$a"; chmod 000 "$a" "${a%/*}"; chmod 000 "$GOCACHE"`,
		"shut further up":         `chmod 000 "$GOCACHE/.."`,
		"all of it a link":        `rm -rf "$GOCACHE"; ln -s /seed/go-build "$GOCACHE"`,
		"all of it gone":          `rm -rf "$GOCACHE"`,
		"all of it a file":        `rm -rf "$GOCACHE"; echo evil >"$GOCACHE"`,
		"the stamp a link":        `ln -sf "$a" "$GOCACHE/trim.txt"`,
		"other times":             `touch -d @0 "$a"; touch -h -d @0 "$d"`,
		"a process that stays":    `(setsid sh -c 'while :; do echo evil >>"'"$a"'"; sleep 0.01; done' >/dev/null 2>&1 &) ; sleep 0.1`,
	} {
		t.Run(name, func(t *testing.T) {
			run(`a=$(find "$GOCACHE" -name '*-a' | sort | head -n 1); b=$(find "$GOCACHE" -name '*-a' | sort | tail -n 1); d=$(find "$GOCACHE" -name '*-d' | sort | head -n 1)
test -n "$a" && test -n "$b" && test -n "$d" || exit 1
` + attack)
			next()
			if out := run(likeSeed); out != "" {
				t.Errorf("after a checkout:\n%.2000s", out)
			}
			next()
		})
	}
	if out, passed := goTest(t, w); !passed {
		t.Errorf("the tests fail: %s", out)
	}
}

// What it costs to begin a checkout with a Go build cache, by what the last commands did.
func BenchmarkCheckoutWithCache(b *testing.B) {
	for _, c := range []struct{ name, before string }{{"untouched", "true"}, {"anew", `rm -rf "$GOCACHE"`}} {
		b.Run(c.name, func(b *testing.B) {
			f := newFixture(b, module("2"))
			w := f.open(b, newManager(b, Options{Dir: sharedCache(b)}), f.head)
			if err := w.Warm(b.Context(), workspace.Command{Args: []string{"go", "test", "./..."}}); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				for _, script := range []string{c.before, "true"} {
					if _, err := w.Run(b.Context(), workspace.Command{Args: []string{"sh", "-c", script}}); err != nil {
						b.Fatal(err)
					}
				}
				if err := w.Checkout(b.Context(), f.head); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
