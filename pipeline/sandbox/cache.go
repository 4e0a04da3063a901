package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A build cache carries orders: who can write an entry says what a later build is
// made of. So no command writes to a cache that outlives it, and there are two:
//
//   - the seed, one per repository, is kept. It holds what the toolchain makes of
//     itself and of the module cache, which are read-only both. It is filled by warm
//     alone, with commands that run nothing of the repository. Commands see it
//     read-only.
//   - the private cache is the workspace's. It begins as the seed, in links, and
//     each checkout throws away what a command, or code under test, left in it, as it
//     does with the scratch directory: nothing of that reaches a later commit.
//
// Without bubblewrap nothing of this protects: then commands are the worker's user.

// goCache is the go command's part of a cache; the layout is that of cmd/go/internal/cache.
const goCache = "go-build"

// maxSeed is the size at which a seed is begun anew.
const maxSeed = 4 << 30

// layCache makes the private cache and an empty scratch directory, unless there are
// ones that no command of an earlier checkout has seen. The caller holds the command
// lock.
func (w *worker) layCache() error {
	if w.laid {
		return nil
	}
	// What is old is removed later on, which takes as long as making the new.
	old, err := os.MkdirTemp(w.Dir, "old-")
	if err != nil {
		return fmt.Errorf("make a cache: %w", err)
	}
	w.copied = nil
	own := []string{w.private(), w.scratch(), w.copies()}
	for _, dir := range own {
		_ = os.Chmod(dir, 0o700) // what a command has shut does not let itself be moved
	}
	rest := filepath.Join(old, "kept")
	if os.Rename(filepath.Join(w.private(), goCache), rest) != nil { // a command has shut it, or there is none
		w.made = nil
	}
	for i, dir := range own {
		if err := os.Rename(dir, filepath.Join(old, strconv.Itoa(i))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("take a cache away: %w", err)
		}
		if dir == w.copies() {
			continue // they are made when there is something to copy
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("make a cache: %w", err)
		}
	}
	w.keepUntouched(rest)
	go func() { _ = removeTree(old) }() // the workspace's end removes what is left
	if err := w.linkSeed(); err != nil {
		return fmt.Errorf("seed a cache: %w", err)
	}
	w.laid, w.used = true, false
	return nil
}

// keepUntouched lets the new private cache begin as what is left of the last one, where there is a
// sandbox that ended all that wrote to it.
func (w *worker) keepUntouched(rest string) {
	made := w.made
	w.made = nil
	if made == nil || w.Unsafe {
		return
	}
	left, err := kept(rest, made)
	if err == nil && os.Rename(rest, filepath.Join(w.private(), goCache)) == nil {
		w.made = left
	}
}

// retire has the next command start with a new private cache, if any command has
// seen this one.
func (w *worker) retire() {
	if w.used {
		w.laid = false
	}
}

func (w *worker) private() string { return filepath.Join(w.Dir, "cache") }
func (w *worker) scratch() string { return filepath.Join(w.Dir, "tmp") }

// seen is the seed's directory as commands see it.
func (w *worker) seen() string {
	if w.Unsafe {
		return w.Seed
	}
	return boxSeed
}

// linkSeed fills the private cache with what it lacks of the seed. The small entries that
// name outputs are copied, so that they can be replaced; outputs are links to read-only
// files, which the go command leaves alone because their content is right.
func (w *worker) linkSeed() error {
	from, to := filepath.Join(w.Seed, goCache), filepath.Join(w.private(), goCache)
	if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// The go command would look through all of it for what is old.
	now := strconv.FormatInt(time.Now().Unix(), 10)
	if err := os.WriteFile(filepath.Join(to, "trim.txt"), []byte(now), 0o600); err != nil {
		return err
	}
	had, seen := w.made, w.seen()
	w.made = make(map[string]fileMark, len(had))
	dirMade := ""
	err := walkCache(from, func(dir, name string, _ fs.DirEntry) error {
		key := dir + "/" + name
		if was, ok := had[key]; ok {
			w.made[key] = was
			delete(had, key)
			return nil
		}
		if dir != dirMade {
			if err := os.Mkdir(filepath.Join(to, dir), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			dirMade = dir
		}
		if err := lay(filepath.Join(from, key), filepath.Join(to, key), filepath.Join(seen, goCache, key)); err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(to, key), &st); err != nil {
			return err
		}
		w.made[key] = markOf(&st)
		return nil
	})
	for key := range had { // the seed has it no more
		err = errors.Join(err, os.Remove(filepath.Join(to, key)))
	}
	return errors.Join(err, settle(w.made))
}

