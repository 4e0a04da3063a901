package phase

import (
	"context"
	"errors"
	"testing"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/config"
	"forge/pipeline/lens"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

// viewing is a run whose settings name lenses, and a job with a change of one file.
func viewing(file string, lenses ...string) (*pipeline.Run, *agent.Job) {
	diff := "diff --git a/" + file + " b/" + file + "\n--- a/" + file + "\n+++ b/" + file + "\n@@ -1 +1 @@\n-a\n+b\n"
	run := &pipeline.Run{ID: 1, Config: config.Config{Review: config.Review{Lenses: lenses}}}
	return run, &agent.Job{Run: run, Diff: diff, Emit: func(context.Context, ...pipeline.Event) error { return nil }}
}

// Covers R10: a lens that has nothing to look at is named with the reason, and opens nothing.
func TestViewsThatAreNotNeeded(t *testing.T) {
	run, job := viewing("README.md", "security", "performance")
	v := New(Options{}).startViews(t.Context(), run, job)
	review := pipeline.Review{Summary: "Good."}
	if err := v.add(&review, nil); err != nil {
		t.Fatal(err)
	}
	want := pipeline.Review{Summary: "Good.", Views: []lens.View{
		{Lens: lens.Security, Skipped: "only documents and tests change"}, {Lens: lens.Performance, Skipped: "only documents and tests change"}}}
	if d := cmp.Diff(want, review); d != "" {
		t.Errorf("the review (-want +got):\n%s", d)
	}
}

// Without the setting there is nothing beside the general review: not even a meter.
func TestNoViews(t *testing.T) {
	run, job := viewing("a.go")
	if v := New(Options{}).startViews(t.Context(), run, job); v != nil || job.Meter != nil {
		t.Errorf("views %v, meter %v", v, job.Meter)
	}
	review, broken := pipeline.Review{}, errors.New("away")
	if err := (*views)(nil).add(&review, broken); !errors.Is(err, broken) || review.Views != nil {
		t.Errorf("without views: %v, %v", review.Views, err)
	}
}

// A general review that fails takes the views with it, which never began.
func TestViewsEndWithTheReview(t *testing.T) {
	run, job := viewing("a.go", "security")
	v := New(Options{}).startViews(t.Context(), run, job)
	review, broken := pipeline.Review{}, errors.New("away")
	if err := v.add(&review, broken); !errors.Is(err, broken) || review.Views != nil {
		t.Errorf("views %v, %v; want those of nobody, and the review's error", review.Views, err)
	}
}

// A finding that a lens alone had says which lens it was; what the general review had, too,
// is the general review's.
func TestFindingsNameTheirLens(t *testing.T) {
	found := func(file, words string) pipeline.Finding {
		return pipeline.Finding{Fingerprint: file, Severity: pipeline.SeverityError, File: file, Line: 3, Code: "query(name)", Message: words}
	}
	const escaped = "The name reaches the query without being escaped"
	v := &views{list: []lens.View{{Lens: lens.Security}, {Lens: lens.Performance}}, stop: func() {}, begin: func() {}, group: &errgroup.Group{},
		reviews: []pipeline.Review{
			{Findings: []pipeline.Finding{found("a.go", escaped), found("b.go", "The token is written to the log")}},
			{Findings: []pipeline.Finding{found("c.go", "The file is read for each row")}},
		}}
	review := pipeline.Review{Findings: []pipeline.Finding{found("a.go", escaped)}}
	if err := v.add(&review, nil); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range review.Findings {
		got[f.File] = f.Lens
	}
	if d := cmp.Diff(map[string]string{"a.go": "", "b.go": "security", "c.go": "performance"}, got); d != "" {
		t.Errorf("lenses of the findings (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]lens.View{{Lens: lens.Security, Findings: 1}, {Lens: lens.Performance, Findings: 1}}, review.Views); d != "" {
		t.Errorf("views (-want +got):\n%s", d)
	}
}

// What two views say of one place is one finding: the worse severity and the surer word
// count, and a fix that only one of them has is kept. What is of another place stays.
func TestUnited(t *testing.T) {
	first := pipeline.Finding{Fingerprint: "one", Severity: pipeline.SeverityWarning, Category: pipeline.CategorySecurity, File: "a.go", Line: 3, Code: "query(name)",
		Message: "The name reaches the query without being escaped", Confidence: 0.5}
	again := first
	again.Fingerprint, again.Severity, again.Confidence = "two", pipeline.SeverityError, 0.9
	again.Message, again.Fix = "The name reaches the query without being escaped first", &pipeline.Fix{Description: "escape it"}
	other := pipeline.Finding{Fingerprint: "three", Severity: pipeline.SeverityInfo, Category: pipeline.CategoryPerformance, File: "b.go", Line: 9, Message: "The file is read for each row"}
	got := united([]pipeline.Finding{first}, []pipeline.Finding{other, again})
	if len(got) != 2 || got[0].Fingerprint != "one" || got[0].Severity != pipeline.SeverityError || got[0].Confidence != 0.9 || got[0].Fix == nil || got[1].Message != other.Message {
		t.Errorf("united: %+v", got)
	}
	if first.Severity != pipeline.SeverityWarning {
		t.Error("the list that was given is changed")
	}
}
