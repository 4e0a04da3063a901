package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
	"forge/pipeline/text"
)

// Covers D5: what holds for a directory goes before what holds for the repository,
// and a directory that nothing is done in has no say.
func TestInstructionPaths(t *testing.T) {
	t.Parallel()
	tree := []string{"AGENTS.md", "CONTRIBUTING.md", ".github/copilot-instructions.md", "a/AGENTS.md", "a/CLAUDE.md", "a/b/AGENTS.md", "c/AGENTS.md", "a/b/x.go", "README.md"}
	for _, tt := range []struct {
		touched string
		want    string
	}{
		{"", "AGENTS.md .github/copilot-instructions.md CONTRIBUTING.md"},
		{"a/b/x.go", "a/b/AGENTS.md a/AGENTS.md a/CLAUDE.md AGENTS.md .github/copilot-instructions.md CONTRIBUTING.md"},
		{"c/new.go README.md ../../etc/x", "c/AGENTS.md AGENTS.md .github/copilot-instructions.md CONTRIBUTING.md"},
	} {
		if got := strings.Join(InstructionPaths(tree, strings.Fields(tt.touched)), " "); got != tt.want {
			t.Errorf("for %q: %s, want %s", tt.touched, got, tt.want)
		}
	}
}

// Covers D5: instructions keep to their share, each once, and a cut one says so.
func TestInstructionsShare(t *testing.T) {
	t.Parallel()
	j := Job{Run: newRun(), Instructions: []Doc{
		{"a/AGENTS.md", strings.Repeat("a line of it\n", 1000)}, {"AGENTS.md", strings.Repeat("another line\n", 1000)}, {"CLAUDE.md", "<!-- hidden -->\n"}, {"CONTRIBUTING.md", "never reached\n"}}}
	size := 0
	docs := j.used()
	for _, d := range docs {
		size += len(d.Text)
	}
	if size > maxInstructions+200 || len(docs) != 2 {
		t.Errorf("%d documents of %d bytes, want two of at most %d", len(docs), size, maxInstructions)
	}
	if d := cmp.Diff([]string{"a/AGENTS.md", "AGENTS.md"}, j.InstructionsUsed()); d != "" {
		t.Errorf("used (-want +got):\n%s", d)
	}
	if got := docs[1].Text; !strings.HasSuffix(got, "of 13 KiB of AGENTS.md]") {
		t.Errorf("the cut document ends in %q", got[len(got)-80:])
	}
}

// A map of 3,000 files fits into 2,000 tokens, with every directory in it or in the
// count of one that is folded.
func TestRepoMap(t *testing.T) {
	t.Parallel()
	var paths []string
	for i := range 3000 {
		paths = append(paths, fmt.Sprintf("services/s%02d/internal/part%d/file_%d.go", i%20, i%7, i))
	}
	paths = append(paths, "README.md", "cmd/tool/main.go", "cmd/tool/main_test.go", "docs/a b.md")
	got := repoMap(paths, maxMap)
	if n := tokens(len(got)); n > 2000 {
		t.Errorf("the map takes %d tokens", n)
	}
	for _, want := range []string{"README.md\n", "cmd/\n  tool/\n    main.go main_test.go\n", "docs/\n  a b.md\n", "services/\n", "  s00/", "  s19/", "part6/ (22 files: 22 .go)"} {
		if !strings.Contains(got, want) {
			t.Errorf("the map lacks %q:\n%s", want, got)
		}
	}
	if small := repoMap([]string{"a.go", "b/c.go"}, maxMap); small != "a.go\nb/\n  c.go\n" {
		t.Errorf("a small map is %q", small)
	}
	var flat []string
	for i := range 3000 {
		flat = append(flat, fmt.Sprintf("f%d.txt", i))
	}
	if got := repoMap(flat, maxMap); len(got) > maxMap || !strings.Contains(got, "cut here by Forge") {
		t.Errorf("a flat repository has a map of %d bytes, without a word about what is cut", len(got))
	}
	if repoMap(nil, maxMap) != "" {
		t.Error("nothing has a map")
	}
}

// An issue of 200 KB is cut with a word that says so.
func TestLongTask(t *testing.T) {
	t.Parallel()
	run := newRun()
	run.Task.Body = strings.Repeat("A sentence of the issue.\n", 8192)
	p := newAgent(t, "tape:x", modelFunc(nil)).phase(Job{Run: run}, pipeline.PhasePlan)
	got := p.prompt().task().String()
	if len(got) > maxTask+500 || !strings.Contains(got, "[cut here by Forge: the first 32 KiB of 200 KiB of the task]") {
		t.Errorf("the task takes %d bytes and ends in %q", len(got), got[len(got)-200:])
	}
}

// How an issue stands to others is in the planner's prompt as data, and nothing where it
// stands alone.
func TestRelated(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		related []string
		want    bool
	}{{nil, false}, {[]string{"open sub-issue #4 Greet in French"}, true}} {
		p := newAgent(t, "tape:x", modelFunc(nil)).phase(Job{Run: newRun(), Related: tt.related}, pipeline.PhasePlan)
		if got := p.prompt().related().String(); (got != "") != tt.want || tt.want && !strings.Contains(got, "open sub-issue #4") {
			t.Errorf("%q: %q", tt.related, got)
		}
	}
}

// The newest comments are kept, and what is left out is counted. Covers D5.
func TestComments(t *testing.T) {
	t.Parallel()
	j := Job{Run: newRun()}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 40 {
		j.Comments = append(j.Comments, Comment{By: "ann", At: at.Add(time.Duration(i) * time.Hour), Text: fmt.Sprintf("comment %d %s", i, strings.Repeat("x", 1000))})
	}
	p := newAgent(t, "tape:x", modelFunc(nil)).phase(j, pipeline.PhasePlan)
	got := p.prompt().comments().String()
	if len(got) > maxComments+1000 || !strings.Contains(got, "comment 39 ") || strings.Contains(got, "comment 5 ") || !strings.Contains(got, "older comments are left out]") {
		t.Errorf("%d bytes:\n%s", len(got), text.ClipBytes(got, 400))
	}
	if strings.Index(got, "comment 38 ") > strings.Index(got, "comment 39 ") {
		t.Error("the newest is not last")
	}
}
