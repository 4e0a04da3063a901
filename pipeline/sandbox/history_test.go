package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"forge/pipeline/workspace"
)

// Log, Blame and Diff show the history and what is not committed yet, while the
// mirror is only read.
func TestHistory(t *testing.T) {
	f := newFixture(t, map[string]string{"a.txt": "one\ntwo\nthree\n", "dir/b.txt": "b\n", ".gitattributes": "*.txt diff=evil filter=evil\n"})
	second := f.commitTo(t, "main", map[string]string{"a.txt": "one\n2\nthree\n", "dir/c.txt": "c\n"})
	if err := f.gateway.Fetch(t.Context(), f.repo, "", "main"); err != nil {
		t.Fatal(err)
	}
	w := f.open(t, newManager(t, Options{Unsafe: true}), second)
	ctx := t.Context()
	before := mirrorFiles(t, f)

	got, err := w.Log(ctx, "", 0)
	if err != nil || strings.Count(got, "human: by a human") != 2 || !strings.HasPrefix(got, second[:7]) {
		t.Errorf("Log of all = %q, %v; want both commits, the newest first", got, err)
	}
	if got, err = w.Log(ctx, "dir/b.txt", 5); err != nil || strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, f.head[:7]) {
		t.Errorf("Log of dir/b.txt = %q, %v; want the first commit alone", got, err)
	}
	if got, err = w.Log(ctx, "", 1); err != nil || !strings.Contains(got, "older commits are left out") {
		t.Errorf("Log of one = %q, %v; want a word about the others", got, err)
	}
	if got, err = w.Log(ctx, "nowhere", 1); err != nil || !strings.Contains(got, "no commit of nowhere") {
		t.Errorf("Log of a path that never was = %q, %v", got, err)
	}

	if err := w.Write(ctx, "a.txt", []byte("one\n2\nadded\nthree\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(ctx, "new.txt", []byte("new\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Remove(ctx, "dir/b.txt"); err != nil {
		t.Fatal(err)
	}
	got, err = w.Blame(ctx, "a.txt", 0, 0)
	want := short(f.head) + "     1: one\n" + short(second) + "     2: 2\n(edited)       3: added\n" + short(f.head) + "     4: three\n\n"
	if err != nil || !strings.HasPrefix(got, want) || strings.Count(got, "2023-11-14 human: by a human") != 2 {
		t.Errorf("Blame = %q, %v; want it to begin with %q", got, err, want)
	}
	if got, err = w.Blame(ctx, "a.txt", 3, 3); err != nil || !strings.HasPrefix(got, "(edited)       3: added\n") || strings.Contains(got, "2: 2") {
		t.Errorf("Blame of line 3 = %q, %v", got, err)
	}
	if got, err = w.Blame(ctx, "new.txt", 0, 0); err != nil || got != "new.txt is in no commit yet\n" {
		t.Errorf("Blame of a new file = %q, %v", got, err)
	}
	for _, bad := range []struct {
		path     string
		from, to int
	}{{"a.txt", 99, 0}, {"a.txt", 3, 2}, {"nowhere", 0, 0}, {"../a.txt", 0, 0}, {".git/config", 0, 0}} {
		if got, err := w.Blame(ctx, bad.path, bad.from, bad.to); err == nil {
			t.Errorf("Blame(%+v) = %q; want an error", bad, got)
		}
	}

	got, err = w.Diff(ctx, f.head, "")
	for _, part := range []string{"-two\n+2\n+added\n", "deleted file mode 100644\n", "--- a/dir/b.txt", "+++ b/dir/c.txt", "+++ b/new.txt"} {
		if err != nil || !strings.Contains(got, part) {
			t.Errorf("Diff from the first commit = %q, %v; want %q in it", got, err, part)
		}
	}
	got, err = w.Diff(ctx, "", "a.txt")
	if err != nil || !strings.Contains(got, " 2\n+added\n") || strings.Contains(got, "new.txt") {
		t.Errorf("Diff of a.txt = %q, %v; want the edit alone", got, err)
	}
	if err := w.Write(ctx, "big.txt", []byte(strings.Repeat("0123456789012345678\n", 10_000))); err != nil {
		t.Fatal(err)
	}
	got, err = w.Diff(ctx, "", "")
	if err != nil || len(got) > maxHistory+100 || !strings.HasSuffix(got, "bytes more are left out: ask for one path]\n") {
		t.Errorf("Diff of 200 kB has %d bytes, %v; ends in %q", len(got), err, got[max(0, len(got)-100):])
	}
	if got, err := w.Diff(ctx, "HEAD", ""); err == nil {
		t.Errorf("Diff from a name = %q; want an error", got)
	}
	if left, _ := filepath.Glob(filepath.Join(w.dir, "overlay-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if after := mirrorFiles(t, f); after != before {
		t.Errorf("the mirror had\n%s\nand has\n%s", before, after)
	}
}

// mirrorFiles lists the mirror's files.
func mirrorFiles(t *testing.T, f *fixture) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(f.gateway.Dir(f.repo), func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

// A renamed file's history goes on.
func TestLogFollows(t *testing.T) {
	text := strings.Repeat("a line of some length\n", 20)
	f := newFixture(t, map[string]string{"old.txt": text})
	if err := f.gateway.Fetch(t.Context(), f.repo, "", "main"); err != nil {
		t.Fatal(err)
	}
	sha, err := f.gateway.Commit(t.Context(), f.repo, workspace.CommitOptions{
		Parent: f.head, Message: "rename it\n\nBecause the old name\nwas wrong.", Author: "a", Email: "a@example.com", Time: fixedTime,
		Changes: []workspace.Change{{Path: "old.txt", Deleted: true}, {Path: "new.txt", Content: []byte(text)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := f.open(t, newManager(t, Options{Unsafe: true}), sha)
	got, err := w.Log(t.Context(), "new.txt", 0)
	want := sha[:7] + " 2026-01-02 a: rename it\n    Because the old name\n    was wrong.\n" + f.head[:7] + " 2023-11-14 human: by a human\n"
	if err != nil || got != want {
		t.Errorf("Log = %q, %v; want %q", got, err, want)
	}
}

var symbolSources = map[string]string{
	"shop/cart.go":           "package shop\n\n// TotalPrice in a comment is no symbol.\ntype Cart struct {\n\tItems []int\n}\n\nfunc (c *Cart) TotalPrice() int { return 0 }\n\nconst DefaultTotalPrice = 3\n",
	"shop/cart_test.go":      "package shop\n\nfunc TestTotalPrice() {}\n",
	"app/cart.py":            "class CartPy:\n    def total_price(self):\n        return self.total_price\n",
	"web/cart.ts":            "export interface CartTs { n: number }\nexport async function totalPriceTs(c: CartTs) {\n  return c.n\n}\nexport class Basket {\n  totalWeight(): number {\n    return 1\n  }\n}\n",
	"web/cart.js":            "const cartJs = () => 1\nfunction totalPriceJs() {}\n",
	"src/Cart.java":          "public class CartJava {\n    public int totalPriceJava(int a) {\n        return totalPriceJava(a);\n    }\n}\n",
	"src/lib.rs":             "pub struct CartRs;\nimpl CartRs {\n    pub fn total_price_rs(&self) -> i32 { 0 }\n}\n",
	"lib/cart.rb":            "class CartRb\n  def total_price_rb\n  end\nend\n",
	"cs/Cart.cs":             "namespace A {\n  public class CartCs {\n    public int TotalPriceCs(int a) {\n      return 0;\n    }\n  }\n}\n",
	"php/cart.php":           "<?php\nclass CartPhp {\n    public function totalPricePhp() {}\n}\n",
	"node_modules/x/cart.js": "function totalPriceElsewhere() {}\n",
	".ctags.d/evil.ctags":    "--regex-go=/(Items)/TotalPriceEvil/f/\n",
	"README.md":              "# TotalPrice\n",
}

// Symbols are found by Universal Ctags and by patterns alike, in nine languages.
func TestSymbols(t *testing.T) {
	needBwrap(t)
	f := newFixture(t, symbolSources)
	ctx := t.Context()
	for _, how := range []string{"ctags", "patterns"} {
		t.Run(how, func(t *testing.T) {
			o := Options{}
			if how == "patterns" {
				o.Bwrap = "/nonexistent/bwrap" // nothing can be run
			}
			w := f.open(t, newManager(t, o), f.head)
			if _, err := exec.LookPath("ctags"); how == "ctags" && err != nil {
				t.Skip("needs Universal Ctags: apt-get install universal-ctags")
			}
			for query, want := range map[string][]string{
				"TotalPrice": {
					"shop/cart.go:8: ", "shop/cart.go:10: ", "shop/cart_test.go:3: ", "web/cart.ts:2: ", "web/cart.js:2: ",
					"src/Cart.java:2: ", "cs/Cart.cs:3: ", "php/cart.php:3: ",
				},
				"Cart.total_price": {"app/cart.py:2: ", "src/lib.rs:3: ", "lib/cart.rb:2: "},
				"cart": {
					"shop/cart.go:4: ", "app/cart.py:1: ", "web/cart.ts:1: ", "web/cart.js:1: ", "src/Cart.java:1: ", "src/lib.rs:1: ",
					"lib/cart.rb:1: ", "cs/Cart.cs:2: ", "php/cart.php:2: ",
				},
				"totalWeight":    {"web/cart.ts:6: "},
				"NothingOfThisX": {"nothing of that name"},
			} {
				got, err := w.Symbols(ctx, query, 0)
				if err != nil {
					t.Errorf("Symbols(%q): %v", query, err)
				}
				for _, line := range want {
					if !strings.Contains("\n"+got, "\n"+line) {
						t.Errorf("Symbols(%q) = %q; want %q in it", query, got, line)
					}
				}
				for _, wrong := range []string{"node_modules", "Evil", "README", "comment"} {
					if strings.Contains(got, wrong) {
						t.Errorf("Symbols(%q) = %q; want no %s", query, got, wrong)
					}
				}
			}
			// Patterns know no members of structures: this tells which of both answered.
			got, err := w.Symbols(ctx, "Items", 0)
			if err != nil || strings.HasPrefix(got, "shop/cart.go:5: member Items: ") != (how == "ctags") {
				t.Errorf("Symbols(Items) = %q, %v", got, err)
			}
			got, err = w.Symbols(ctx, "totalprice", 2)
			if err != nil || !strings.HasPrefix(got, "shop/cart.go:8: ") || strings.Count(got, "\n") != 3 || !strings.Contains(got, "more are left out") {
				t.Errorf("Symbols with a limit = %q, %v; want the exact name first, and what is left out", got, err)
			}
			for _, bad := range []string{"", "a b", "x\ny", "a\tb"} {
				if got, err := w.Symbols(ctx, bad, 0); err == nil {
					t.Errorf("Symbols(%q) = %q; want an error", bad, got)
				}
			}
		})
	}
}
