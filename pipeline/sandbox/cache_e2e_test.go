//go:build e2e

package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forge/pipeline/workspace"
)

// A verdict stands on no cache that a command could write: neither a command of
// an agent nor the code under test of an earlier verdict makes a failing test pass.
func TestCachesCannotBePoisoned(t *testing.T) {
	needBwrap(t)
	f := newFixture(t, module("2"))
	bad := f.commitTo(t, "bad", module("3"))
	f.commitTo(t, "evil", module("2"))
	evil := f.commitTo(t, "evil", map[string]string{"evil_test.go": "package x\n\nimport (\n\t\"os/exec\"\n\t\"testing\"\n)\n\n" +
		"func TestEvil(t *testing.T) {\n\tout, err := exec.Command(\"/bin/sh\", \"-c\", script).CombinedOutput()\n\tt.Logf(\"%s %v\", out, err)\n" +
		"\tif err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n\nconst script = `rm -f evil_test.go\n" + poison + "`\n"})
	if err := f.gateway.Fetch(t.Context(), f.repo, "", "bad", "evil"); err != nil {
		t.Fatal(err)
	}
	m := newManager(t, Options{Dir: sharedCache(t)})
	attack := map[string]func(t *testing.T, w *Workspace){
		"a command": func(t *testing.T, w *Workspace) {
			if r := mustRun(t.Context(), t, w, poison); !strings.Contains(string(r.Stdout), "poisoned") {
				t.Fatalf("the attack did not work: %+v %s%s", r, r.Stdout, r.Stderr)
			}
			// Before the next checkout it harms its own workspace, which shows that it works.
			if err := w.Write(t.Context(), "x.go", []byte(module("3")["x.go"])); err != nil {
				t.Fatal(err)
			}
			if out, passed := goTest(t, w); !passed {
				t.Fatalf("the attack has no effect on its own cache: %s", out)
			}
		},
		"code under test": func(t *testing.T, w *Workspace) {
			if err := w.Checkout(t.Context(), evil); err != nil {
				t.Fatal(err)
			}
			if out, passed := goTest(t, w); !passed {
				t.Fatalf("the attack did not work: %s", out)
			}
		},
	}
	for name, do := range attack {
		t.Run(name, func(t *testing.T) {
			w := f.open(t, m, f.head)
			if err := w.Warm(t.Context(), workspace.Command{Args: []string{"go", "test", "./..."}}); err != nil {
				t.Fatal(err)
			}
			do(t, w)
			if err := w.Checkout(t.Context(), bad); err != nil {
				t.Fatal(err)
			}
			other := f.open(t, m, bad)
			for where, w := range map[string]*Workspace{"the same workspace": w, "another workspace": other} {
				if err := w.Warm(t.Context(), workspace.Command{Args: []string{"go", "test", "./..."}}); err != nil {
					t.Fatal(err)
				}
				if out, passed := goTest(t, w); passed {
					t.Errorf("in %s, the failing test of a clean commit passed: %s", where, out)
				}
				if err := w.Checkout(t.Context(), f.head); err != nil {
					t.Fatal(err)
				}
				if out, passed := goTest(t, w); !passed {
					t.Errorf("in %s, the good commit fails: %s", where, out)
				}
			}
		})
	}
}

// What commands left alone of the private cache serves the next checkout; whatever they
// touched, in any way, is made anew.
func TestCacheIsKeptWhereUntouched(t *testing.T) {
	needBwrap(t)
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

// Go's tests run inside, with a build cache that is kept.
func TestGoTestInside(t *testing.T) {
	needBwrap(t)
	f := newFixture(t, map[string]string{
		"go.mod": "module example.com/x\n\ngo 1.24\n", "x.go": "package x\n\nfunc Two() int { return 2 }\n",
		"x_test.go": "package x\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif Two() != 2 {\n\t\tt.Fatal(Two())\n\t}\n}\n",
	})
	m := newManager(t, Options{Dir: sharedCache(t)})
	w := f.open(t, m, f.head)
	r, err := w.Run(t.Context(), workspace.Command{Args: []string{"go", "test", "./..."}})
	if err != nil || r.Exit != 0 || !strings.Contains(string(r.Stdout), "ok") {
		t.Errorf("go test = %+v, %v\n%s\n%s", r, err, r.Stdout, r.Stderr)
	}
	if changes, err := w.Changes(t.Context()); err != nil || len(changes) != 0 {
		t.Errorf("Changes after go test = %v, %v", changes, err)
	}
}

// What is seeded cannot be written, whatever a command tries.
func TestSeedIsReadOnly(t *testing.T) {
	needBwrap(t)
	f := newFixture(t, module("2"))
	m := newManager(t, Options{Dir: sharedCache(t)})
	w := f.open(t, m, f.head)
	if err := w.Warm(t.Context(), workspace.Command{Args: []string{"go", "test", "./..."}}); err != nil {
		t.Fatal(err)
	}
	seed := filepath.Join(m.path("seeds"), dirName("acme/widgets"))
	before := listSeed(t, seed)
	if strings.Count(before, "-d\n") < 50 {
		t.Fatalf("the seed has little in it: %s", before)
	}
	r := mustRun(t.Context(), t, w, `
touch /seed/x; mkdir /seed/y; rm -rf /seed/go-build
one=$(find "$GOCACHE" -name '*-d' | head -n 1); test -s "$one" || echo "nothing is seeded"
echo evil >"$one"; chmod 777 "$one"; truncate -s 0 "$one"; touch -d @0 "$one"
find "$GOCACHE" -name '*-[ad]' | head -n 200 | while read -r f; do echo evil >>"$f"; done
rm -rf "$GOCACHE"; mkdir "$GOCACHE"
mount -o remount,rw /seed`)
	if strings.Contains(string(r.Stdout), "nothing is seeded") {
		t.Error("the command saw no seed")
	}
	if after := listSeed(t, seed); after != before {
		t.Errorf("a command changed the seed:\n%s\nwas\n%s", after, before)
	}
}

// listSeed is the seed's files with sizes and times.
func listSeed(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && !info.IsDir() {
			b.WriteString(info.Mode().String() + " " + info.ModTime().String() + " " + path + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
