package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A private cache has thousands of entries, and making a file takes many times as long as
// looking at one. So what of it no command has touched since it was made serves the next
// checkout. The kernel says so: whatever is done to a file, to what it says, to its
// times, owner or links, sets the time of its change, and nobody can set that time back.

// fileMark is what tells that a file is as it was made.
type fileMark struct {
	inode   uint64
	changed unix.Timespec
}

func markOf(st *unix.Stat_t) fileMark { return fileMark{st.Ino, st.Ctim} }

// before reports whether the fileMark is from before a time.
func (p fileMark) before(t unix.Timespec) bool {
	return p.changed.Sec < t.Sec || p.changed.Sec == t.Sec && p.changed.Nsec < t.Nsec
}

// kept removes from a Go build cache, which no process uses, whatever is not as it was
// made, and returns the names of what is. It follows no link. An error means that it
// cannot be told.
func kept(root string, made map[string]fileMark) (map[string]fileMark, error) {
	top, err := openCacheDir(unix.AT_FDCWD, root)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	out := make(map[string]fileMark, len(made))
	dirs, err := top.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	for _, name := range dirs {
		if !isCacheDir(name) {
			if err := removeTree(filepath.Join(root, name)); err != nil {
				return nil, err
			}
			continue
		}
		dir, err := openCacheDir(int(top.Fd()), name)
		if err != nil {
			return nil, err // a command has put something else there, or has shut it
		}
		err = keptIn(dir, name, made, out)
		dir.Close()
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keptIn is kept for one of the cache's directories.
func keptIn(dir *os.File, name string, made, out map[string]fileMark) error {
	fd := int(dir.Fd())
	if err := unix.Fchmod(fd, 0o700); err != nil {
		return err
	}
	files, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, file := range files {
		var st unix.Stat_t
		if err := unix.Fstatat(fd, file, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		key := name + "/" + file
		if was, ok := made[key]; ok && was == markOf(&st) {
			out[key] = was
			continue
		}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return fmt.Errorf("%s is a directory", key)
		}
		if err := unix.Unlinkat(fd, file, 0); err != nil {
			return err
		}
	}
	return nil
}

// openCacheDir opens a directory that is one, and no link to one.
func openCacheDir(at int, name string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// isCacheDir reports whether a name is that of one of a Go build cache's directories.
func isCacheDir(name string) bool {
	return len(name) == 2 && strings.Trim(name, "0123456789abcdef") == ""
}

// settle waits until files that change from now on have another time of change than the
// newest of those that were made: the kernel's clock for files ticks every few milliseconds.
func settle(made map[string]fileMark) error {
	for range 1000 {
		var now unix.Timespec
		if err := unix.ClockGettime(fileClock, &now); err != nil {
			return err
		}
		later := true
		for _, s := range made {
			if !s.before(now) {
				later = false
				break
			}
		}
		if later {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return errors.New("the clock stands still")
}
