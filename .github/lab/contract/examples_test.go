package contract

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"forge/github/delivery"
	"forge/pipeline"
)

// examples returns GitHub's own example payloads by name.
func examples(t testing.TB) map[string][]byte {
	t.Helper()
	f, err := os.Open(top + "/../shared/github/webhook-examples.tar.gz")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("needs GitHub's examples in the folder shared/github beside the checkout")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(h.Name, ".json") || path.Base(h.Name) == "INDEX.json" {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[path.Base(path.Dir(h.Name))+"/"+path.Base(h.Name)] = data
	}
}

// All example payloads of GitHub can be read, each with an outcome in words.
func TestReadExamples(t *testing.T) {
	t.Parallel()
	kinds, n := map[pipeline.NoticeKind]int{}, 0
	for name, raw := range examples(t) {
		event, _, _ := strings.Cut(name, "/")
		got, err := delivery.Read(event, raw, delivery.Options{Label: "bug", Other: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Why == "" || got.Kind == "" {
			t.Errorf("%s: no outcome: %+v", name, got)
		}
		if f := got.Feedback; got.Kind == pipeline.NoticeFeedback && (f == nil || got.Actor.Login == "" || f.At.IsZero() && f.Event != "push") {
			t.Errorf("%s: a feedback without who or when: %+v %+v", name, got, f)
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
