package github

import (
	"context"
	"fmt"
	"testing"
	"time"

	"forge/github/render/rendertest"
	"forge/pipeline"
)

// What a review asks for is what it says now, and what the delivery tells where GitHub's answer is older.
func TestRequested(t *testing.T) {
	t.Parallel()
	later := time.Date(2026, 3, 2, 9, 9, 0, 0, time.UTC)
	asks := func(state string) string {
		return `{"id":5,"state":"` + state + `","body":"Why?","commit_id":"c0ffee"}`
	}
	comments := `[{"id":7,"path":"a.go","original_line":3,"body":"old","updated_at":"2026-03-02T09:01:00Z"},{"id":8,"path":"b.go","body":"/forge status"}]`
	for _, c := range []struct {
		name, review string
		f            pipeline.Feedback
		want         string
	}{
		{"submitted", asks("CHANGES_REQUESTED"), pipeline.Feedback{Action: "submitted"}, "0 Why?|7 a.go:3 old|"},
		{"submitted and not to be read yet", `404 {"message":"Not Found"}`, pipeline.Feedback{Action: "submitted", Body: "As told"}, "0 As told|7 a.go:3 old|"},
		{"edited", asks("CHANGES_REQUESTED"), pipeline.Feedback{Action: "edited", Comments: []int64{7}, Body: "new", At: later}, "0 Why?|7 a.go:3 new|"},
		{"edited, and once more since", asks("CHANGES_REQUESTED"), pipeline.Feedback{Action: "edited", Comments: []int64{7}, Body: "older", At: later.Add(-time.Hour)}, "0 Why?|7 a.go:3 old|"},
		{"deleted", asks("CHANGES_REQUESTED"), pipeline.Feedback{Action: "deleted", Comments: []int64{7}}, "0 Why?|"},
		{"dismissed", asks("DISMISSED"), pipeline.Feedback{Action: "dismissed"}, ""},
		{"gone", `404 {"message":"Not Found"}`, pipeline.Feedback{Action: "deleted", Comments: []int64{7}}, ""},
		{"a comment of one", asks("CHANGES_REQUESTED"), pipeline.Feedback{Action: "created"}, "0 Why?|7 a.go:3 old|"},
		{"a comment of one that only comments", asks("COMMENTED"), pipeline.Feedback{Action: "created"}, ""},
	} {
		a := testApp(t, routes(t, map[string]string{"GET /repos/octo/repo/pulls/2/reviews/5": c.review, "GET /repos/octo/repo/pulls/2/reviews/5/comments": comments}),
			func(o *Options) { o.Sleep = func(context.Context, time.Duration) error { return nil } })
		c.f.Review = 5
		got, err := a.Requested(t.Context(), rendertest.Repo(), 2, c.f)
		words := ""
		for _, f := range got.Findings {
			place := ""
			if f.File != "" {
				place = fmt.Sprintf("%s:%d ", f.File, f.Line)
			}
			words += fmt.Sprintf("%d %s%s|", f.Comment, place, f.Message)
			if f.Review != 5 || f.Category != pipeline.CategoryHuman {
				t.Errorf("%s: %+v", c.name, f)
			}
		}
		if err != nil || words != c.want {
			t.Errorf("%s: it asks for %q, %v; want %q", c.name, words, err, c.want)
		}
	}
}
