package change

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// diff returns git's patch from one tree to another; a "" is a file that is not there.
func diff(t *testing.T, before, after map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for at, tree := range map[string]map[string]string{"0before/": before, "0after/": after} {
		for name, content := range tree {
			p := filepath.Join(dir, at, name)
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.Command("git", "diff", "--no-index", "-M", "--full-index", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", "0before", "0after")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 { // it is 1 where the trees differ
		t.Fatalf("git diff: %v", err)
	}
	return strings.NewReplacer("0before/", "", "0after/", "").Replace(string(out))
}

func reader(files map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { s, ok := files[name]; return s, ok }
}

const sample = `package a

import "os"

func first() {
	one()
	two()
}

func second(n int) error {
	f, err := os.Open("x")
	if err != nil {
		return err
	}
	for i := range n {
		if i > 3 {
			use(f, i)
		}
	}
	return f.Close()
}

func third() {
	three()
}
`

// The code around a change is shown up to the beginning and the end of the function
// that it is in, with the lines' numbers.
func TestWiden(t *testing.T) {
	t.Parallel()
	after := strings.Replace(sample, "use(f, i)", "use(f, i+1)", 1)
	c := Read(diff(t, map[string]string{"a.go": sample}, map[string]string{"a.go": after}))
	c.Files[0].Widen(after)
	got := c.Files[0].Text()
	want := `=== a.go (+1 −1)
@@ -10,12 +10,12 @@ func second(n int) error {
   10 func second(n int) error {
   11 	f, err := os.Open("x")
   12 	if err != nil {
   13 		return err
   14 	}
   15 	for i := range n {
   16 		if i > 3 {
     -			use(f, i)
   17+			use(f, i+1)
   18 		}
   19 	}
   20 	return f.Close()
   21 }
`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("text (-want +got):\n%s", d)
	}
}

// Two changes in one function become one piece; what stands far away does not come along.
func TestWidenJoins(t *testing.T) {
	t.Parallel()
	long := "def f(x):\n" + strings.Repeat("    x += 1\n", 40) + "    return x\n\n\ndef g():\n    a()\n    b()\n    c()\n    d()\n    e()\n    f()\n    g()\n    h()\n    i()\n    return 1\n"
	after := strings.Replace(strings.Replace(long, "    return x\n", "    return x + 1\n", 1), "    a()\n", "    a(1)\n", 1)
	after = strings.Replace(after, "    i()\n", "    i(1)\n", 1)
	c := Read(diff(t, map[string]string{"a.py": long}, map[string]string{"a.py": after}))
	f := c.Files[0]
	n := len(f.hunks)
	f.Widen(after)
	got := f.Text()
	if n != 2 || len(f.hunks) != 1 {
		t.Errorf("%d hunks of %d, want one of two:\n%s", len(f.hunks), n, got)
	}
	if strings.Contains(got, "   20 ") || !strings.Contains(got, "@@ def f(x):") {
		t.Errorf("a long function comes along, or is not named:\n%s", got)
	}
	if !strings.Contains(got, "\n   50     e()\n") || strings.Count(got, "    e()\n") != 1 {
		t.Errorf("a line between two changes is not shown once:\n%s", got)
	}
}

// What a widened patch shows is the file: unchanged and added lines as they stand, by
// their numbers.
func FuzzWiden(f *testing.F) {
	f.Add(sample, uint8(3), uint8(9), uint8(2))
	f.Add("a\n b\n  c\nd\n", uint8(0), uint8(1), uint8(0))
	f.Fuzz(func(t *testing.T, text string, at, n, add uint8) {
		if strings.ContainsAny(text, "\r\x00") || !strings.HasSuffix(text, "\n") {
			return
		}
		lines := splitLines(text)
		from := min(int(at), len(lines))
		to := min(from+int(n), len(lines))
		var b strings.Builder
		var now []string
		old := to - max(0, from-1)
		span := func(count int) string {
			if count == 0 {
				return fmt.Sprintf("%d,0", max(1, from)-1)
			}
			return fmt.Sprintf("%d,%d", max(1, from), count)
		}
		fmt.Fprintf(&b, "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -%s +%s @@\n", span(old), span(old-(to-from)+int(add)))
		now = append(now, lines[:from]...)
		if from > 0 {
			b.WriteString(" " + lines[from-1] + "\n")
		}
		for _, l := range lines[from:to] {
			b.WriteString("-" + l + "\n")
		}
		for i := range int(add) {
			fmt.Fprintf(&b, "+new %d\n", i)
			now = append(now, fmt.Sprint("new ", i))
		}
		now = append(now, lines[to:]...)
		c := Read(b.String())
		if len(c.Files) != 1 {
			return // git would not write it
		}
		content := strings.Join(now, "\n") + "\n"
		c.Files[0].Widen(content)
		for _, h := range c.Files[0].hunks {
			n := h.new
			for _, l := range h.lines {
				if l.op == '-' {
					continue
				}
				if n > len(now) || now[n-1] != l.text {
					t.Fatalf("line %d is shown as %q in\n%s", n, l.text, c.Files[0].Text())
				}
				n++
			}
		}
		if d := cmp.Diff(lines, c.Files[0].before(now)); d != "" && len(lines) > 0 {
			t.Fatalf("before (-want +got):\n%s", d)
		}
	})
}

func TestBlock(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text        string
		line, first, last int
	}{
		{"Go, within two blocks", sample, 17, 10, 21},
		{"Go, a function's first line", sample, 5, 5, 8},
		{"Go, its last line", sample, 21, 10, 21},
		{"Go, an import", sample, 3, 3, 3},
		{"Python, a method", "class A:\n    def a(self):\n        if x:\n            y()\n        return 1\n\n    def b(self):\n        return 2\n", 4, 2, 5},
		{"Java, a method", "class A {\n  int a;\n\n  public int b(int c) {\n    if (c > 0) {\n      d();\n    }\n    return a;\n  }\n\n  void e() {}\n}\n", 6, 4, 9},
		{"JavaScript, a call back", "const a = 1\nfunction b() {\n  return c(function () {\n    d()\n  })\n}\n", 4, 2, 6},
		{"C, else", "int f(int x)\n{\n\tif (x) {\n\t\ta();\n\t} else {\n\t\tb();\n\t}\n}\n", 6, 2, 8},
		{"Ruby", "module A\n  def b\n    c do\n      d\n    end\n  end\nend\n", 4, 2, 6},
		{"flat text", "one\ntwo\nthree\n", 2, 2, 2},
		{"a literal in a long function", "func f() {\n" + strings.Repeat("\tx()\n", 80) + "\ta := []int{\n\t\t1,\n\t\t2,\n\t}\n}\n", 83, 82, 85},
	} {
		if first, last := block(splitLines(tt.text), tt.line, tt.line); first != tt.first || last != tt.last {
			t.Errorf("%s: the block around line %d is %d to %d, want %d to %d", tt.name, tt.line, first, last, tt.first, tt.last)
		}
	}
}

