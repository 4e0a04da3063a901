package check

import (
	"os"
	"path"
	"strings"
	"testing"

	"forge/pipeline"

	"github.com/google/go-cmp/cmp"
)

const sumPatch = `diff --git a/DIR/FILE b/DIR/FILE
--- a/DIR/FILE
+++ b/DIR/FILE
@@ -2,3 +2,4 @@
-  old
+  if (a > 100) {
+    return b;
   }
   return a + b;
`

// Covers V1: every format of coverage, with the changed lines alone.
func TestCoverageFormats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, dir, changed string
		want               pipeline.Coverage
	}{
		{"cover.out", "ok", "ok.go", pipeline.Coverage{Lines: 66.7, Branches: -1, Changed: -1}},
		{"lcov.info", "", "sum.js", pipeline.Coverage{Lines: 75, Branches: 50, Changed: 50}},
		{"cobertura.xml", "", "sum.js", pipeline.Coverage{Lines: 75, Branches: 50, Changed: 50}},
	} {
		data, err := os.ReadFile("testdata/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := parsePatch(strings.NewReplacer("DIR/FILE", path.Join(c.dir, c.changed)).Replace(sumPatch))
		if err != nil {
			t.Fatal(err)
		}
		ch := &checker{root: "/src", patch: p, modules: sampleModules, cover: &covered{}}
		if err := ch.addCoverage(ch.cover, &suite{dir: "."}, "", data); err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		if d := cmp.Diff(&c.want, ch.coverage()); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.file, d)
		}
	}
}

func TestCoverageErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ data, want string }{
		{"mode: set\nbroken\n", "read Go coverage profile"},
		{"<coverage><packages>", "read Cobertura report"},
		{"<html></html>", "read Cobertura report"},
		{"hello\n", "it names no source file"},
		{"DA:1,1\n", "no file, or no count"},
		{"SF:a.js\nDA:1\n", "no file, or no count"},
		{"SF:" + strings.Repeat("x", 2<<20), "read LCOV"},
	} {
		v := &covered{}
		err := (&checker{}).addCoverage(v, &suite{dir: "."}, "", []byte(c.data))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("addCoverage(%.40q): error %v, want %q", c.data, err, c.want)
		}
	}
	if err := (&checker{}).addCoverage(&covered{}, &suite{}, "", []byte(" \n")); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}

func TestCoverageOfASuiteInADirectory(t *testing.T) {
	t.Parallel()
	ch := &checker{root: "/src", patch: &patch{}}
	for in, want := range map[string]string{"a.js": "web/a.js", "/src/web/a.js": "web/a.js", "../lib/a.js": "lib/a.js", "/usr/lib/x.py": "", "../../x.py": ""} {
		if got := ch.inRoot("web", in); got != want {
			t.Errorf("inRoot(web, %s) = %s, want %s", in, got, want)
		}
	}
	if got := preferred([]string{"coverage/lcov.info", "coverage/cobertura-coverage.xml", "x/coverage.xml", "junit.xml"}); !cmp.Equal(got, []string{"coverage/lcov.info", "x/coverage.xml"}) {
		t.Errorf("preferred = %q", got)
	}
	// A line counts as run when any suite ran it, in whichever order they report.
	v := &covered{}
	if err := v.lcov([]byte("SF:a\nDA:1,3\nend_of_record\nSF:a\nDA:1,0\nend_of_record\n"), path.Clean); err != nil || !v.files["a"].lines[1] {
		t.Errorf("lines %v, %v", v.files["a"].lines, err)
	}
	if got := percent(2, 3); got != 66.7 {
		t.Errorf("percent(2, 3) = %v", got)
	}
}
