package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// removeDepth is how many directories are open at the same time while a tree is removed.
const removeDepth = 32

// openNoFollow opens a directory that is one, and no link to one.
func openNoFollow(at int, name string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// removeTree removes what commands left, however deep it is and whatever permissions
// they took away in it. It follows no link, and has few descriptors open: what lies
// deeper is moved to the top first.
func removeTree(dir string) error {
	parent, err := os.Open(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := removeAt(parent, filepath.Base(dir), nil, 0); err != nil && !errors.Is(err, fs.ErrNotExist) { // somebody else removes it, too
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}

// removeAt removes an entry of a directory. top is that of the whole tree, nil for the
// tree itself.
func removeAt(parent *os.File, name string, top *os.File, depth int) error {
	at := int(parent.Fd())
	err := unix.Unlinkat(at, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return err
	}
	if gone := unix.Unlinkat(at, name, unix.AT_REMOVEDIR); gone == nil || errors.Is(gone, unix.ENOENT) {
		return nil
	} else if errors.Is(gone, unix.ENOTDIR) {
		return err // a file that may not be removed
	}
	dir, err := openToRemove(at, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	if depth == removeDepth {
		return unix.Renameat(at, name, int(top.Fd()), "deep-"+rand.Text())
	}
	if top == nil {
		top = dir
	}
	for {
		// Entries that come while it is read, from below, are seen by the next reading.
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
		names, err := dir.Readdirnames(-1)
		if err != nil {
			return err
		}
		for _, n := range names {
			if err := removeAt(dir, n, top, depth+1); err != nil {
				return err
			}
		}
		if err := unix.Unlinkat(at, name, unix.AT_REMOVEDIR); !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
	}
}