// lay makes an entry of the private cache: a copy of the seed's, or a link to what
// commands see of it.
func lay(from, to, seen string) error {
	if strings.HasSuffix(to, "-d") {
		return os.Symlink(seen, to)
	}
	entry, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, entry, 0o600)
}

// walkCache visits what has the name of an entry ("-a") or an output ("-d") of a Go
// build cache, directory by directory.
func walkCache(root string, visit func(dir, name string, d fs.DirEntry) error) error {
	dirs, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if !dir.IsDir() || len(dir.Name()) != 2 {
			continue
		}
		files, err := os.ReadDir(filepath.Join(root, dir.Name()))
		if err != nil {
			return err
		}
		for _, f := range files {
			if id, kind, _ := strings.Cut(f.Name(), "-"); len(id) != 64 || !isOID(id) || kind != "a" && kind != "d" {
				continue
			}
			if err := visit(dir.Name(), f.Name(), f); err != nil {
				return err
			}
		}
	}
	return nil
}

// promote keeps in the seed what the private cache has and the seed has not. The
// caller knows that only commands that run nothing of the repository have written
// to it. What the go command noted about directories of the work tree stays behind:
// it goes by file times, which are not ours to vouch for.
func (w *worker) promote() error {
	from, to := filepath.Join(w.private(), goCache), filepath.Join(w.Seed, goCache)
	if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("keep what was compiled: %w", err)
	}
	for _, kind := range []string{"-d", "-a"} { // an entry never comes before its output
		err := walkCache(from, func(dir, name string, d fs.DirEntry) error {
			if !strings.HasSuffix(name, kind) || !d.Type().IsRegular() {
				return nil
			}
			file, target := filepath.Join(from, dir, name), filepath.Join(to, dir, name)
			if _, err := os.Lstat(target); err == nil {
				return nil
			}
			if err := os.Mkdir(filepath.Join(to, dir), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			if kind == "-a" {
				return promoteEntry(file, target, to)
			}
			if ok, err := wholeOutput(file); err != nil || !ok {
				return err
			}
			if err := os.Rename(file, target); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(w.seen(), goCache, dir, name), file)
		})
		if err != nil {
			return fmt.Errorf("keep what was compiled: %w", err)
		}
	}
	return nil
}

// promoteEntry copies an entry whose output the seed has.
func promoteEntry(file, target, seed string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	field := strings.Fields(string(text))
	if len(field) != 5 || field[0] != "v1" || field[1]+"-a" != filepath.Base(file) || len(field[2]) != 64 || !isOID(field[2]) {
		return nil
	}
	info, err := os.Lstat(filepath.Join(seed, field[2][:2], field[2]+"-d"))
	if err != nil || !info.Mode().IsRegular() || strconv.FormatInt(info.Size(), 10) != field[3] {
		return nil
	}
	temp, err := os.CreateTemp(filepath.Dir(target), "new-")
	if err != nil {
		return err
	}
	_, err = temp.Write(text)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), target)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return err
}

// wholeOutput reports whether an output is what its name says, and of a kind that
// is kept.
func wholeOutput(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, 9)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return false, err
	}
	if string(head[:n]) == "go index " {
		return false, nil
	}
	sum := sha256.New()
	sum.Write(head[:n])
	if _, err := io.Copy(sum, f); err != nil {
		return false, err
	}
	return hex.EncodeToString(sum.Sum(nil))+"-d" == filepath.Base(file), nil
}

// seedSize is what a seed takes on the disk.
func seedSize(dir string) int64 {
	var total int64
	_ = walkCache(filepath.Join(dir, goCache), func(_, _ string, d fs.DirEntry) error {
		if info, err := d.Info(); err == nil {
			total += blocksOf(info)
		}
		return nil
	})
	return total
}
