package sandbox

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

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

// killRest kills what a command has left, once it has ended.
func killRest(int) { killDescendants(0) }

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
