package memory

import (
	"context"
	"fmt"
	"io/fs"
	"testing"

	"forge/pipeline"
)

// What was dismissed with a reason stays so when its file gets another name; not in another
// file that has the same lines, nor where the file itself is still there.
func TestDismissalFollowsRename(t *testing.T) {
	t.Parallel()
	const code = "\tconst total = value + weight * 3;"
	const old = "function calc(value, weight) {\n" + code + "\n\treturn total;\n}\n"
	const other = "class Other {\n\tconstructor() { this.x = 1; }\n}\nfunction more(value, weight) {\n" + code + "\n\tthis.y = 2;\n\tthis.z = 3;\n\treturn 4;\n}\n"
	for _, c := range []struct {
		name   string
		reason string
		files  map[string]string // at the head that is reviewed
		found  []string
		held   int
	}{
		{"renamed", "callers have checked it", map[string]string{"lib/b.js": old}, []string{"lib/b.js"}, 1},
		{"renamed, and a little more", "callers have checked it", map[string]string{"lib/b.js": old + "// more\n"}, []string{"lib/b.js"}, 1},
		{"renamed, without a reason", "", map[string]string{"lib/b.js": old}, []string{"lib/b.js"}, 0},
		{"copied", "callers have checked it", map[string]string{"lib/a.js": old, "lib/b.js": old}, []string{"lib/b.js"}, 0},
		{"gone, with two copies", "callers have checked it", map[string]string{"lib/b.js": old, "lib/c.js": old}, []string{"lib/b.js", "lib/c.js"}, 0},
		{"gone, and the line stands in another file", "callers have checked it", map[string]string{"lib/b.js": other}, []string{"lib/b.js"}, 0},
		{"where it was", "callers have checked it", map[string]string{"lib/a.js": old}, []string{"lib/a.js"}, 1},
	} {
		m, run := bare(t, nil)
		run.Head = "now"
		m.o.File = func(_ context.Context, _ pipeline.Repo, sha, path string) ([]byte, error) {
			files := map[string]string{"lib/a.js": old}
			if sha == "now" {
				files = c.files
			}
			if s, ok := files[path]; ok {
				return []byte(s), nil
			}
			return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
		}
		about := pipeline.Finding{Category: "correctness", Severity: "warning", Rule: "check", Message: "calc adds without a check of null", File: "lib/a.js",
			Line: 2, Code: code, Fingerprint: "fp"}
		s := pipeline.Signal{Key: "dismissed/1", Kind: pipeline.SignalDismissed, Actor: pipeline.Actor{ID: 4, Login: "bob"}, Weight: 1, At: m.o.Now(),
			Finding: "fp", File: "lib/a.js", Text: c.reason, Scope: run.Repo.Scope(), Run: run.ID, About: &about}
		if err := m.o.Record(t.Context(), run.ID, pipeline.SignalEvents([]pipeline.Signal{s}), nil); err != nil {
			t.Fatal(err)
		}
		if err := m.learn(t.Context()); err != nil {
			t.Fatal(err)
		}
		var review pipeline.Review
		for _, f := range c.found {
			again := about
			again.File, again.Fingerprint = f, "fp of "+f
			review.Findings = append(review.Findings, again)
		}
		m.Filter(t.Context(), run, &review)
		held := 0
		for _, f := range review.Suppressed {
			if f.Learning != 0 { // not what is only predicted
				held++
			}
		}
		if held != c.held {
			t.Errorf("%s: %d held back, want %d: %+v", c.name, held, c.held, review)
		}
	}
}
