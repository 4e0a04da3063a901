package repositories

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Commits are taken that change code with its tests, the newest first.
func TestCommits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		if _, err := git(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	run("init", "-q")
	commit := func(subject string, files map[string]string) {
		t.Helper()
		for name, text := range files {
			path := filepath.Join(dir, name)
			if text == "" {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		run("add", "-A")
		run("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", subject)
	}
	commit("begin", map[string]string{"a.go": "1", "a_test.go": "1", "old.go": "x"})
	commit("code alone", map[string]string{"a.go": "2"})
	commit("first", map[string]string{"a.go": "3", "a_test.go": "2", "old.go": ""})
	commit("tests alone", map[string]string{"a_test.go": "3"})
	commit("no text", map[string]string{"a.go": "4", "a_test.go": "4", "b": "\x00"})
	commit("second", map[string]string{"a.go": "5", "a_test.go": "5", "README.md": "words"})
	commit("its own CI", map[string]string{"a.go": "6", "a_test.go": "6", ".github/ci.yml": "a"})
	got, err := commits(t.Context(), dir, 9, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range got {
		names = append(names, c.Subject+": "+strings.Join(slices.Sorted(maps.Keys(c.Change)), " "))
	}
	if diff := cmp.Diff([]string{"second: README.md a.go a_test.go", "first: a.go a_test.go old.go"}, names); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	first := got[1]
	if one, err := commits(t.Context(), dir, 9, []string{first.SHA}, nil); err != nil || len(one) != 1 || one[0].Subject != "first" {
		t.Errorf("by its name: %+v, %v", one, err)
	}
	if first.Files["a.go"] != "2" || first.Files["old.go"] != "x" || *first.Change["a.go"] != "3" || first.Change["old.go"] != nil || !first.Tests["a_test.go"] || first.Tests["a.go"] {
		t.Errorf("%+v", first)
	}
	whole, alone := tape(first), tape(first.alone())
	if !strings.Contains(whole, "remove\npath: \"old.go\"") || strings.Contains(alone, "old.go") || !strings.Contains(alone, "path: \"a_test.go\"\ncontent: \"2\"") {
		t.Errorf("%s\n%s", whole, alone)
	}
	if one, err := commits(t.Context(), dir, 9, nil, []string{"READ*"}); err != nil || len(one) != 1 || one[0].Subject != "second" {
		t.Errorf("by what it touches: %+v, %v", one, err)
	}
	if _, err := commits(t.Context(), t.TempDir(), 1, nil, nil); err == nil {
		t.Error("a folder that is no clone has commits")
	}
}
