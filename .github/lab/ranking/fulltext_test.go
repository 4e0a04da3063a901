package ranking

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
)

func TestFullText(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f, err := NewFullText(ctx, t.TempDir())
	must(t, err)
	defer func() { must(t, f.Close()) }()
	must(t, f.Add(ctx, []pipeline.Learning{
		{ID: 1, Scope: "repo:a/b", Content: "The elector resigns on shutdown", Confidence: 0.2},
		{ID: 2, Scope: "repo:a/b", Content: "The elector resigns on shutdown", Confidence: 0.8},
		{ID: 3, Scope: "repo:a/b", Content: "Templates are escaped", Context: "server/web", Confidence: 0.9},
		{ID: 4, Scope: "repo:other/b", Content: "The elector resigns", Confidence: 0.9},
		{ID: 5, Scope: "repo:a/b", Content: "scope1 is no scope here", Confidence: 0.9},
	}))
	must(t, f.Optimize(ctx))
	for _, c := range []struct {
		scope string
		words []string
		limit int
		want  []int64
	}{
		{"repo:a/b", []string{"elector", "resigns"}, 10, []int64{2, 1}},
		{"repo:a/b", []string{"elector", "resigns"}, 1, []int64{2}},
		{"repo:a/b", []string{"WEB", `"quoted`}, 10, []int64{3}},
		{"repo:a/b", []string{"nothing"}, 10, nil},
		{"repo:a/b", nil, 10, nil},
		{"repo:other/b", []string{"elector"}, 10, []int64{4}},
		{"repo:unknown/b", []string{"elector"}, 10, nil},
	} {
		got, err := f.Search(ctx, c.scope, c.words, c.limit)
		must(t, err)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("Search(%s, %q, %d) (-want +got):\n%s", c.scope, c.words, c.limit, diff)
		}
	}
	if err := f.Add(ctx, []pipeline.Learning{{ID: 6, Scope: "repo:a/b"}, {ID: 1, Scope: "repo:a/b"}}); err == nil {
		t.Error("Add of a learning that is there already: no error")
	}
	if got, err := f.Search(ctx, "repo:a/b", []string{"shutdown"}, 10); err != nil || len(got) != 2 {
		t.Errorf("after a failed Add: %v, %v", got, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
