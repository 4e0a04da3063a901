package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How often a running command is looked at. A process can fill memory at some
// 5 GB/s, so that it may overshoot its limit by half a gigabyte.
const (
	watchEvery = 100 * time.Millisecond
	treeEvery  = 50 // looks between two counts of the work tree
)

// markName is the variable that names a workspace in its commands' environment,
// where there is no sandbox that ends them all.
const markName = "FORGE_WORKSPACE"

// watch looks at a command's memory, where no control group limits that, and at its disk
// until it is finished.
func (w *worker) watch(finished <-chan struct{}, pid int, kill func(class string)) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	start, files := freeBytes(w.Dir), spareFiles(w.Dir)
	counted := start // what was free when the tree was last counted
	for n := 1; ; n++ {
		select {
		case <-finished:
			return
		case <-tick.C:
		}
		if w.Group == "" && overMemory(beneath(pid), w.inMemory, w.Limits.Memory) {
			kill(classMemory)
			return
		}
		free := freeBytes(w.Dir)
		if free < w.Limits.Reserve && start-free > w.Limits.Reserve/8 {
			kill(classDisk)
			return
		}
		if left := spareFiles(w.Dir); left < 0 && files-left > reserveFiles/8 {
			kill(classDisk)
			return
		}
		if n%treeEvery != 0 && counted-free < w.Limits.TreeBytes/4 {
			continue
		}
		counted = free
		if w.outgrown() {
			kill(classDisk)
			return
		}
	}
}

// freeBytes is what the worker's user may still write.
func freeBytes(dir string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0
	}
	return int64(st.Bavail) * int64(st.Bsize)
}

// outgrown reports whether the work tree, or what is written beside it and the
// environment that is made, have outgrown their limits. What cannot be counted counts as too much; a
// directory that a command took its own permissions from is counted by what became of
// the disk since the worker began.
func (w *worker) outgrown() bool {
	over, hidden := w.tree.tooBig()
	dirs := []string{w.copies()}
	if w.making != nil { // set for as long as the command runs
		dirs = append(dirs, filepath.Join(w.making.Dir, homeDir))
	}
	for _, dir := range dirs {
		root, err := os.OpenRoot(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // nothing has used it
		}
		if errors.Is(err, fs.ErrPermission) {
			hidden = true
			continue
		}
		if err != nil {
			return true
		}
		limits := w.Limits // an environment has more and bigger files than the sources
		limits.TreeBytes, limits.TreeFiles = 2*limits.TreeBytes, 4*limits.TreeFiles
		much, shut := (&tree{root: root, dir: dir, limits: limits}).tooBig()
		root.Close()
		over, hidden = over || much, hidden || shut
	}
	return over || hidden && w.freeAtFirst-freeBytes(w.Dir) > w.Limits.TreeBytes
}

// tooBig reports whether a directory has outgrown its limits, and whether something
// in it is hidden from this user. Blocks count, not lengths: a sparse file costs
// nothing. More entries, or deeper ones, than can be walked are too many.
func (t *tree) tooBig() (over, hidden bool) {
	var files int
	var bytes int64
	err := t.walk(context.Background(), ".", func(_ string, info fs.FileInfo) error {
		files++
		bytes += blocksOf(info)
		if files > t.limits.TreeFiles || bytes > t.limits.TreeBytes {
			over = true
			return fs.SkipAll
		}
		if info.IsDir() && info.Mode().Perm()&0o500 != 0o500 {
			hidden = true
			return fs.SkipDir
		}
		return nil
	})
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return over, true // it changed just now
	}
	return over || err != nil, hidden
}

func blocksOf(info fs.FileInfo) int64 { return info.Sys().(*syscall.Stat_t).Blocks * 512 }
