package phase

import (
	"strings"
	"testing"

	"forge/pipeline"
)

func TestSubjects(t *testing.T) {
	for _, c := range []struct {
		template, title, summary string
		mode                     pipeline.Mode
		want                     string
	}{
		{"{summary}", "The greeting lacks its comma", "Greet with a comma", "", "Greet with a comma"},
		{"{type}: {summary}", "The greeting lacks its comma", "Greet with a comma.", "", "fix: greet with a comma"},
		{"{type}: {summary}", "Greet in French, too", "Greet in French", "", "feat: greet in French"},
		{"{type}: {summary}", "Greet in French, too", "Mend the accent", pipeline.ModeFixFindings, "fix: mend the accent"},
		{"{type}: {summary}", "A typo in the README", "README.md says how", "", "docs: README.md says how"},
		{"{type}: {summary}", "Make it faster", "HTTP answers are kept", "", "perf: HTTP answers are kept"},
		{"{type}: {summary}", "Anything", "refactor(api)!: drop v1", "", "refactor(api)!: drop v1"},
		{"{type}({issue}): {summary}", "Anything", "fix(core)!: break it", "", "fix(7)!: break it"},
		{"{type}({issue}): {summary}", "Anything", "fix(core): mend it", "", "fix(7): mend it"},
		{"[{type}] {summary}", "Anything", "fix(core)!: break it", "", "[fix] break it"},
		{"[#{issue}] {summary}", "Anything", "Do it", "", "[#7] Do it"},
	} {
		if got := fill(c.template, pipeline.Task{Issue: 7, Title: c.title}, c.mode, c.summary); got != c.want {
			t.Errorf("fill(%q, %q, %q) = %q, want %q", c.template, c.title, c.summary, got, c.want)
		}
	}
}

func TestConventionalRepositories(t *testing.T) {
	for _, c := range []struct {
		subjects string
		want     bool
	}{
		{"", false},
		{"feat: a|fix(x): b", false}, // too few to tell
		{"feat: a|fix(x): b|chore!: c", true},
		{"feat: a|fix(x): b|Merge it|chore: d|build(deps): bump x", true},
		{"Add a|Fix: b|feat c|cmd/go: say why", false},
	} {
		var list []string
		if c.subjects != "" {
			list = strings.Split(c.subjects, "|")
		}
		if got := isConventional(list); got != c.want {
			t.Errorf("isConventional(%q) = %v", c.subjects, got)
		}
	}
}

func TestBranchNames(t *testing.T) {
	task := pipeline.Task{Issue: 7, Title: "The greeting lacks its comma"}
	for template, want := range map[string]string{
		"":                            "forge/issue-7-the-greeting-lacks-its-comma",
		"forge/{type}/{issue}-{slug}": "forge/fix/7-the-greeting-lacks-its-comma",
		"forge/{issue}":               "forge/7",
	} {
		if got := BranchName("forge", template, task); got != want {
			t.Errorf("BranchName(%q) = %q, want %q", template, got, want)
		}
	}
	if got := BranchName("forge", "", pipeline.Task{Issue: 7, Title: "…"}); got != "forge/issue-7-task" {
		t.Errorf("a title without words: %q", got)
	}
	if got := BranchName("forge", "", pipeline.Task{Issue: 7, Title: "Take ghp_" + strings.Repeat("a1B2", 9) + " out"}); got != "forge/issue-7-take-secret-out" {
		t.Errorf("a title with a token: %q", got)
	}
}
