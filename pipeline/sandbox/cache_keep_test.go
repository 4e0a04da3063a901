package sandbox

import (
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
