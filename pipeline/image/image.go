// Package image keeps container images as directories, each of which can be the root of
// the sandbox's commands in the place of the server's own system.
//
// [Store.Get] pulls an image without a daemon from one of the registries that the server
// lists, unpacks it once, and finds it again by its digest. Nobody signs in: what a registry
// shows to everybody is what a repository can name. Nothing of an image is run here, and
// nothing in it leads out of its directory: no device, no owner, no rights beyond reading.
package image

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/singleflight"

	"forge/pipeline/registry"
)

// Limits of one image.
type Limits struct {
	Packed   int64         // bytes that are sent; 0: 4 GiB
	Unpacked int64         // bytes of its files; 0: 12 GiB
	Files    int           // 0: a million
	Time     time.Duration // to pull it; 0: 30 minutes
}

// Options make a store.
type Options struct {
	Dir    string           // of the images; whoever runs commands must reach it
	Hosts  []string         // registries that are asked, such as docker.io; none: no image is to be had
	Local  bool             // registries of this machine, too
	Limits Limits           //
	Now    func() time.Time // nil: time.Now
	Log    *slog.Logger
}

// Image is one that is unpacked.
type Image struct {
	Dir    string   // its root
	Digest string   // sha256:...
	Env    []string // KEY=value, as it has commands begin
}

// Store keeps images.
type Store struct {
	o     Options
	web   http.RoundTripper
	pulls singleflight.Group
}

const (
	fresh  = 24 * time.Hour      // how long a tag means what it meant
	unused = 14 * 24 * time.Hour // after which an image goes
)

// New makes a store.
func New(o Options) *Store {
	l := &o.Limits
	l.Packed, l.Unpacked = cmp.Or(l.Packed, 4<<30), cmp.Or(l.Unpacked, 12<<30)
	l.Files, l.Time = cmp.Or(l.Files, 1_000_000), cmp.Or(l.Time, 30*time.Minute)
	if o.Now == nil {
		o.Now = time.Now
	}
	web := http.DefaultTransport.(*http.Transport).Clone()
	if !o.Local {
		web.DialContext = registry.PublicDialer(net.DefaultResolver).DialContext
	}
	return &Store{o: o, web: web}
}

// RefusedError is why an image is not pulled, in words for whoever named it.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return e.Why }

// kept describes an image, and what a tag stands for.
type kept struct {
	Digest string    `json:"digest"`
	Env    []string  `json:"env"`
	At     time.Time `json:"at"` // when it was asked for at its registry
}

// Get returns an image, which is pulled unless it is there.
func (s *Store) Get(ctx context.Context, named string) (Image, error) {
	ref, err := name.ParseReference(named)
	if err != nil {
		return Image{}, &RefusedError{fmt.Sprintf("%.200q is no name of an image: write REGISTRY/NAME:TAG, such as docker.io/library/golang:1.26", named)}
	}
	host := ref.Context().RegistryStr()
	if host == name.DefaultRegistry {
		host = "docker.io"
	}
	if !slices.Contains(s.o.Hosts, host) {
		return Image{}, &RefusedError{fmt.Sprintf("images are not pulled from %s: the server's `image_registries` lists %s", host, strings.Join(s.o.Hosts, ", "))}
	}
	done := s.pulls.DoChan(ref.Name(), func() (any, error) {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), s.o.Limits.Time)
		defer stop()
		return s.get(ctx, ref)
	})
	select {
	case <-ctx.Done():
		return Image{}, ctx.Err()
	case r := <-done:
		found, _ := r.Val.(Image)
		return found, r.Err
	}
}

func (s *Store) get(ctx context.Context, ref name.Reference) (Image, error) {
	sum := sha256.Sum256([]byte(ref.Name()))
	note := filepath.Join(s.o.Dir, "names", hex.EncodeToString(sum[:16]))
	known, have := s.read(note)
	if _, pinned := ref.(name.Digest); have && (pinned || s.o.Now().Sub(known.At) < fresh) {
		return s.use(known), nil
	}
	now, err := s.pull(ctx, ref)
	var refused *RefusedError
	if err != nil && have && !errors.As(err, &refused) { // an older one is better than none
		s.o.Log.Warn("a registry did not answer; the image that was pulled before is used", "image", ref.Name(), "error", err)
		return s.use(known), nil
	}
	if err != nil {
		return Image{}, err
	}
	text, err := json.Marshal(now)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(note), 0o711), os.WriteFile(note, text, 0o600))
	}
	s.prune()
	return s.use(now), err
}

// read reads what a tag stands for, if that is still there.
func (s *Store) read(note string) (k kept, ok bool) {
	text, err := os.ReadFile(note)
	if err != nil || json.Unmarshal(text, &k) != nil {
		return k, false
	}
	_, err = os.Stat(s.dir(k.Digest))
	return k, err == nil
}

