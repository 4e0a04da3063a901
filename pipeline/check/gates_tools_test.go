package check

import (
	"forge/pipeline/config"
	"forge/pipeline/quality"
	"strings"
	"testing"
)

// What measures is what a command names, also through make, npm and go run; a linter's
// settings by from_base.
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
		got, err := (&gauge{o: g.o, head: g.open, base: g.open, patch: patch}).tools(t.Context(), quality.Of(config.Quality{Command: c.command, FromBase: []string{".lint"}}))
		if want := strings.Fields(c.want); err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %v, %v, want %v", c.command, got, err, want)
		}
	}
}

// A change that edits what a gate is measured by does not measure itself.
func TestGateMeasuresByItsBase(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	const tool, lax = "wc -c <data.txt", "echo 3"
	for _, c := range []struct{ name, command, base, change string }{
		{"a folder entered", "cd t && python3 size.py", "-- t/size.py --\nprint(len(open('../data.txt').read()))\n", "-- t/size.py --\nprint(3)\n"},
		{"make in a folder", "make -s -C t size", "-- t/Makefile --\nsize:\n\t@wc -c <../data.txt\n", "-- t/Makefile --\nsize:\n\t@echo 3\n"},
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
