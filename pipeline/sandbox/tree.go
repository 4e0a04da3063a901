package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"syscall"

	"forge/pipeline/text"

	"golang.org/x/sys/unix"
)

// tree is a work tree, whose files a hostile command may be changing at the very
// moment: every access goes through root, and looks again at what it has opened.
type tree struct {
	root   *os.Root
	dir    string // the same, as a path; for git and commands alone
	etc    string // holds the list of files that are never part of a change
	git    git
	limits Limits
	owner  int // the user whose commands write here

	mu       sync.Mutex
	commit   string
	manifest map[string]entry // of the commit, by path
	shown    []string         // directories of what commands see in the tree and is not the commit's
}

// cleanPath checks a caller's path; "" and "." are the top.
func cleanPath(name string) (string, error) {
	name = strings.TrimSuffix(name, "/")
	if name == "" || name == "." {
		return ".", nil
	}
	name = strings.TrimPrefix(name, "./")
	return name, checkPath(name)
}

// safeRead reads a plain file: not through a link out of the tree, never a FIFO
// or a device, no second hard link, within max bytes.
func (t *tree) safeRead(name string, max int64) ([]byte, fs.FileInfo, error) {
	return safeRead(t.root, name, max, t.owner)
}

// safeRead reads one that belongs to a user, or to the one of this process.
func safeRead(root *os.Root, name string, max int64, owner int) ([]byte, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if err := plain(name, info, max, owner); err != nil {
		return nil, nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, nil, err
	}
	if int64(len(content)) > max {
		return nil, nil, tooBig(name, max)
	}
	return content, info, nil
}

// plain refuses whatever is not a plain file with one name.
func plain(name string, info fs.FileInfo, max int64, owner int) error {
	uid, _ := ownerOf(info)
	switch {
	case info.IsDir():
		return fmt.Errorf("%s is a directory", name)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a plain file but %s", name, kindOf(info.Mode()))
	case info.Sys().(*syscall.Stat_t).Nlink > 1:
		return fmt.Errorf("%s has a second hard link", name)
	case uid != os.Geteuid() && uid != owner:
		// A second link can be taken away between the open and the look; the owner stays.
		return fmt.Errorf("%s belongs to another user", name)
	case info.Size() > max:
		return tooBig(name, max)
	}
	return nil
}

func tooBig(name string, max int64) error {
	return fmt.Errorf("%s is over the limit of %d bytes", name, max)
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode.IsDir():
		return "a directory"
	}
	return "something special"
}

func inodeOf(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }

func ownerOf(info fs.FileInfo) (uid, gid int) {
	st := info.Sys().(*syscall.Stat_t)
	return int(st.Uid), int(st.Gid)
}

func (t *tree) read(name string) ([]byte, error) {
	name, err := cleanPath(name)
	if err != nil {
		return nil, err
	}
	content, _, err := t.safeRead(name, t.limits.ReadBytes)
	return content, err
}

// readDir lists a directory, at most as many entries as a tree may have.
func (t *tree) readDir(name string) ([]fs.DirEntry, error) {
	d, err := t.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(t.limits.TreeFiles + 1)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if len(entries) > t.limits.TreeFiles {
		return nil, fmt.Errorf("%s has more than %d entries", name, t.limits.TreeFiles)
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	return entries, nil
}

func (t *tree) list(dir string) ([]string, error) {
	dir, err := cleanPath(dir)
	if err != nil {
		return nil, err
	}
	entries, err := t.readDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		name := e.Name()
		if e.Type()&fs.ModeCharDevice != 0 { // a whiteout
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return names, nil
}

// parents makes the directories above a path; a symbolic link on the way is refused.
func (t *tree) parents(name string) error {
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		dir := name[:i]
		info, err := t.root.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			if err = t.root.Mkdir(dir, 0o755); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is %s, not a directory", dir, kindOf(info.Mode()))
		}
	}
	return nil
}

// write replaces a file as a whole, by renaming: what had the old file open, or
// linked, does not get the new content.
func (t *tree) write(name string, content []byte) error {
	name, err := cleanPath(name)
	if err != nil {
		return err
	}
	if int64(len(content)) > t.limits.ReadBytes {
		return tooBig(name, t.limits.ReadBytes)
	}
	mode := fs.FileMode(0o644)
	info, err := t.root.Lstat(name)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory", name)
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is %s: nothing is written through it; remove it first", name, kindOf(info.Mode()))
	case err == nil:
		mode |= info.Mode() & 0o111
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if sub := t.submodule(name); sub != "" {
		return fmt.Errorf("%s is in the submodule %s, which is a repository of its own and not fetched: what is written there would be in no commit", name, sub)
	}
	if err := t.parents(name); err != nil {
		return err
	}
	return t.place(name, content, mode)
}

