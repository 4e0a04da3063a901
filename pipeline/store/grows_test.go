package store

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every table stands in the list of what grows, with what takes its rows away.
func TestEveryTableIsListed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../.github/docs/security.md")
	must(t, err)
	_, list, found := strings.Cut(string(text), "\n## What grows\n")
	if !found {
		t.Fatal("there is no list of what grows")
	}
	files, err := fs.Glob(dialectSQLite.tree(), "*.sql")
	must(t, err)
	tables := 0
	for _, name := range files {
		data, err := fs.ReadFile(dialectSQLite.tree(), name)
		must(t, err)
		for _, m := range regexp.MustCompile(`CREATE TABLE (\w+)`).FindAllStringSubmatch(string(data), -1) {
			tables++
			if !strings.Contains(list, "`"+m[1]+"`") {
				t.Errorf("the table %s of %s is not in the list", m[1], name)
			}
		}
	}
	if tables < 30 {
		t.Errorf("%d tables were found", tables)
	}
}
