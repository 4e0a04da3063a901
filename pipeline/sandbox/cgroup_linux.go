package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"forge/pipeline"
)

// cgroups are a subtree of the kernel's control groups, version 2, that was handed over
// to this process. The kernel lets no group hold processes and hand controllers on, so
// that it looks like this:
//
//	DIR           what was handed over; its processes move to
//	DIR/forge     the servers
//	DIR/run-…     one for each workspace: its own as a whole, to be killed as a whole
//	  …/worker    the worker, which runs as another user perhaps
//	  …/command-N the command that runs, with its limits; made by the worker
type cgroups struct {
	dir  string
	uid  int // the worker's; -1: this process' own
	root bool
}

const (
	serverGroup  = "forge"
	runGroup     = "run-"
	workerGroup  = "worker"
	commandGroup = "command-"
	groupProcs   = "cgroup.procs"
)

// controllers are what a command is held by.
var controllers = []string{"cpu", "memory", "pids"}

// findCgroup reads where the control group of a process is, out of its own two lists in
// /proc, and its name as this process sees it: "/" is the top of what a container sees.
func findCgroup(groups, mounts string) (dir, name string, err error) {
	for line := range strings.Lines(groups) {
		if own, is := strings.CutPrefix(strings.TrimSpace(line), "0::"); is {
			name = own
		}
	}
	if name == "" {
		return "", "", errors.New("this kernel has no cgroups of version 2")
	}
	for line := range strings.Lines(mounts) {
		// number parent device root place options … - type source options
		field := strings.Fields(line)
		at := slices.Index(field, "-")
		if at < 6 || at+1 >= len(field) || field[at+1] != "cgroup2" {
			continue
		}
		if rest, below := strings.CutPrefix(name, strings.TrimSuffix(field[3], "/")); below && !strings.HasPrefix(name, "/..") {
			return filepath.Join(field[4], rest), path.Clean(name), nil
		}
	}
	return "", "", errors.New("cgroups of version 2 are not mounted")
}

// handedOver finds this process' group and makes it ready. The error says why commands
// are not held by groups.
func handedOver(workerUID int) (*cgroups, error) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	dir, name, err := findCgroup(string(groups), string(mounts))
	if err != nil {
		return nil, err
	}
	c := &cgroups{dir: dir, uid: workerUID, root: os.Geteuid() == 0}
	if err := c.take(name, os.Getpid()); err != nil {
		return nil, err
	}
	if err := c.try(); err != nil {
		return nil, err
	}
	c.sweep()
	return c, nil
}

