package learn

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
)

// Covers lessons 20: people can mend what is remembered, within limits, and nothing
// that is written there holds a secret.
func TestEdit(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	category := func(c pipeline.Category) *pipeline.Category { return &c }
	list := func(s ...string) *[]string { return &s }
	number := func(x float64) *float64 { return &x }
	evidence := []pipeline.Evidence{{Delta: -0.2}, {Delta: 0.5, Off: true}}
	old := pipeline.Learning{Content: "Wrap errors", Context: "in Go", Category: "old one", Paths: []string{"a.go"}, Tags: []string{"go"},
		Base: 0.5, State: pipeline.LearningActive}
	for _, c := range []struct {
		name   string
		edit   Edit
		want   func(*pipeline.Learning)
		refuse string
	}{
		{"nothing", Edit{}, nil, "nothing is to be changed"},
		{"words", Edit{Content: text(" Wrap all\u202e errors <!-- hid -->\r\n"), Context: text("")},
			func(l *pipeline.Learning) { l.Content, l.Context = "Wrap all errors", "" }, ""},
		{"secret", Edit{Content: text("use ghp_" + strings.Repeat("a", 36)), Tags: list("ghp_" + strings.Repeat("b", 36))},
			func(l *pipeline.Learning) { l.Content, l.Tags = "use [secret]", []string{"[secret]"} }, ""},
		{"lists", Edit{Paths: list(" b.go", "", "b.go", "c\n.go"), Tags: list()},
			func(l *pipeline.Learning) { l.Paths, l.Tags = []string{"b.go", "c .go"}, nil }, ""},
		{"category", Edit{Category: category("security")}, func(l *pipeline.Learning) { l.Category = "security" }, ""},
		{"its own category", Edit{Category: category("old one")}, func(*pipeline.Learning) {}, ""},
		{"no category", Edit{Category: category("")}, func(l *pipeline.Learning) { l.Category = "" }, ""},
		{"confidence", Edit{Confidence: number(0.75)}, func(l *pipeline.Learning) { l.Base = 0.95 }, ""},
		{"too sure", Edit{Confidence: number(0.9)}, nil, "from 0.00 to 0.80, not 0.9"},
		{"no number", Edit{Confidence: number(2)}, nil, "from 0 to 1"},
		{"no words", Edit{Content: text("\u200b <!-- x")}, nil, "without words"},
		{"unknown category", Edit{Category: category("taste")}, nil, `no category "taste"`},
		{"long", Edit{Context: text(strings.Repeat("x", MaxWords+1))}, nil, "say it shorter"},
		{"many", Edit{Paths: list(make([]string, maxList+1)...)}, nil, "51 paths"},
		{"a stand", Edit{Tags: list("go", "stands:avoid")}, func(l *pipeline.Learning) { l.Tags = []string{"go", "stands:avoid"} }, ""},
		{"no stand", Edit{Tags: list("stands:banana")}, nil, "take one of stands:ask, stands:avoid, stands:how, stands:fact"},
		{"two stands", Edit{Tags: list("stands:ask", "stands:avoid")}, nil, "stands for two things"},
		{"outside", Edit{Paths: list("../../etc/passwd")}, nil, "no path within the repository"},
		{"from the root", Edit{Paths: list("/etc/shadow")}, nil, "no path within the repository"},
		{"a pattern", Edit{Paths: list("api/*.go", "web/**")}, func(l *pipeline.Learning) { l.Paths = []string{"api/*.go", "web/**"} }, ""},
		{"no pattern", Edit{Paths: list("[")}, nil, "no pattern of paths"},
		{"long path", Edit{Tags: list(strings.Repeat("x", maxField+1))}, nil, "one of the tags has 301 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := old
			err := c.edit.Check()
			if err == nil {
				err = c.edit.Apply(&got, evidence)
			}
			if c.want == nil {
				if err == nil || !strings.Contains(err.Error(), c.refuse) {
					t.Errorf("error %v, want %q", err, c.refuse)
				}
				return
			}
			want := old
			c.want(&want)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
		})
	}
	gone := pipeline.Learning{State: pipeline.LearningForgotten}
	if err := (&Edit{Content: text("again")}).Apply(&gone, nil); err == nil || !strings.Contains(err.Error(), "for good") {
		t.Errorf("edit what is forgotten: %v", err)
	}
}

// What a learning stands for is not lost with the words to find it by.
func TestKeepStand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ now, before, want string }{
		{"go", "js stands:ask", "go stands:ask"}, {"go stands:avoid", "stands:ask", "go stands:avoid"}, {"", "stands:ask", ""}, {"go", "js", "go"},
	} {
		if got := strings.Join(KeepStand(strings.Fields(c.now), strings.Fields(c.before)), " "); got != c.want {
			t.Errorf("%q instead of %q: %q, want %q", c.now, c.before, got, c.want)
		}
	}
}
