package sandbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	keepDeps    = 30 * 24 * time.Hour // environments that nothing has used for so long go
	keepMirrors = 60 * 24 * time.Hour // mirrors likewise, and commits in them that nothing leads to: longer than any question waits
	collectEach = 24 * time.Hour      // how often a mirror in use is packed
	making      = "new-"              // the name of a work tree until its process holds it, and of an environment until it is kept
)

// hold marks a directory as used by this process, until the file is closed or the process
// ends, in whatever way. nil where the file system knows no such marks: nothing is swept
// there.
func hold(dir string) *os.File {
	f, err := openNoFollow(unix.AT_FDCWD, dir)
	if err != nil {
		return nil
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		f.Close()
		return nil
	}
	return f
}

// unused reports whether no process holds a directory. While the file is open, none can.
func unused(dir string) (*os.File, bool) {
	f, err := openNoFollow(unix.AT_FDCWD, dir)
	if err != nil {
		return nil, false
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, false
	}
	return f, true
}

// Sweep removes what nothing needs any more: work trees that a process left which did not
// end in order, and environments that nothing has used for a month, or that all together
// have too much.
func (m *Manager) Sweep(ctx context.Context) error {
	return errors.Join(m.sweepTrees(ctx), m.pruneDeps(m.now().Add(-keepDeps)))
}

func (m *Manager) sweepTrees(ctx context.Context) error {
	trees, _ := filepath.Glob(m.path("trees", "*"))        // fails for a bad pattern alone
	halves, _ := filepath.Glob(m.path("deps", making+"*")) // environments that were never finished
	removed := 0
	var errs []error
	for _, dir := range slices.Concat(trees, halves) {
		if ctx.Err() != nil {
			break
		}
		info, err := os.Lstat(dir)
		if err != nil || strings.HasPrefix(filepath.Base(dir), making) && m.now().Sub(info.ModTime()) < time.Hour {
			continue
		}
		f, ok := unused(dir)
		if !ok {
			continue
		}
		errs = append(errs, removeTree(dir))
		f.Close()
		removed++
	}
	if removed > 0 {
		m.log.Info("work trees of an earlier process are removed", "trees", removed)
	}
	return errors.Join(errs...)
}

// Collect removes mirrors that nothing has fetched into for two months; a run that needs
// one fetches it again. It packs the others, and takes out of them what nothing has led
// to for as long.
func (g *Gateway) Collect(ctx context.Context, now time.Time) error {
	marks, err := filepath.Glob(filepath.Join(g.dir, "*.git", readyFile))
	if err != nil {
		return err
	}
	for _, mark := range marks {
		info, err := os.Stat(mark)
		if err != nil {
			continue
		}
		if err := g.collect(ctx, filepath.Dir(mark), info.ModTime(), now); err != nil {
			return fmt.Errorf("collect mirror %s: %w", filepath.Base(filepath.Dir(mark)), err)
		}
	}
	return nil
}

func (g *Gateway) collect(ctx context.Context, dir string, used, now time.Time) error {
	lock := g.lockOf(filepath.Base(dir))
	lock.Lock()
	defer lock.Unlock()
	if now.Sub(used) >= keepMirrors {
		g.log.InfoContext(ctx, "a mirror is removed", "dir", dir, "used", used)
		return os.RemoveAll(dir)
	}
	packed := filepath.Join(dir, packedFile)
	if info, err := os.Stat(packed); err == nil && now.Sub(info.ModTime()) < collectEach {
		return nil
	}
	since := fmt.Sprintf("--prune=%d.seconds.ago", int(keepMirrors.Seconds()))
	if _, err := (git{bin: g.bin, dir: dir}).run(ctx, gitCall{args: []string{"gc", "--quiet", since}}); err != nil {
		return err
	}
	if err := writeFile(packed, "", 0o640); err != nil {
		return err
	}
	return os.Chtimes(packed, now, now)
}

// reserveFiles is how many files can still be made on a disk; a twentieth of all on one
// that holds few.
const reserveFiles = 10_000

// spareFiles is how many files may still be made until the reserve begins; plenty where the
// file system has no such limit.
func spareFiles(dir string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return -1
	}
	if st.Files == 0 {
		return math.MaxInt64
	}
	return int64(st.Ffree) - int64(min(reserveFiles, st.Files/20))
}

// checkRoom refuses to write to a disk that is nearly full, of which a reserve stays for
// others that write to it; a twentieth of a small one.
func checkRoom(dir string, reserve int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return err
	}
	switch free, all := int64(st.Bavail)*int64(st.Bsize), int64(st.Blocks)*int64(st.Bsize); {
	case free < min(reserve, all/20):
		return roomFault(dir, fmt.Errorf("less than the reserve is free: %w", syscall.ENOSPC))
	case spareFiles(dir) < 0:
		return roomFault(dir, fmt.Errorf("hardly any more files can be made: %w", syscall.ENOSPC))
	}
	return nil
}
