package demo

import (
	"strings"
	"testing"

	"forge/github/githubtest"
	"forge/pipeline/agent/agenttest"
)

// Each story has a repository, an issue of it, and a tape that can be read.
func TestStories(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		story       Story
		title, file string
	}{{Loop, "Wrong totals", "go.mod"}, {Own, "Wrong totals", "discount_test.go"}, {Modules, "Invoices", ".github/forge.yml"}} {
		gh, err := githubtest.New(githubtest.Options{Dir: t.TempDir(), Manifest: Manifest()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { gh.Close() })
		n, err := tt.story.Repository(gh)
		if err != nil {
			t.Fatal(err)
		}
		issue, err := gh.Issue("acme/cart", n)
		if err != nil || !strings.Contains(issue.Title, tt.title) || issue.Body == "" {
			t.Errorf("%v: %+v", err, issue)
		}
		if text, err := gh.File("acme/cart", "main", tt.file); err != nil || text == "" {
			t.Errorf("%s: %q, %v", tt.file, text, err)
		}
		if tt.story.Tape() == nil {
			continue
		}
		models, err := agenttest.NewServer(tt.story.Tape())
		if err != nil {
			t.Fatal(err)
		}
		models.Close()
	}
}