// Covers T8, lessons 23: whether the code at a finding's place has changed is seen
// from the commits, by nobody's word.
func TestFollow(t *testing.T) {
	t.Parallel()
	edit := func(old, new string) string { return strings.Replace(sample, old, new, 1) }
	at := func(line int, code string) Place { return Place{File: "a.go", Line: line, Code: code} }
	here := at(17, "\t\t\tuse(f, i)")
	for _, tt := range []struct {
		name    string
		place   Place
		after   map[string]string
		changed bool
		file    string
		line    int
	}{
		{"nothing", here, map[string]string{"a.go": sample}, false, "a.go", 17},
		{"its line", here, map[string]string{"a.go": edit("use(f, i)", "use(f, i+1)")}, true, "a.go", 17},
		{"elsewhere in its function", here, map[string]string{"a.go": edit("if i > 3", "if i > 4")}, true, "a.go", 17},
		{"far away within its function", here, map[string]string{"a.go": edit(`os.Open("x")`, `os.Open("y")`)}, true, "a.go", 17},
		{"another function", here, map[string]string{"a.go": edit("three()", "three(3)")}, false, "a.go", 17},
		{"another function, above", here, map[string]string{"a.go": edit("	one()\n", "	one()\n	more()\n")}, false, "a.go", 18},
		{"another file", here, map[string]string{"a.go": sample, "b.go": "package a\n"}, false, "a.go", 17},
		{"white space alone", here, map[string]string{"a.go": edit("			use(f, i)", "			use(f,   i)")}, false, "a.go", 17},
		{"a line put before", here, map[string]string{"a.go": edit("			use(f, i)", "			check(f)\n			use(f, i)")}, true, "a.go", 18},
		{"a comment put before, of code", Place{File: "a.go", Line: 17, CodeAlone: true}, map[string]string{"a.go": edit("			use(f, i)", "			// It is safe.\n\n			use(f, i)")}, false, "a.go", 19},
		{"a comment put before", here, map[string]string{"a.go": edit("			use(f, i)", "			// It is safe.\n			use(f, i)")}, true, "a.go", 18},
		{"a comment behind it, of code", Place{File: "a.go", Line: 17, CodeAlone: true}, map[string]string{"a.go": edit("use(f, i)", "use(f,  i) // safe")}, false, "a.go", 17},
		{"a comment and code, of code", Place{File: "a.go", Line: 17, CodeAlone: true}, map[string]string{"a.go": edit("use(f, i)", "use(f, i+1) // safe")}, true, "a.go", 17},
		{"an address in a text, of code", Place{File: "a.go", Line: 17, CodeAlone: true}, map[string]string{"a.go": edit("use(f, i)", `use(f, "see // there")`)}, true, "a.go", 17},
		{"its line taken away", here, map[string]string{"a.go": edit("			use(f, i)\n", "")}, true, "a.go", 0},
		{"the file renamed", here, map[string]string{"dir/b.go": sample}, false, "dir/b.go", 17},
		{"the file renamed, and its line changed", here, map[string]string{"dir/b.go": edit("use(f, i)", "use(f, i+1)")}, true, "dir/b.go", 17},
		{"the file deleted", here, map[string]string{"c.txt": "x\n"}, true, "", 0},
		{"beside the place, in no function", at(3, ""), map[string]string{"a.go": edit("func first() {", "func First() {")}, true, "a.go", 3},
		{"the line number is of another commit", at(2, "\t\t\tuse(f, i)"), map[string]string{"a.go": edit("package a", "package aa")}, false, "a.go", 17},
		{"the whole file", at(0, ""), map[string]string{"a.go": edit("three()", "three(3)")}, true, "a.go", 0},
		{"the whole file, unchanged", at(0, ""), map[string]string{"a.go": sample, "b.go": "x\n"}, false, "a.go", 0},
		{"a file that is there again", Place{File: "new.go"}, map[string]string{"a.go": sample, "new.go": "package a\n"}, true, "new.go", 0},
		{"a file that never was", Place{File: "never.go", Line: 1}, map[string]string{"a.go": sample}, true, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			patch := diff(t, map[string]string{"a.go": sample}, tt.after)
			got := Read(patch).Follow(tt.place, reader(tt.after))
			if got.Changed != tt.changed || got.File != tt.file || got.Line != tt.line {
				t.Errorf("Follow gives %+v, want changed %v at %s:%d; the patch is\n%s", got, tt.changed, tt.file, tt.line, patch)
			}
			if tt.changed && tt.file != "" && got.Excerpt == "" {
				t.Error("the change is not shown")
			}
		})
	}
}

