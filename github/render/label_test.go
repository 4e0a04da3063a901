package render

import (
	"strings"
	"testing"

	"forge/github/render/rendertest"
)

// The label that starts a run and the word of the commands are settings apart.
func TestDebtNamesTheLabel(t *testing.T) {
	t.Parallel()
	v := Renderer{Run: rendertest.New(t).Run, Slug: "bot", Label: "autofix"}
	if _, body := v.Debt(); !strings.Contains(body, "Put the label `autofix` on this issue") {
		t.Errorf("the issue names another label: %s", body)
	}
}