func (s *Store) dir(digest string) string {
	return filepath.Join(s.o.Dir, strings.ReplaceAll(filepath.Base(digest), ":", "-"))
}

func (s *Store) use(k kept) Image {
	now := s.o.Now()
	_ = os.Chtimes(s.dir(k.Digest), now, now)
	return Image{Dir: s.dir(k.Digest), Digest: k.Digest, Env: k.Env}
}

// prune removes images that were not used for a while, and what was cut off.
func (s *Store) prune() {
	entries, _ := os.ReadDir(s.o.Dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.Name() != "names" && s.o.Now().Sub(info.ModTime()) > unused {
			_ = os.RemoveAll(filepath.Join(s.o.Dir, e.Name()))
		}
	}
}

// pull asks a registry for an image, and unpacks it unless its files are there.
func (s *Store) pull(ctx context.Context, ref name.Reference) (kept, error) {
	found, err := remote.Image(ref, remote.WithContext(ctx), remote.WithTransport(s.web), remote.WithAuth(authn.Anonymous), remote.WithUserAgent("forge"),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		return kept{}, fmt.Errorf("ask for the image %s: %w", ref.Name(), err)
	}
	k := kept{At: s.o.Now()}
	manifest, err := found.Manifest()
	if err != nil {
		return k, fmt.Errorf("read the manifest of %s: %w", ref.Name(), err)
	}
	config, err := found.ConfigFile()
	if err != nil {
		return k, fmt.Errorf("read the settings of %s: %w", ref.Name(), err)
	}
	digest, err := found.Digest()
	if err != nil {
		return k, err
	}
	k.Digest, k.Env = digest.String(), config.Config.Env
	var packed int64
	for _, layer := range manifest.Layers {
		packed += layer.Size
	}
	if packed > s.o.Limits.Packed {
		return k, &RefusedError{fmt.Sprintf("the image %s has %d MB; at most %d are pulled", ref.Name(), packed>>20, s.o.Limits.Packed>>20)}
	}
	if _, err := os.Stat(s.dir(k.Digest)); err == nil {
		return k, nil
	}
	s.o.Log.Info("pulling an image", "image", ref.Context().Digest(k.Digest).Name(), "bytes", packed)
	if err := os.MkdirAll(s.o.Dir, 0o711); err != nil {
		return k, err
	}
	dir, err := os.MkdirTemp(s.o.Dir, "new-")
	if err != nil {
		return k, err
	}
	defer os.RemoveAll(dir)
	files := mutate.Extract(found)
	defer files.Close()
	if err := s.unpack(files, dir); err != nil {
		return k, fmt.Errorf("unpack the image %s: %w", ref.Name(), err)
	}
	err = errors.Join(os.Chmod(dir, 0o755), os.Rename(dir, s.dir(k.Digest)))
	if _, there := os.Stat(s.dir(k.Digest)); there == nil { // another process was quicker
		return k, nil
	}
	return k, err
}

// unpack writes files into a directory. Everybody may read them, and nobody write them.
func (s *Store) unpack(files io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	left, count := s.o.Limits.Unpacked, 0
	for r := tar.NewReader(files); ; {
		h, err := r.Next()
		if err == io.EOF { // as it also looks where a layer broke off: the stream itself says why
			_, err = io.Copy(io.Discard, files)
			return err
		}
		if err != nil {
			return err
		}
		if count++; count > s.o.Limits.Files {
			return &RefusedError{fmt.Sprintf("it has more than %d files", s.o.Limits.Files)}
		}
		if left -= h.Size; left < 0 {
			return &RefusedError{fmt.Sprintf("its files have more than %d MB", s.o.Limits.Unpacked>>20)}
		}
		at := path.Clean(strings.TrimPrefix(h.Name, "/"))
		if at == "." || at == ".." || strings.HasPrefix(at, "../") {
			continue
		}
		if err := put(root, at, h, r); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%.200s: %w", at, err)
		}
	}
}

// put writes one entry. Devices, pipes and the like are left out.
func put(root *os.Root, at string, h *tar.Header, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(at), 0o755); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(at, 0o755)
	case tar.TypeReg:
		mode := fs.FileMode(0o644)
		if h.Mode&0o111 != 0 {
			mode = 0o755
		}
		f, err := root.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Close())
	case tar.TypeSymlink:
		to := h.Linkname
		if path.IsAbs(to) { // so that it leads to the same place while this is not the root
			to = strings.Repeat("../", strings.Count(at, "/")) + cmp.Or(strings.TrimPrefix(path.Clean(to), "/"), ".")
		}
		return root.Symlink(to, at)
	case tar.TypeLink:
		return root.Link(path.Clean(strings.TrimPrefix(h.Linkname, "/")), at)
	}
	return nil
}