// Covers T8, lessons 9: every file is shown, in one part or in several, or it is said
// that nobody reads it.
func TestDivide(t *testing.T) {
	t.Parallel()
	lines := func(n int, word string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%s %d is a line of some thirty letters\n", word, i)
		}
		return b.String()
	}
	before := map[string]string{"gone.go": "package gone\n", "gen/b.pb.go": "// Code generated by protoc-gen-go. DO NOT EDIT.\npackage gen\n", "go.sum": "a.org/x v1.0.0 h1:" + strings.Repeat("A", 44) + "\n"}
	var sums strings.Builder
	for i := range 400 {
		fmt.Fprintf(&sums, "example.org/m%d v1.2.%d h1:%s=\nexample.org/m%d v1.2.%d/go.mod h1:%s=\n", i, i, strings.Repeat("B", 43), i, i, strings.Repeat("C", 43))
	}
	after := map[string]string{
		"big.go": lines(3000, "big"), "small.go": "package small\n", "c/one.go": lines(100, "one"), "c/two.go": lines(100, "two"),
		"go.sum": sums.String(), "gen/b.pb.go": "// Code generated by protoc-gen-go. DO NOT EDIT.\npackage gen\n\nimport \"os/exec\"\n\nfunc New() {\n" + lines(600, "gen") + "}\n",
		"fake.pb.go": "package fake\n" + lines(300, "fake"), "hand.go": "// Code generated by hand. DO NOT EDIT.\n" + lines(300, "hand"),
		"logo.png": "a\x00b", "app.min.js": strings.Repeat("var a=1;", 4000) + "\n", "line.txt": strings.Repeat("x", 12_000) + "\n",
	}
	c := Read(diff(t, before, after) + "diff --git broken\n@@ what\n")
	r := c.Divide(Limits{Part: 16 << 10, Parts: 20, Whole: 4 << 10}, reader(after))
	all := ""
	for _, p := range r.Parts {
		if len(p.Text) > 16<<10 {
			t.Errorf("a part of %d bytes, with %v", len(p.Text), p.Files)
		}
		all += p.Text
	}
	for name, content := range after {
		for _, l := range splitLines(content) {
			if n := strings.Count(all, "+"+l+"\n"); (strings.Contains(l, "some thirty letters") && name != "gen/b.pb.go" || strings.HasPrefix(l, "package small")) && n != 1 {
				t.Fatalf("a line of %s is shown %d times: %s", name, n, l)
			}
		}
	}
	for _, want := range []string{"big.go (new file, +3000 −0) — piece 1 of ", "gone.go (deleted", "go.sum (+800 −1) — a lock file", "+example.org/m7 v1.2.7 …", "+import \"os/exec\"", "+func New() {"} {
		if !strings.Contains(all, want) {
			t.Errorf("no part shows %q", want)
		}
	}
	if strings.Contains(all, "BBBB") {
		t.Error("the digests of a lock file are shown")
	}
	var unread []string
	for _, s := range r.Unread {
		unread = append(unread, s.Path+": "+s.Why)
	}
	want := []string{"diff --git broken: this part of the patch cannot be read", "app.min.js: minified: nobody can read it", "line.txt: a line of 11 KiB cannot be shown", "logo.png: binary file"}
	if d := cmp.Diff(want, unread); d != "" {
		t.Errorf("unread (-want +got):\n%s", d)
	}

	r = c.Divide(Limits{Part: 16 << 10, Parts: 2, Whole: 4 << 10}, reader(after))
	if len(r.Parts) != 2 || len(r.Unread) < 6 || !strings.Contains(r.Unread[len(r.Unread)-1].Why, "over the 2 parts of 16 KiB") {
		t.Errorf("%d parts of at most 2; unread: %v", len(r.Parts), r.Unread)
	}
}

