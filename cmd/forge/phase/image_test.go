package phase

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"forge/pipeline/config"
	"forge/pipeline/image"
	"forge/pipeline/needs"
)

// Covers D1: where the settings name an image, set-up and commands see its system, pulled from
// its registry once; what cannot be had is said, and the server's own is seen.
func TestImageOfSettings(t *testing.T) {
	needs.Sandbox(t)
	b := sandboxed(t, map[string]string{".gitignore": "made\n", ".nvmrc": "99\n"})
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := errors.Join(w.AddFS(os.DirFS(needs.System(t, b.dir, "sh", "cat", "head", "mkdir", "ln"))), w.Close()); err != nil {
		t.Fatal(err)
	}
	hub := httptest.NewServer(registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, 0))))
	defer hub.Close()
	host := strings.TrimPrefix(hub.URL, "http://")
	one, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, one)
	if err == nil {
		img, err = mutate.Config(img, v1.Config{Env: []string{"PATH=/opt/tool/bin:/usr/bin:/bin"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(host + "/tools:1")
	if err == nil {
		err = remote.Write(ref, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.o.Images = image.New(image.Options{Dir: filepath.Join(b.dir, "images"), Hosts: []string{host}, Local: true, Log: b.o.Log}).Get
	b.run.Base = b.shas[0]
	b.run.Config.Setup = config.Setup{Image: host + "/tools:1", Commands: []string{"tool > made"}}
	ws := b.open(b.shas[0])
	if got := b.sees(ws, "cat made /etc/image-release; tool; command -v git || echo none"); got != "tool\nminiature\ntool\nnone" {
		t.Errorf("commands see %q; told %s", got, b.toldOf(b.shas[0]))
	}
	for named, want := range map[string]string{
		host + "/other:1": "commands see the server's own system, not that of setup.image: ask for the image", "evil.example/x": "images are not pulled from evil.example",
	} {
		b.run.Config.Setup.Image = named
		if got := b.sees(b.open(b.shas[0]), "cat /etc/image-release; tool"); !strings.Contains(got, "No such file") || !strings.Contains(b.toldOf(b.shas[0]), want) {
			t.Errorf("%s: commands see %q; told %s", named, got, b.toldOf(b.shas[0]))
		}
	}
	b.o.Images = nil
	b.Close(b.run.ID)
	if b.open(b.shas[0]); !strings.Contains(b.toldOf(b.shas[0]), "this server pulls no images") {
		t.Errorf("told %s", b.toldOf(b.shas[0]))
	}
}
