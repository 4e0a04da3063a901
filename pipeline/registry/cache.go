package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// entry is what the cache knows of one address.
type entry struct {
	URL    string    `json:"url"`
	Status int       `json:"status"` // 200, or 404 and 410 for what is not there
	Digest string    `json:"digest,omitempty"`
	Size   int64     `json:"size,omitempty"`
	Type   string    `json:"type,omitempty"`
	At     time.Time `json:"at"`
}

// cache keeps files by their content and addresses by their digest, in a directory
// that is the server's alone:
//
//	sha256/ab/abcdef…   contents, named by their SHA-256
//	address/ab/abcdef…  one entry per address, which names a content
//	file/KEY            the address of a file that a document named
type cache struct {
	dir string
	max int64 // bytes of contents
}

func openCache(dir string, max int64) (*cache, error) {
	for _, d := range []string{dir, filepath.Join(dir, "sha256"), filepath.Join(dir, "address"), filepath.Join(dir, "file"), filepath.Join(dir, "new")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("make the registries' cache: %w", err)
		}
	}
	// Downloads that a crash cut off.
	left, err := os.ReadDir(filepath.Join(dir, "new"))
	if err != nil {
		return nil, fmt.Errorf("open the registries' cache: %w", err)
	}
	for _, f := range left {
		if err := os.Remove(filepath.Join(dir, "new", f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("open the registries' cache: %w", err)
		}
	}
	return &cache{dir: dir, max: max}, nil
}

func digestOf(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func (c *cache) content(digest string) string {
	return filepath.Join(c.dir, "sha256", digest[:2], digest)
}

func (c *cache) address(key string) string { return filepath.Join(c.dir, "address", key[:2], key) }

// find returns what is known of an address. What was changed on the disk is not known.
func (c *cache) find(key string) (entry, bool) {
	var e entry
	text, err := os.ReadFile(c.address(key))
	if err != nil || json.Unmarshal(text, &e) != nil {
		return entry{}, false
	}
	if e.Digest == "" {
		return e, e.Status != 200
	}
	if len(e.Digest) != 64 {
		return entry{}, false
	}
	info, err := os.Stat(c.content(e.Digest))
	return e, err == nil && info.Size() == e.Size
}

// keep stores what a reader gives, at most max bytes, under an address.
func (c *cache) keep(key string, e entry, r io.Reader, max int64) (entry, error) {
	if r != nil {
		f, err := os.CreateTemp(filepath.Join(c.dir, "new"), "")
		if err != nil {
			return e, err
		}
		defer os.Remove(f.Name())
		sum := sha256.New()
		e.Size, err = io.Copy(io.MultiWriter(f, sum), io.LimitReader(r, max+1))
		if err = errors.Join(err, f.Close()); err != nil {
			return e, err
		}
		if e.Size > max {
			return e, fmt.Errorf("more than %d bytes", max)
		}
		e.Digest = hex.EncodeToString(sum.Sum(nil))
		if err := os.MkdirAll(filepath.Dir(c.content(e.Digest)), 0o700); err != nil {
			return e, err
		}
		if err := os.Rename(f.Name(), c.content(e.Digest)); err != nil {
			return e, err
		}
	}
	text, err := json.Marshal(e)
	if err != nil {
		return e, err
	}
	return e, c.put(c.address(key), text)
}

// put replaces a small file at once.
func (c *cache) put(name string, text []byte) error {
	f, err := os.CreateTemp(filepath.Join(c.dir, "new"), "")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// open returns a content, after a look whether it still is what its name says.
func (c *cache) open(e entry) (*os.File, error) {
	f, err := os.Open(c.content(e.Digest))
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != e.Digest {
		err = fmt.Errorf("the cache's content %s was changed on the disk", e.Digest[:12])
		_ = os.Remove(f.Name())
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	now := time.Now()
	_ = os.Chtimes(f.Name(), now, now) // used: prune takes the oldest
	return f, nil
}

// named is the address of a file that a registry's document named.
type named struct {
	URL      string `json:"url"`
	Registry string `json:"registry"` // whose document it was
}

// remember keeps an address, and returns the key that clients know it by.
func (c *cache) remember(n named) (string, error) {
	key := digestOf(n.URL, n.Registry)[:32]
	name := filepath.Join(c.dir, "file", key)
	now := time.Now()
	if err := os.Chtimes(name, now, now); err == nil { // used: pruneNames takes the old ones
		return key, nil
	}
	text, err := json.Marshal(n)
	if err != nil {
		return "", err
	}
	return key, c.put(name, text)
}

func (c *cache) recall(key string) (named, bool) {
	var n named
	text, err := os.ReadFile(filepath.Join(c.dir, "file", key))
	return n, err == nil && json.Unmarshal(text, &n) == nil
}

// prune removes the contents that were not used for the longest time, until the
// rest fits. Addresses that name one of them are asked for again.
func (c *cache) prune() error {
	type item struct {
		path string
		size int64
		used time.Time
	}
	var all []item
	var total int64
	err := filepath.WalkDir(filepath.Join(c.dir, "sha256"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil // removed meanwhile
		}
		all = append(all, item{path, info.Size(), info.ModTime()})
		total += info.Size()
		return nil
	})
	if err != nil {
		return fmt.Errorf("prune the registries' cache: %w", err)
	}
	slices.SortFunc(all, func(a, b item) int { return a.used.Compare(b.used) })
	for _, it := range all {
		if total <= c.max {
			return nil
		}
		if err := os.Remove(it.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("prune the registries' cache: %w", err)
		}
		total -= it.size
	}
	return nil
}

// keepNames is for how long it is known where something lies that nobody asks for.
const keepNames = 60 * 24 * time.Hour

// pruneNames removes the small files that say where something lies, of before a time; what
// is asked for again makes them anew.
func (c *cache) pruneNames(before time.Time) error {
	for _, kind := range []string{"address", "file", "new"} {
		err := filepath.WalkDir(filepath.Join(c.dir, kind), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			if info, err := d.Info(); err != nil || !info.ModTime().Before(before) {
				return nil // in use, or removed meanwhile
			}
			return os.Remove(path)
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("prune what is known of registries: %w", err)
		}
	}
	return nil
}
