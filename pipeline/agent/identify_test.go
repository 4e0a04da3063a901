package agent

import (
	"testing"

	"forge/pipeline"
)

// Covers lessons 2, 25: the same finding reported twice is one; the same words
// about the same code at another place are another.
func TestIdentify(t *testing.T) {
	t.Parallel()
	f := pipeline.Finding{Severity: pipeline.SeverityError, File: "a.go", Line: 3, Code: "f.Close()", Message: "The error of Close is ignored", Confidence: 0.5}
	worse, line, file := f, f, f
	worse.Severity, worse.Confidence, line.Line, file.File = pipeline.SeverityCritical, 0.9, 30, "b.go"
	got := identify([]pipeline.Finding{f, worse, line, file})
	if len(got) != 3 || got[0].Severity != pipeline.SeverityCritical || got[0].Confidence != 0.9 || got[1].Line != 30 || got[2].File != "b.go" || got[2].ID != "F3" {
		t.Errorf("got %+v, want three: one worse, one at another line, one in another file", got)
	}
}
