//go:build e2e

package delivery

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"forge/pipeline"
)

// All example payloads of GitHub can be read, each with an outcome in words.
func TestReadExamples(t *testing.T) {
	t.Parallel()
	f, err := os.Open("../../../shared/github/webhook-examples.tar.gz")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("needs the contract files: ../shared/github/webhook-examples.tar.gz")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	kinds, n := map[pipeline.NoticeKind]int{}, 0
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		event := filepath.Base(filepath.Dir(h.Name))
		if h.Typeflag != tar.TypeReg || filepath.Ext(h.Name) != ".json" || filepath.Base(h.Name) == "INDEX.json" {
			continue
		}
		raw, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read(event, raw, Options{Label: "bug", Other: true})
		if err != nil {
			t.Errorf("%s: %v", h.Name, err)
			continue
		}
		if got.Why == "" || got.Kind == "" {
			t.Errorf("%s: no outcome: %+v", h.Name, got)
		}
		if f := got.Feedback; got.Kind == pipeline.NoticeFeedback && (f == nil || got.Actor.Login == "" || f.At.IsZero() && f.Event != "push") {
			t.Errorf("%s: a feedback without who or when: %+v %+v", h.Name, got, f)
		}
		kinds[got.Kind]++
		n++
	}
	if n < 170 {
		t.Errorf("examples read: %d, want all 175", n)
	}
	for _, k := range []pipeline.NoticeKind{pipeline.NoticeNone, pipeline.NoticeStart, pipeline.NoticeUnlabelled, pipeline.NoticeIssueClosed, pipeline.NoticeInstallation,
		pipeline.NoticeBaseMoved, pipeline.NoticeIssueReopened, pipeline.NoticeFeedback} {
		if kinds[k] == 0 {
			t.Errorf("no example became a notice of kind %s: %v", k, kinds)
		}
	}
}
