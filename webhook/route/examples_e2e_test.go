//go:build e2e

package route

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
)

// examples returns GitHub's own example payloads by name.
func examples(t testing.TB) map[string][]byte {
	t.Helper()
	f, err := os.Open("../../../shared/github/webhook-examples.tar.gz")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("needs GitHub's webhook examples: ../../../shared/github/webhook-examples.tar.gz")
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
		if !strings.HasSuffix(h.Name, ".json") {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[path.Base(path.Dir(h.Name))+"/"+path.Base(h.Name)] = data
	}
}

func TestReadsGitHubsExamples(t *testing.T) {
	t.Parallel()
	withRepo := 0
	for name, payload := range examples(t) {
		action, repo := Read(payload)
		if a, r := slowRoute(payload); a != action || r != repo {
			t.Errorf("%s: got %q, %q; want %q, %q", name, action, repo, a, r)
		}
		if repo != "" {
			withRepo++
		}
	}
	if withRepo < 50 {
		t.Errorf("only %d examples with a repository", withRepo)
	}
}
