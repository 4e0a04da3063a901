package image

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// hub is a registry on this machine.
type hub struct {
	t     *testing.T
	host  string
	asked atomic.Int32
	down  atomic.Bool
	cuts  atomic.Bool // what is sent breaks off
}

func newHub(t *testing.T) *hub {
	h := &hub{t: t}
	serve := registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, 0)))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.asked.Add(1)
		if h.down.Load() {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		if h.cuts.Load() && strings.Contains(r.URL.Path, "/blobs/") {
			w = short{w}
		}
		serve.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	h.host = strings.TrimPrefix(web.URL, "http://")
	return h
}

// short sends only the beginning of what is large.
type short struct{ http.ResponseWriter }

func (s short) Write(p []byte) (int, error) {
	if len(p) < 10<<10 {
		return s.ResponseWriter.Write(p)
	}
	_, _ = s.ResponseWriter.Write(p[:len(p)/2])
	panic(http.ErrAbortHandler)
}

// push puts an image of some layers under a name.
func (h *hub) push(named string, layers ...[]tar.Header) string {
	h.t.Helper()
	img := v1.Image(empty.Image)
	for _, entries := range layers {
		var buf bytes.Buffer
		w := tar.NewWriter(&buf)
		for _, e := range entries {
			content := e.Uname // what a test's file says
			e.Uname, e.Size = "", int64(len(content))
			if err := w.WriteHeader(&e); err != nil {
				h.t.Fatal(err)
			}
			_, _ = io.WriteString(w, content)
		}
		if err := w.Close(); err != nil {
			h.t.Fatal(err)
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
		if err != nil {
			h.t.Fatal(err)
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			h.t.Fatal(err)
		}
	}
	img, err := mutate.Config(img, v1.Config{Env: []string{"PATH=/opt/go/bin:/usr/bin", "GO=1"}})
	if err != nil {
		h.t.Fatal(err)
	}
	ref, err := name.ParseReference(h.host + "/" + named)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		h.t.Fatal(err)
	}
	return h.host + "/" + named
}

func file(name, content string, mode int64) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Uname: content}
}

func link(name, to string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}
}

func (h *hub) store(now *time.Time, l Limits) *Store {
	return New(Options{Dir: filepath.Join(h.t.TempDir(), "images"), Hosts: []string{h.host}, Local: true, Limits: l, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return *now }})
}

