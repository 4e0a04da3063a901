package check

import (
	"forge/pipeline/config"
	"forge/pipeline/quality"
	"maps"
	"slices"
	"strings"
	"testing"
)

// What measures is followed through make, npm and go run; a linter's settings by from_base.
func TestEditedTools(t *testing.T) {
	t.Parallel()
	base := `
-- Makefile --
size:
	@sh tools/size.sh
-- tools/size.sh --
wc -c <data.txt
-- data.txt --
x
-- package.json --
{"scripts": {"size": "wc -c <data.txt"}, "dependencies": {}}
-- .lint --
strict
-- tool/main.go --
package main
`
	for _, c := range []struct{ command, change, want string }{
		{"make -s size", "-- Makefile --\nsize:\n\t@echo 0\n", "Makefile"},
		{"make -s size", "-- tools/size.sh --\necho 0\n", "tools/size.sh"},
		{"npm run -s size", "-- package.json --\n{\"scripts\": {\"size\": \"echo 0\"}}\n", "package.json"},
		{"npm run -s size", "-- package.json --\n{\"scripts\": {\"size\": \"wc -c <data.txt\"}, \"dependencies\": {\"a\": \"1\"}}\n", ""},
		{"go run ./tool", "-- tool/main.go --\npackage main\n\nfunc main() {}\n", "tool/main.go"},
		{"lint", "-- .lint --\nlax\n", ".lint"},
		{"wc -c data.txt", "-- data.txt --\nxxx\n", ""},
		{"cd tools && sh size.sh", "-- tools/size.sh --\necho 0\n", "tools/size.sh"},
	} {
		g := newGated(t, base, c.change)
		patch, err := parsePatch(g.patch)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := (&gauge{o: g.o, head: g.open, base: g.open, patch: patch}).tools(t.Context(), quality.Of(config.Quality{Command: c.command, FromBase: []string{".lint"}}))
		if want := strings.Fields(c.want); err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %v, %v, want %v", c.command, got, err, want)
		}
	}
}

// A new file of the tests may bend what a benchmark works on.
func TestFilesBesideABenchmark(t *testing.T) {
	t.Parallel()
	g := newGated(t, "-- sum_test.go --\npackage a\n\nfunc BenchmarkSum() {}\n", "-- fast_test.go --\npackage a\n\nfunc init() {}\n")
	patch, err := parsePatch(g.patch)
	if err != nil {
		t.Fatal(err)
	}
	sure, maybe, err := (&gauge{o: g.o, head: g.open, base: g.open, patch: patch}).tools(t.Context(), quality.Of(config.Quality{Use: quality.GoBench}))
	if err != nil || len(sure) > 0 || !slices.Equal(maybe, []string{"fast_test.go"}) {
		t.Errorf("sure %v, maybe %v, %v", sure, maybe, err)
	}
}