// take makes the group ready to be divided, if it is this process' to divide.
func (c *cgroups) take(name string, pid int) error {
	if path.Base(name) == serverGroup { // as another server of the same container has left it
		c.dir = filepath.Dir(c.dir)
		return nil
	}
	has, err := os.ReadFile(filepath.Join(c.dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, want := range controllers {
		if !slices.Contains(strings.Fields(string(has)), want) {
			return fmt.Errorf("the cgroup %s has no controller %q (it has %q)", c.dir, want, strings.TrimSpace(string(has)))
		}
	}
	if err := c.ours(name, pid); err != nil {
		return err
	}
	if err := mkGroup(filepath.Join(c.dir, serverGroup)); err != nil {
		return err
	}
	for range 10 { // what is started meanwhile comes along the next time
		all, err := c.processes()
		if err != nil {
			return err
		}
		if len(all) == 0 {
			break
		}
		for _, one := range all {
			err := writeGroup(filepath.Join(c.dir, serverGroup), groupProcs, one)
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return writeGroup(c.dir, "cgroup.subtree_control", "+"+strings.Join(controllers, " +"))
}

// ours reports whether the group was handed over. A container's top group is; of others
// the kernel says so by who may write them, or systemd by an attribute. Where people's
// own processes are in it, as in a terminal, it is left alone.
func (c *cgroups) ours(name string, pid int) error {
	if _, err := os.Stat(filepath.Join(c.dir, "cgroup.type")); err != nil {
		return fmt.Errorf("%s is the machine's top cgroup", c.dir)
	}
	if name == "/" {
		return nil
	}
	all, err := c.processes()
	if err != nil {
		return err
	}
	if !slices.Equal(all, []string{strconv.Itoa(pid)}) {
		return fmt.Errorf("other processes are in the cgroup %s", c.dir)
	}
	mark := make([]byte, 8)
	if n, err := unix.Getxattr(c.dir, "user.delegate", mark); c.root && (err != nil || string(mark[:n]) != "1") {
		return fmt.Errorf("the cgroup %s was not handed over", c.dir)
	}
	return nil
}

func (c *cgroups) processes() ([]string, error) {
	list, err := os.ReadFile(filepath.Join(c.dir, groupProcs))
	return strings.Fields(string(list)), err
}

// try does once what every command needs, and sees that it takes effect.
func (c *cgroups) try() error {
	run, err := c.open("try-" + strconv.Itoa(os.Getpid()))
	if err != nil {
		return err
	}
	defer endGroup(run)
	g, err := newGroup(run, 0, DefaultLimits().fill())
	if err != nil {
		return err
	}
	defer g.end()
	cmd := exec.Command("/bin/sh", "-c", "true")
	cmd.Env, cmd.SysProcAttr = []string{}, &syscall.SysProcAttr{}
	inGroup(cmd, g.file)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a process in a cgroup: %w", err)
	}
	err = killGroup(g.dir)
	_ = cmd.Process.Kill() // it cannot be waited for otherwise
	_ = cmd.Wait()
	return err
}

// open makes the group of a workspace, whose worker may divide it further.
func (c *cgroups) open(name string) (string, error) {
	run := filepath.Join(c.dir, runGroup+name)
	for _, dir := range []string{run, filepath.Join(run, workerGroup)} {
		if err := mkGroup(dir); err != nil {
			return "", err
		}
	}
	if err := writeGroup(run, "cgroup.subtree_control", "+"+strings.Join(controllers, " +")); err != nil {
		return "", err
	}
	if c.uid >= 0 {
		for _, file := range []string{run, filepath.Join(run, groupProcs)} {
			if err := os.Lchown(file, c.uid, -1); err != nil {
				return "", err
			}
		}
	}
	return run, nil
}

// enterGroup makes the workspace's control group, where there are any, and has its worker
// start in there. The file is closed when it has.
func (w *Workspace) enterGroup() (*os.File, error) {
	if w.m.groups == nil {
		return nil, nil
	}
	var err error
	if w.grp, err = w.m.groups.open(w.mark[:12]); err != nil {
		return nil, err
	}
	w.held = append(w.held, hold(w.grp))
	dir, err := openNoFollow(unix.AT_FDCWD, filepath.Join(w.grp, workerGroup))
	if err == nil {
		inGroup(w.cmd, dir)
	}
	return dir, err
}

// sweep ends what servers left that did not end in order.
func (c *cgroups) sweep() {
	left, _ := filepath.Glob(filepath.Join(c.dir, runGroup+"*")) // fails for a bad pattern alone
	for _, run := range left {
		if f, free := unused(run); free {
			endGroup(run)
			f.Close()
		}
	}
}

// group is the control group of one command; a nil one is none.
type group struct {
	dir  string
	file *os.File
}

// group makes the control group of a command that is about to start; nil where there are
// none. One that cannot be made is no reason to go on without its limits.
func (w *worker) group() (*group, error) {
	if w.Group == "" {
		return nil, nil
	}
	w.ran++
	g, err := newGroup(w.Group, w.ran, w.Limits)
	if err != nil {
		return nil, &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "sandbox unavailable: its cgroup: " + err.Error()}
	}
	return g, nil
}

// newGroup makes the group of a workspace's n-th command.
func newGroup(run string, n int, l Limits) (*group, error) {
	g := &group{dir: filepath.Join(run, commandGroup+strconv.Itoa(n))}
	if err := mkGroup(g.dir); err != nil {
		return nil, err
	}
	for _, limit := range []struct{ file, value string }{
		{"memory.max", strconv.FormatInt(l.Memory, 10)},
		{"memory.swap.max", "0"},
		{"memory.oom.group", "1"}, // half a command is none
		{"pids.max", strconv.Itoa(l.Processes)},
		{"cpu.max", fmt.Sprintf("%d %d", int64(l.Processors*float64(cpuPeriod)), cpuPeriod)},
	} {
		err := writeGroup(g.dir, limit.file, limit.value)
		if _, missing := os.Stat(filepath.Join(g.dir, limit.file)); limit.file == "memory.swap.max" && missing != nil {
			continue // a kernel that does not swap
		}
		if err != nil {
			endGroup(g.dir)
			return nil, err
		}
	}
	var err error
	g.file, err = openNoFollow(unix.AT_FDCWD, g.dir)
	return g, err
}

// cpuPeriod is the time, in microseconds, over which the kernel counts processors.
const cpuPeriod = 100_000

// place has a command start in the group, and end with it.
func (g *group) place(cmd *exec.Cmd) {
	if g == nil {
		return
	}
	inGroup(cmd, g.file)
	end := cmd.Cancel
	cmd.Cancel = func() error {
		_ = killGroup(g.dir)
		return end()
	}
}

// inGroup has a process be in a group from its first moment on.
func inGroup(cmd *exec.Cmd, dir *os.File) {
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
}

// outOfMemory reports whether the kernel killed the command for what it held.
func (g *group) outOfMemory() bool {
	if g == nil {
		return false
	}
	events, _ := os.ReadFile(filepath.Join(g.dir, "memory.events"))
	for line := range strings.Lines(string(events)) {
		if n, is := strings.CutPrefix(line, "oom_kill "); is && strings.TrimSpace(n) != "0" {
			return true
		}
	}
	return false
}

// end kills what is left and removes the group.
func (g *group) end() {
	if g == nil {
		return
	}
	if g.file != nil {
		g.file.Close()
	}
	endGroup(g.dir)
}

func mkGroup(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func writeGroup(dir, file, value string) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644)
}

// killGroup needs Linux 5.14.
func killGroup(dir string) error { return writeGroup(dir, "cgroup.kill", "1") }

// endGroup kills everything in a group, and removes it with those beneath. What the
// kernel is not done with within a second stays, empty of what could run.
func endGroup(dir string) {
	_ = killGroup(dir)
	for range 1000 {
		below, _ := filepath.Glob(filepath.Join(dir, "*", groupProcs)) // fails for a bad pattern alone
		for _, file := range below {
			_ = unix.Rmdir(filepath.Dir(file))
		}
		if err := unix.Rmdir(dir); !errors.Is(err, unix.EBUSY) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