// submodule is the commit's submodule that a path is in, "" for none.
func (t *tree) submodule(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if e, ok := t.manifest[dir]; ok && e.mode == modeSub {
			return dir
		}
	}
	return ""
}

// filledSubmodules are the commit's submodules that something was written into.
func (t *tree) filledSubmodules() (list []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, e := range t.manifest {
		if e.mode != modeSub {
			continue
		}
		if entries, err := t.readDir(name); err == nil && len(entries) > 0 {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// place writes a new file and moves it to its name.
func (t *tree) place(name string, content []byte, mode fs.FileMode) error {
	temp := path.Join(path.Dir(name), ".forge-new-"+path.Base(name)[:min(len(path.Base(name)), 200)])
	_ = t.root.Remove(temp)
	f, err := t.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = t.root.Rename(temp, name)
	}
	if err != nil {
		_ = t.root.Remove(temp)
	}
	return err
}

// beneath lists the commit's files in a directory, sorted.
func (t *tree) beneath(dir string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for name := range t.manifest {
		if dir == "." || strings.HasPrefix(name, dir+"/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (t *tree) remove(name string) error {
	name, err := cleanPath(name)
	if err != nil {
		return err
	}
	if name == "." {
		return errors.New("the work tree itself is not removed")
	}
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		if info, err := t.root.Lstat(name[:i]); err != nil {
			return err
		} else if !info.IsDir() {
			return fmt.Errorf("%s is %s, not a directory", name[:i], kindOf(info.Mode()))
		}
	}
	if _, err := t.root.Lstat(name); err != nil {
		return err
	}
	return t.clear(name)
}

// clear removes a path although a command took permissions away beneath it.
func (t *tree) clear(name string) error {
	err := t.root.RemoveAll(name)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	t.unlock(name, 0)
	if dir := path.Dir(name); dir != name {
		_ = t.root.Chmod(dir, 0o755)
	}
	return t.root.RemoveAll(name)
}

func (t *tree) unlock(name string, depth int) {
	info, err := t.root.Lstat(name)
	if err != nil || !info.IsDir() || depth > maxDepth {
		return
	}
	_ = t.root.Chmod(name, 0o755)
	entries, _ := t.readDir(name)
	for _, e := range entries {
		if e.IsDir() {
			t.unlock(path.Join(name, e.Name()), depth+1)
		}
	}
}

// maxDepth is how deep directories may be nested.
const maxDepth = 200

// walk visits everything beneath a directory, directories before what is in them;
// symbolic links are not followed. A visit that returns fs.SkipDir is not entered.
func (t *tree) walk(ctx context.Context, dir string, visit func(name string, info fs.FileInfo) error) error {
	count := 0
	var into func(dir string, depth int) error
	into = func(dir string, depth int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if depth > maxDepth {
			return fmt.Errorf("%.100s… is nested more than %d deep", dir, maxDepth)
		}
		entries, err := t.readDir(dir)
		if depth > 0 && errors.Is(err, fs.ErrNotExist) {
			return nil // removed just now
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if count++; count > 2*t.limits.TreeFiles {
				return fmt.Errorf("the work tree has more than %d entries", 2*t.limits.TreeFiles)
			}
			name := path.Join(dir, e.Name())
			info, err := t.root.Lstat(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			err = visit(name, info)
			if err == nil && info.IsDir() {
				err = into(name, depth+1)
			}
			if err != nil && !errors.Is(err, fs.SkipDir) {
				return err
			}
		}
		return nil
	}
	return into(dir, 0)
}

// search looks for lines that match. Files that cannot be read are passed over:
// a search is no check.
func (t *tree) search(ctx context.Context, pattern, glob string, max int) ([]string, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("search pattern: %w", err)
	}
	if max <= 0 {
		max = 200
	}
	lines := []string{}
	errFull := errors.New("full")
	err = t.walk(ctx, ".", func(name string, info fs.FileInfo) error {
		if !info.Mode().IsRegular() || glob != "" && !matchGlob(glob, name) {
			return nil
		}
		content, _, err := t.safeRead(name, t.limits.ReadBytes)
		if err != nil || slices.Contains(content[:min(len(content), 8000)], 0) {
			return nil
		}
		for i, l := range strings.Split(string(content), "\n") {
			if !re.MatchString(l) {
				continue
			}
			lines = append(lines, fmt.Sprintf("%s:%d: %s", name, i+1, text.ClipBytes(strings.TrimRight(l, "\r"), 500)))
			if len(lines) >= max {
				return errFull
			}
		}
		return nil
	})
	if err != nil && err != errFull {
		return nil, err
	}
	return lines, nil
}
