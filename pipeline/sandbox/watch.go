package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
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
	memory := w.countMemory()
	start, files := freeBytes(w.Dir), spareFiles(w.Dir)
	counted := start // what was free when the tree was last counted
	for n := 1; ; n++ {
		select {
		case <-finished:
			return
		case <-tick.C:
		}
		if w.Group == "" && memory.over(beneath(pid), w.Limits.Memory) {
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
	return int64(st.Bavail) * st.Bsize
}

// outgrown reports whether the work tree, or the private cache, the scratch directory
// and the copies, have outgrown their limits. What cannot be counted counts as too much; a
// directory that a command took its own permissions from is counted by what became of
// the disk since the worker began.
func (w *worker) outgrown() bool {
	over, hidden := w.tree.tooBig()
	for _, dir := range []string{w.private(), w.scratch(), w.copies()} {
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
		limits := w.Limits // a build cache has more and bigger files than the sources
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

// process is one row of /proc.
type process struct{ pid, parent int }

// processes lists all processes of the machine that can be seen.
func processes() []process {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []process
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + d.Name() + "/stat")
		if err != nil {
			continue
		}
		// The command's name is in parentheses and may hold anything.
		field := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(field) < 2 {
			continue
		}
		parent, _ := strconv.Atoi(string(field[1]))
		all = append(all, process{pid: pid, parent: parent})
	}
	return all
}

// descendants are the processes beneath one, itself included, of all that the machine
// has.
func descendants(pid int) []int {
	children := map[int][]int{}
	for _, p := range processes() {
		children[p.parent] = append(children[p.parent], p.pid)
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// tellsChildren reports whether this kernel lists a thread's children.
var tellsChildren = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil
})

// beneath is what descendants is, to be called many times a second: it looks at no
// process of others, of which a server has hundreds.
func beneath(pid int) []int {
	if !tellsChildren() {
		return descendants(pid)
	}
	all := []int{pid}
	seen := map[int]bool{pid: true} // one that gets another parent meanwhile is met twice
	for i := 0; i < len(all); i++ {
		for _, child := range childrenOf(all[i]) {
			if !seen[child] {
				seen[child] = true
				all = append(all, child)
			}
		}
	}
	return all
}

// childrenOf lists the children of all threads of a process; none when it has ended.
func childrenOf(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer threads.Close()
	names, _ := threads.Readdirnames(-1)
	var all []int
	for _, tid := range names {
		for _, field := range bytes.Fields(procFile(dir + "/" + tid + "/children")) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// procFile reads a file of /proc, with the calls that this takes and no others: a
// running command is looked at many times a second. Nothing of one that is gone.
func procFile(name string) []byte {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var text []byte
	buf := make([]byte, 4096)
	for {
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return text
		}
		text = append(text, buf[:n]...)
	}
}

// killDescendants kills everything beneath this process, until nothing is left:
// whatever is orphaned on the way becomes this process' child. The process that
// somebody waits for already is left for them to reap; 0: none.
func killDescendants(waited int) {
	self := os.Getpid()
	for range 200 {
		left := false
		for _, pid := range descendants(self)[1:] {
			_ = unix.Kill(pid, unix.SIGKILL)
			if pid == waited {
				continue
			}
			left = true
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		if !left {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// killMarked kills what a killed worker left behind where there is no sandbox.
func killMarked(mark string) {
	want := []byte(markName + "=" + mark)
	for range 20 {
		found := false
		for _, p := range processes() {
			env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "environ"))
			if err != nil {
				continue
			}
			for kv := range bytes.SplitSeq(env, []byte{0}) {
				if bytes.Equal(kv, want) {
					found = true
					_ = unix.Kill(p.pid, unix.SIGKILL)
				}
			}
		}
		if !found {
			return
		}
	}
}

func blocksOf(info fs.FileInfo) int64 { return info.Sys().(*syscall.Stat_t).Blocks * 512 }
