package identity

import (
	"strings"
	"testing"
)

const patch = `diff --git a/a.go b/a.go
index 1..2 100644
--- a/a.go
+++ b/a.go
@@ -1,3 +1,5 @@
 one
+new
+new
 two
 three
@@ -10,4 +12,3 @@ func x() {
 ten
-eleven
-twelve
+both
 thirteen
@@ -20,0 +22,2 @@
+more
+more
@@ -30,2 +33,0 @@
-thirty
-thirty-one
diff --git a/old name.go b/dir/new name.go
similarity index 97%
rename from old name.go
rename to dir/new name.go
--- a/old name.go
+++ b/dir/new name.go
@@ -2 +2 @@
---two
+++two
diff --git "a/\303\244.go" "b/\303\244.go"
deleted file mode 100644
--- "a/\303\244.go"
+++ /dev/null
@@ -1 +0,0 @@
-x
\ No newline at end of file
diff --git a/fresh.go b/fresh.go
new file mode 100644
--- /dev/null
+++ b/fresh.go
@@ -0,0 +1 @@
+x
`

func TestMoves(t *testing.T) {
	t.Parallel()
	m := ReadMoves(patch)
	for _, c := range []struct {
		file string
		line int
		want Place
	}{
		{"a.go", 1, Place{File: "a.go", Line: 1}}, {"a.go", 2, Place{File: "a.go", Line: 4}}, {"a.go", 10, Place{File: "a.go", Line: 12}},
		{"a.go", 11, Place{File: "a.go", Near: 13}},
		{"a.go", 12, Place{File: "a.go", Near: 14}}, {"a.go", 13, Place{File: "a.go", Line: 14}}, {"a.go", 20, Place{File: "a.go", Line: 21}},
		{"a.go", 21, Place{File: "a.go", Line: 24}},
		{"a.go", 30, Place{File: "a.go", Near: 33}}, {"a.go", 32, Place{File: "a.go", Line: 33}}, {"a.go", 0, Place{File: "a.go"}},
		{"old name.go", 1, Place{File: "dir/new name.go", Line: 1}}, {"old name.go", 2, Place{File: "dir/new name.go", Near: 2}},
		{"old name.go", 3, Place{File: "dir/new name.go", Line: 3}},
		{"ä.go", 1, Place{}}, {"fresh.go", 1, Place{File: "fresh.go", Line: 1}}, {"other.go", 7, Place{File: "other.go", Line: 7}},
	} {
		if got := m.At(c.file, c.line); got != c.want {
			t.Errorf("%s:%d stands at %+v, want %+v", c.file, c.line, got, c.want)
		}
	}
}

func FuzzMoves(f *testing.F) {
	f.Add(patch, "a.go", 11)
	f.Add("diff --git a/x b/y b/x b/y\n@@ -1 +1 @@\n-a\n+b", "x b/y", 1)
	f.Add("diff --git \"a/x\n@@ -9999999999 +1 @@\n@@ -1,-1 +,@@", "x", -1)
	f.Fuzz(func(t *testing.T, patch, file string, line int) {
		switch got := ReadMoves(patch).At(file, line); {
		case got.Line < 0:
			t.Errorf("line %d stands at %d", line, got.Line)
		case !strings.Contains(patch, "diff --git ") && got != (Place{File: file, Line: max(line, 0)}):
			t.Errorf("a patch of no file moved %s:%d to %+v", file, line, got)
		}
	})
}