// Covers D1: an image is pulled once, found again while its tag means it, and there while its
// registry is away.
func TestGet(t *testing.T) {
	t.Parallel()
	h, now := newHub(t), time.Now()
	s := h.store(&now, Limits{})
	named := h.push("app/tools:1", []tar.Header{
		file("usr/bin/tool", "old", 0o755), file("etc/shadow", "x", 0), link("bin", "usr/bin"), link("var/run", "/run"), file("gone.txt", "x", 0o644),
	}, []tar.Header{file("usr/bin/tool", "new", 0o755), file(".wh.gone.txt", "", 0), file("run/pid", "1", 0o644), {Name: "run", Typeflag: tar.TypeDir, Mode: 0o700}})
	got, err := s.Get(t.Context(), named)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"bin/tool": "new", "etc/shadow": "x", "var/run/pid": "1"} {
		if text, err := os.ReadFile(filepath.Join(got.Dir, name)); err != nil || string(text) != want {
			t.Errorf("%s = %q, %v; want %q", name, text, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(got.Dir, "gone.txt")); err == nil {
		t.Error("a file that a later layer takes away is there")
	}
	if len(got.Env) != 2 || !strings.HasPrefix(got.Digest, "sha256:") {
		t.Errorf("%+v", got)
	}
	again := func(want int32, same bool) {
		t.Helper()
		before := h.asked.Load()
		i, err := s.Get(t.Context(), named)
		if err != nil || (i.Dir == got.Dir) != same || (h.asked.Load() > before) != (want > 0) {
			t.Errorf("again: %+v, %v, after %d requests", i, err, h.asked.Load()-before)
		}
	}
	again(0, true)
	now = now.Add(fresh + time.Minute)
	again(1, true)
	h.push("app/tools:1", []tar.Header{file("usr/bin/tool", "newer", 0o755)})
	again(0, true)
	h.down.Store(true)
	now = now.Add(fresh + time.Minute)
	again(1, true)
	h.down.Store(false)
	again(1, false)
}

// Covers D1: an image that breaks off while it is pulled is no image, and is pulled again.
func TestCutOff(t *testing.T) {
	t.Parallel()
	h, now := newHub(t), time.Now()
	s := h.store(&now, Limits{})
	noise := make([]byte, 64<<10)
	rand.Read(noise)
	named := h.push("large", []tar.Header{file("a", "x", 0o644), file("noise", string(noise), 0o644)})
	h.cuts.Store(true)
	if got, err := s.Get(t.Context(), named); err == nil {
		t.Errorf("half an image is taken: %+v", got)
	}
	h.cuts.Store(false)
	got, err := s.Get(t.Context(), named)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(got.Dir, "noise")); err != nil || string(text) != string(noise) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// Covers D1 and S7: what an image cannot do, and who may name which.
func TestRefused(t *testing.T) {
	t.Parallel()
	h, now := newHub(t), time.Now()
	s := h.store(&now, Limits{Packed: 1 << 20, Unpacked: 2 << 20, Files: 20})
	many := make([]tar.Header, 30)
	for i := range many {
		many[i] = file(strings.Repeat("x", i+1), "", 0o644)
	}
	for named, want := range map[string]string{
		"Not A Name":         "is no name of an image",
		"evil.example/x:1":   "images are not pulled from evil.example",
		h.host + "/none:1":   "ask for the image",
		"golang:1.26":        "images are not pulled from docker.io",
		h.push("many", many): "more than 20 files",
		h.push("large", []tar.Header{file("zeros", strings.Repeat("\x00", 3<<20), 0o644)}): "more than 2 MB",
	} {
		var refused *RefusedError
		_, err := s.Get(t.Context(), named)
		if err == nil || !strings.Contains(err.Error(), want) || errors.As(err, &refused) == strings.HasPrefix(want, "ask") {
			t.Errorf("%s: %v, want %q", named, err, want)
		}
	}
	private := New(Options{Dir: filepath.Join(t.TempDir(), "images"), Hosts: []string{h.host}, Log: slog.New(slog.DiscardHandler)})
	if _, err := private.Get(t.Context(), h.host+"/many"); err == nil || !strings.Contains(err.Error(), "is not a public address") {
		t.Errorf("a registry that is listed and has a private address: %v", err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	got, err := s.Get(t.Context(), h.push("sly", []tar.Header{
		link("up", "../../../.."), link("root", "/"), link("host", outside), file("usr/bin/su", "x", 0o4755),
		{Name: "dev/sda", Typeflag: tar.TypeBlock, Devmajor: 8}, {Name: "pipe", Typeflag: tar.TypeFifo},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(got.Dir, "usr/bin/su")); err != nil {
		t.Error(err)
	} else if info.Mode() != 0o755 {
		t.Errorf("a program with rights of its owner: %v", info.Mode())
	}
	for _, name := range []string{"dev/sda", "pipe"} {
		if _, err := os.Lstat(filepath.Join(got.Dir, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	if to, err := os.Readlink(filepath.Join(got.Dir, "host")); err != nil || filepath.IsAbs(to) {
		t.Errorf("a link leads to %s, %v", to, err)
	}
	if _, err := s.Get(t.Context(), h.push("out", []tar.Header{file("first", "x", 0o644), file("../escaped", "x", 0o644)})); err == nil {
		t.Error("a name that leads out is taken")
	}
	if _, err := s.Get(t.Context(), h.push("through", []tar.Header{link("up", outside), file("up/x", "x", 0o644)})); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("something was written outside")
	}
	left, _ := filepath.Glob(filepath.Join(s.o.Dir, "new-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
