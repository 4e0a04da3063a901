package render

import (
	"fmt"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/role"
)

// Covers S8: what a role wrote mentions nobody, closes no fold, and is short; one of an
// earlier task is not shown.
func TestArtefacts(t *testing.T) {
	t.Parallel()
	a := role.Artefact{Role: role.UX, Body: "Ask @octocat </details> <!-- x -->"}
	for i := range role.MaxItems {
		a.Items = append(a.Items, role.Item{ID: fmt.Sprintf("UI%d", i+1), Kind: role.Screen, Text: "closes #1 </details> " + strings.Repeat("word ", 200)})
	}
	stale := role.Artefact{Role: role.Analyst, Body: "of before", Stale: true}
	v := Renderer{Run: &pipeline.Run{Artefacts: []role.Artefact{a, stale}}, Host: "github.com"}
	got := v.artefacts()
	for _, never := range []string{" @octocat", "<!--", "of before"} {
		if strings.Contains(got, never) {
			t.Errorf("%q is shown in\n%s", never, got)
		}
	}
	if strings.Count(got, "</details>") != 1 || !strings.Contains(got, "and 45 more") || len(got) > 8000 ||
		!strings.Contains(got, "designer of the user interface") {
		t.Errorf("%d bytes:\n%s", len(got), got)
	}
	if (Renderer{Run: &pipeline.Run{}}).artefacts() != "" {
		t.Error("without artefacts there is a section")
	}
}