// However a gate comes to what measures it, the change that edits that, or puts something
// new in its way, does not measure itself; what it may do to the product it does.
func TestGateMeasuresByItsBase(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	const tool, lax = "wc -c <data.txt", "echo 3"
	for _, c := range []struct{ name, command, base, change string }{
		{"a folder entered", "cd t && python3 size.py", "-- t/size.py --\nprint(len(open('../data.txt').read()))\n", "-- t/size.py --\nprint(3)\n"},
		{"a module", "python3 -m t.size", "-- t/__init__.py --\n-- t/size.py --\nprint(len(open('data.txt').read()))\n", "-- t/size.py --\nprint(3)\n"},
		{"make in a folder", "make -s -C t size", "-- t/Makefile --\nsize:\n\t@wc -c <../data.txt\n", "-- t/Makefile --\nsize:\n\t@echo 3\n"},
		{"an import", "python3 t/size.py", "-- t/size.py --\nimport helper\nprint(helper.n())\n" +
			"-- t/helper.py --\ndef n(): return len(open('data.txt').read())\n",
			"-- t/helper.py --\ndef n(): return 3\n"},
		{"an import of a package", "python3 t/size.py", "-- t/size.py --\nfrom pkg.sub import v\nprint(v())\n" +
			"-- t/pkg/__init__.py --\n-- t/pkg/sub.py --\ndef v(): return len(open('data.txt').read())\n",
			"-- t/pkg/sub.py --\ndef v(): return 3\n"},
		{"a folder entered in a script", "sh size.sh", "-- size.sh --\ncd t && sh inner.sh\n-- t/inner.sh --\nwc -c <../data.txt\n", "-- t/inner.sh --\necho 3\n"},
		{"by the script's own folder", "sh t/size.sh", "-- t/size.sh --\nD=\"$(dirname \"$0\")\"; sh \"$D/inner.sh\"\n" +
			"-- t/inner.sh --\n" + tool + "\n", "-- t/inner.sh --\n" + lax + "\n"},
		{"a name without an ending", "sh t/gauge", "-- t/gauge --\nsh ./t/tool.sh\n-- t/tool.sh --\n#!/bin/sh\n" + tool + "\n", "-- t/tool.sh --\n#!/bin/sh\n" + lax + "\n"},
		{"a module in the way of the library's", "python3 t/size.py", "-- t/size.py --\nimport json\nprint(json.loads(str(len(open('data.txt').read()))))\n",
			"-- t/json.py --\ndef loads(s): return 3\n"},
		{"another Makefile", "make -s size", "-- Makefile --\nsize:\n\t@wc -c <data.txt\n", "-- GNUmakefile --\nsize:\n\t@echo 3\n"},
		{"one script more", "for f in checks/*.sh; do sh $f; done", "-- checks/a.sh --\n" + tool + "\n", "-- checks/z.sh --\n" + lax + "\n"},
		{"new settings", "if [ -f .toolrc ]; then echo 3; else " + tool + "; fi", "", "-- .toolrc --\nlax\n"},
		{"new settings that are named", "if [ -f cfg/extra.ini ]; then echo 3; else " + tool + "; fi", "-- cfg/a.ini --\nx\n", "-- cfg/extra.ini --\nlax\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := "-- data.txt --\nx\n" + c.base
			grown := "-- data.txt --\n" + strings.Repeat("x", 900) + "\n"
			gate := config.Quality{Name: "size", Command: c.command, Value: "number", Max: bound(5), FromBase: []string{"cfg/**"}}
			if m := newGated(t, base, grown+c.change, gate).measure(); m.OK || m.Error != "" || m.Value < 900 || !strings.Contains(m.Note, "as the base has it") {
				t.Errorf("with what measures it edited: %+v", m)
			}
			if m := newGated(t, base, c.change, gate).measure(); !m.OK {
				t.Errorf("the edit alone: %+v", m)
			}
			if m := newGated(t, base, grown, gate).measure(); m.OK || m.Note != "" {
				t.Errorf("without an edit: %+v", m)
			}
		})
	}
}

// The worse value counts, also where both are within the bounds.
func TestWorseValueIsShown(t *testing.T) {
	t.Parallel()
	gate := config.Quality{Name: "n", Command: "sh size.sh", Value: "number", Max: bound(100)}
	g := newGated(t, "-- size.sh --\nwc -l <data.txt\n-- data.txt --\nx\n", "-- size.sh --\necho 0\n-- data.txt --\nx\nx\nx\n", gate)
	if m := g.measure(); !m.OK || m.Value != 3 || !strings.Contains(m.Note, "size.sh as the base has it") {
		t.Errorf("%+v", m)
	}
}

// What a script loads by plain words of its language is what measures, too.
func TestFollow(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"js/count.js": "require('../jslib')\n", "jslib/package.json": `{"main":"a.js"}`, "jslib/a.js": "require('./c')\n", "jslib/c.js": "x",
		"sh/run.sh": ". \"$PWD/shlib/common.sh\"\ncount\n", "shlib/common.sh": "x",
		"root/run.sh": "ROOT=$(pwd)\nsh \"$ROOT/rootlib/size.sh\"\n", "rootlib/size.sh": "x",
		"py/count.py": "from pylib import (cnt,\n  more)\ncnt.go()\n", "pylib/cnt.py": "x", "pylib/more.py": "x",
		"path/run.py": "import sys\nsys.path.insert(0, 'pathlib2')\nimport cnt\n", "pathlib2/cnt.py": "x",
	}
	read := func(name string) ([]byte, bool) { data, ok := files[name]; return []byte(data), ok }
	for _, c := range []struct{ command, want, near string }{
		{"node js/count.js", "js/count.js jslib/a.js jslib/c.js jslib/package.json", ""},
		{"sh sh/run.sh", "sh/run.sh shlib/common.sh", ""},
		{"sh root/run.sh", "root/run.sh rootlib/size.sh", ""},
		{"python3 -m py.count", "py/count.py pylib/cnt.py pylib/more.py", ""},
		{"python3 path/run.py", "path/run.py pathlib2/cnt.py", ""},
		{"find all -name '*.sh' -exec sh {} +", "", "all/a.sh"},
		{`PATH="$PWD/own/bin:$PATH" mycount`, "", "own/bin/mycount"},
		{"echo 1", "", ""},
	} {
		found := follow(c.command, read)
		if got := strings.Join(slices.Sorted(maps.Keys(found.files)), " "); got != c.want || c.near != "" && !found.near(c.near) {
			t.Errorf("%s: %q, want %q, and %s may be read: %v", c.command, got, c.want, c.near, found.near(c.near))
		}
	}
}
