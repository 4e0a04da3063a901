package learnings

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"forge/learn/export"
	"forge/pipeline"
)

// wrapErrors is a learning from a dismissal, with evidence against it.
func wrapErrors(scope, key string, at time.Time) export.Entry {
	return export.Entry{
		Learning: pipeline.Learning{Key: key, Scope: scope, Type: pipeline.LearningSemantic, State: pipeline.LearningActive, Category: "style",
			Base: 0.8, Source: pipeline.SourceHuman,
			Author: pipeline.Actor{ID: 1, Login: "ann"}, Weight: 1, Paths: []string{"api/a.go"}, Content: "Wrap errors with the activity", Created: at, Touched: at},
		Evidence: []pipeline.Evidence{{Of: key, Key: "thread/1", Delta: -0.2, Why: "a related finding was dismissed",
			Actor: pipeline.Actor{ID: 2, Login: "bob"}, At: at.Add(time.Hour)}},
	}
}

// However names look, no file of an export lies outside of its directory, and no
// two scopes share one.
func TestExportName(t *testing.T) {
	t.Parallel()
	for scope, want := range map[string]string{"repo:acme/site": "acme/site.json", "org:acme": "acme.json", "repo:greet": "repo:greet.json",
		"repo:../x": "repo:..%2Fx.json", "repo:a/../b": "repo:a%2F..%2Fb.json"} {
		if got := exportName(scope); got != want {
			t.Errorf("exportName(%q) = %q, want %q", scope, got, want)
		}
	}
	scopes := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"repo:", "org:"}).Draw(t, "kind") + rapid.StringMatching(`[a./%: -]{0,6}`).Draw(t, "name")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := scopes.Draw(t, "a"), scopes.Draw(t, "b")
		if name := exportName(a); !filepath.IsLocal(name) {
			t.Fatalf("the file of %q is %q, outside of the directory", a, name)
		}
		if a != b && exportName(a) == exportName(b) {
			t.Fatalf("%q and %q share the file %q", a, b, exportName(a))
		}
	})
}

// Taking files in again, or in one go, changes nothing more.
func TestMergeEntries(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	entry := rapid.Custom(func(t *rapid.T) export.Entry {
		e := wrapErrors("org:acme", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"), at)
		e.Learning.State = rapid.SampledFrom([]pipeline.LearningState{pipeline.LearningActive, pipeline.LearningForgotten}).Draw(t, "state")
		e.Evidence = nil
		for _, key := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"x", "y", "z"}), rapid.ID[string]).Draw(t, "evidence") {
			e.Evidence = append(e.Evidence, pipeline.Evidence{Of: e.Learning.Key, Key: key, Delta: 0.1,
				At: at.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "at")) * time.Hour)})
		}
		return e
	})
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(entry, 0, 6).Draw(t, "entries")
		once := mergeEntries(list)
		if diff := cmp.Diff(export.Write("org:acme", once), export.Write("org:acme", mergeEntries(append(list, list...)))); diff != "" {
			t.Fatalf("the same again makes a difference (-once +twice):\n%s", diff)
		}
		for _, e := range once {
			for _, from := range list {
				if from.Learning.Key != e.Learning.Key {
					continue
				}
				if from.Learning.State == pipeline.LearningForgotten && e.Learning.State != pipeline.LearningForgotten {
					t.Fatalf("%s is remembered again", e.Learning.Key)
				}
				if late := newer(e.Evidence, from.Evidence); len(late) > 0 {
					t.Fatalf("evidence on %s was lost: %+v", e.Learning.Key, late)
				}
			}
		}
	})
}