// Renames, modes and hosts of lock files are said.
func TestHeads(t *testing.T) {
	t.Parallel()
	lock := func(host string) string {
		return fmt.Sprintf("{\n  \"packages\": {\n    \"node_modules/left-pad\": {\n      \"version\": \"1.3.0\",\n      \"resolved\": \"https://%s/left-pad-1.3.0.tgz\",\n      \"integrity\": \"sha512-%s==\",\n      \"hasInstallScript\": true\n    }\n  }\n}\n", host, strings.Repeat("Q", 86))
	}
	before := map[string]string{"a.txt": strings.Repeat("same\n", 20), "package-lock.json": "{\n}\n"}
	after := map[string]string{"b.txt": strings.Repeat("same\n", 20) + "more\n", "package-lock.json": lock("evil.example.org")}
	c := Read(diff(t, before, after) + "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n")
	r := c.Divide(Limits{Part: 16 << 10, Parts: 2}, reader(after))
	for _, want := range []string{"=== b.txt (renamed from a.txt, +1 −0)\n", "=== run.sh (mode 100755)\n", "node_modules/left-pad", "hosts that added lines name: evil.example.org\n", "hasInstallScript", `+"version": "1.3.0"`} {
		if !strings.Contains(r.Parts[0].Text, want) {
			t.Errorf("want %q in\n%s", want, r.Parts[0].Text)
		}
	}
	if strings.Contains(r.Parts[0].Text, "QQQQ") {
		t.Errorf("a digest is shown:\n%s", r.Parts[0].Text)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
	f.Fuzz(func(t *testing.T, s string) {
		c := Read(s)
		if n := len(split(s)); len(c.Files)+len(c.Lost) != n && n > 0 {
			t.Fatalf("%d parts, %d files and %d lost", n, len(c.Files), len(c.Lost))
		}
		r := c.Divide(Limits{Part: 600, Parts: 3, Whole: 100}, func(string) (string, bool) { return s, true })
		seen := map[string]bool{}
		for _, p := range r.Parts {
			for _, name := range p.Files {
				seen[name] = true
			}
		}
		for _, u := range r.Unread {
			seen[u.Path] = true
		}
		for _, file := range c.Files {
			if !seen[file.Path] {
				t.Fatalf("%s is in no part, and nobody says so", file.Path)
			}
			c.Follow(Place{File: file.From, Line: 2}, func(string) (string, bool) { return s, true })
		}
	})
}
