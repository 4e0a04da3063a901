package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"forge/pipeline/workspace"
)

func TestFindCgroup(t *testing.T) {
	const usual = "30 23 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	for _, tt := range []struct{ name, groups, mounts, dir, group string }{
		{"a service", "0::/system.slice/forge.service\n", usual, "/sys/fs/cgroup/system.slice/forge.service", "/system.slice/forge.service"},
		{"a container with a view of its own", "0::/\n", usual, "/sys/fs/cgroup", "/"},
		{"a container that sees the machine's names", "0::/docker/1a\n", "30 23 0:27 /docker/1a /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "/sys/fs/cgroup", "/docker/1a"},
		{"beside version 1", "3:pids:/x\n0::/y\n", "31 23 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n" +
			"32 23 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup/unified/y", "/y"},
		{"version 1 alone", "3:pids:/x\n", usual, "", ""},
		{"not mounted", "0::/\n", "1 2 0:3 / / rw - ext4 /dev/vda rw\n", "", ""},
		{"mounted elsewhere", "0::/a\n", "30 23 0:27 /b /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "", ""},
		{"outside of what is seen", "0::/../other\n", usual, "", ""},
		{"a row cut off", "0::/\n", "30 23 0:27 / /sys/fs/cgroup rw -\n", "", ""},
	} {
		dir, group, err := findCgroup(tt.groups, tt.mounts)
		if dir != tt.dir || group != tt.group || (err == nil) != (tt.dir != "") {
			t.Errorf("%s: %q, %q, %v; want %q, %q", tt.name, dir, group, err, tt.dir, tt.group)
		}
	}
}

// likeCgroup makes a directory that looks like a control group.
func likeCgroup(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func contentOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A control group is divided where it is this process' to divide, and nowhere else.
func TestTakeCgroup(t *testing.T) {
	const all = "cpuset cpu io memory pids\n"
	for _, tt := range []struct {
		name, group string
		files       map[string]string
		root        bool
		want        string // what the refusal says; empty: it is taken
	}{
		{"a service", "/system.slice/forge.service", map[string]string{"cgroup.controllers": all, "cgroup.type": "domain\n", "cgroup.procs": "7\n"}, false, ""},
		{"a container's top", "/", map[string]string{"cgroup.controllers": all, "cgroup.type": "domain\n", "cgroup.procs": "1\n7\n"}, true, ""},
		{"a terminal's", "/user.slice/x.scope", map[string]string{"cgroup.controllers": all, "cgroup.type": "domain\n", "cgroup.procs": "1\n7\n"}, false, "other processes"},
		{"root's, not handed over", "/system.slice/x.service", map[string]string{"cgroup.controllers": all, "cgroup.type": "domain\n", "cgroup.procs": "7\n"}, true, "not handed over"},
		{"the machine's top", "/", map[string]string{"cgroup.controllers": all, "cgroup.procs": "7\n"}, true, "machine's top"},
		{"no memory controller", "/", map[string]string{"cgroup.controllers": "cpu pids\n", "cgroup.type": "domain\n", "cgroup.procs": "7\n"}, true, `no controller "memory"`},
		{"none at all", "/", map[string]string{"cgroup.controllers": "\n", "cgroup.type": "domain\n", "cgroup.procs": "7\n"}, true, `no controller "cpu"`},
		{"nothing there", "/", nil, true, "no such file"},
	} {
		c := &cgroups{dir: likeCgroup(t, tt.files), uid: -1, root: tt.root}
		err := c.take(tt.group, 7)
		moved := filepath.Join(c.dir, serverGroup, groupProcs)
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v; want %q", tt.name, err, tt.want)
			}
			if _, err := os.Stat(moved); err == nil {
				t.Errorf("%s: processes were moved", tt.name)
			}
			continue
		}
		if err != nil || contentOf(t, moved) != "7" || contentOf(t, filepath.Join(c.dir, "cgroup.subtree_control")) != "+cpu +memory +pids" {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	c := &cgroups{dir: "/sys/fs/cgroup/a/forge"}
	if err := c.take("/a/forge", 7); err != nil || c.dir != "/sys/fs/cgroup/a" {
		t.Errorf("beside another server: %s, %v", c.dir, err)
	}
}

// The limits of a command's group are those of the settings, and are there before it is.
func TestCgroupLimits(t *testing.T) {
	run := t.TempDir()
	l := Limits{Memory: 5 << 20, Processes: 9, Processors: 1.5}
	g, err := newGroup(run, 3, l)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"memory.max": "5242880", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "9", "cpu.max": "150000 100000",
	} {
		if got := contentOf(t, filepath.Join(run, "command-3", file)); got != want {
			t.Errorf("%s = %q; want %q", file, got, want)
		}
	}
	for events, want := range map[string]bool{"": false, "max 7\noom 0\noom_kill 0\n": false, "max 7\noom 1\noom_kill 3\noom_group_kill 1\n": true} {
		if err := writeGroup(g.dir, "memory.events", events); err != nil {
			t.Fatal(err)
		}
		if got := g.outOfMemory(); got != want {
			t.Errorf("with events %q: out of memory: %t", events, got)
		}
	}
	g.end()
	if got := contentOf(t, filepath.Join(g.dir, "cgroup.kill")); got != "1" {
		t.Errorf("cgroup.kill = %q", got)
	}
	for _, file := range []string{"memory.max", "memory.oom.group", "pids.max", "cpu.max"} { // none is left out
		run := t.TempDir()
		if err := os.MkdirAll(filepath.Join(run, "command-1", file), 0o755); err != nil {
			t.Fatal(err)
		}
		if g, err := newGroup(run, 1, l); err == nil {
			t.Errorf("without %s there is a group: %+v", file, g)
		}
	}
	for atOnce, want := range map[int]float64{0: max(1, 0.9*float64(runtime.NumCPU())), 1000: 1} {
		if got := processors(atOnce); got != want {
			t.Errorf("processors of %d commands: %g; want %g", atOnce, got, want)
		}
	}
}

// A command whose group cannot be made does not run.
func TestNoCgroupNoCommand(t *testing.T) {
	bad := &worker{setup: setup{Group: filepath.Join(t.TempDir(), "gone")}}
	if _, err := bad.group(); err == nil || !strings.Contains(err.Error(), "sandbox unavailable") {
		t.Errorf("a group below what is not there: %v", err)
	}
}

// unlimitedCgroups is a part of this machine's control groups that may be divided, with or
// without controllers; "" where there is none.
func unlimitedCgroups(t *testing.T) string {
	t.Helper()
	groups, mounts := contentOf(t, "/proc/self/cgroup"), contentOf(t, "/proc/self/mountinfo")
	top, _, err := findCgroup(groups, mounts)
	if err != nil {
		return ""
	}
	if filepath.Base(top) == serverGroup {
		top = filepath.Dir(top)
	}
	dir := filepath.Join(top, fmt.Sprintf("test-%d-%s", os.Getpid(), strings.ToLower(t.Name())))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return ""
	}
	t.Cleanup(func() { endGroup(dir) })
	return dir
}

// Covers S9: what is in a group ends with it, whoever its parents are; groups that another
// server holds are left alone.
func TestCgroupEnds(t *testing.T) {
	dir := unlimitedCgroups(t)
	if dir == "" {
		t.Log("no control groups that this user may divide")
		return
	}
	start := func(run string) *os.File {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(run, workerGroup), 0o755); err != nil {
			t.Fatal(err)
		}
		at, err := openNoFollow(-1, filepath.Join(run, workerGroup))
		if err != nil {
			t.Fatal(err)
		}
		defer at.Close()
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "setsid sh -c 'echo has it; exec sleep 300' & wait")
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		inGroup(cmd, at)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { _ = cmd.Wait() }()
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		return hold(run)
	}
	mine, theirs := filepath.Join(dir, runGroup+"a"), filepath.Join(dir, runGroup+"b")
	start(mine).Close()
	held := start(theirs)
	defer held.Close()
	c := &cgroups{dir: dir}
	c.sweep()
	if _, err := os.Stat(mine); !os.IsNotExist(err) {
		t.Errorf("a group that nobody holds: %v", err)
	}
	if n := strings.Count(contentOf(t, filepath.Join(theirs, workerGroup, groupProcs)), "\n"); n != 2 {
		t.Errorf("of another's group %d processes are left; want both", n)
	}
	endGroup(theirs)
	if _, err := os.Stat(theirs); !os.IsNotExist(err) {
		t.Errorf("a group that was ended: %v", err)
	}
}

// groupsOf opens a workspace whose commands have control groups of their own; nil where
// this process has none to divide. FORGE_TEST_CGROUPS wants them.
func groupsOf(t *testing.T, l Limits) *Workspace {
	t.Helper()
	needBwrap(t)
	f := newFixture(t, sources)
	m := newManager(t, Options{Limits: l})
	if err := m.Cgroups(); err != nil {
		if os.Getenv("FORGE_TEST_CGROUPS") != "" {
			t.Fatal(err)
		}
		t.Log("no control groups to hold commands by:", err)
		return nil
	}
	return f.open(t, m, f.head)
}

// Covers S8: what the kernel holds for a command is counted, and more processes than its
// limit cannot be had, in a group of its own.
func TestHeldByCgroup(t *testing.T) {
	w := groupsOf(t, Limits{Memory: 48 << 20, Processes: 40})
	if w == nil {
		return
	}
	for _, tt := range []struct{ name, script, class string }{
		{"own pages", "x = block * 400; stay()", classMemory},
		{"sockets", "keep = []\nfor i in range(1500):\n    a, b = socket.socketpair(); a.setblocking(False); keep += [a, b]\n" +
			"    try:\n        while True: a.send(b'x' * 65536)\n    except BlockingIOError: pass\nstay()", classMemory},
		{"pipes", "import fcntl\nkeep = []\nfor i in range(1500):\n    r, w = os.pipe(); os.set_blocking(w, False); keep += [r, w]\n" +
			"    try: fcntl.fcntl(w, 1031, MiB)\n    except OSError: pass\n    try:\n        while True: os.write(w, b'x' * 65536)\n    except BlockingIOError: pass\nstay()", classMemory},
		{"files in memory", "for d in ('/dev/shm', '/tmp', os.environ['HOME']):\n    f = open(d + '/x', 'wb')\n" +
			"    try:\n        for i in range(400): f.write(block)\n    except OSError: pass\nstay()", classMemory},
		{"what it lets go of again", "for i in range(20): x = block * 20; del x", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := w.Run(t.Context(), workspace.Command{Args: []string{"/usr/bin/python3", "-c", hoard + tt.script}, Timeout: 5 * time.Minute})
			if err != nil || r.Class != tt.class {
				t.Errorf("class %q, exit %d, %v: %s%.300s; want %q", r.Class, r.Exit, err, r.Stdout, r.Stderr, tt.class)
			}
		})
	}
	made, err := filepath.Glob(filepath.Join(w.grp, commandGroup+"*"))
	if err != nil || len(made) > 0 {
		t.Errorf("groups of commands that ended: %v, %v", made, err)
	}
	r, err := w.Run(t.Context(), workspace.Command{Args: []string{"perl", "-e",
		`my $n=0; for (1..500) { my $p = fork; last unless defined $p; if (!$p) { sleep 60; exit } $n++ } print $n`}})
	if n, bad := strconv.Atoi(string(r.Stdout)); err != nil || bad != nil || n < 20 || n >= 40 {
		t.Errorf("%q processes were made, %v; want at most 40 in all", r.Stdout, err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(w.grp); err == nil || !os.IsNotExist(err) {
		t.Errorf("the workspace's group after its end: %v", err)
	}
}

// Covers S8: two busy processes have no more of the processors than their command may.
func TestProcessorsOfCgroup(t *testing.T) {
	w := groupsOf(t, Limits{Processors: 0.5})
	if w == nil {
		return
	}
	r := mustRun(t.Context(), t, w, "timeout 2 sh -c 'while :; do :; done' & timeout 2 sh -c 'while :; do :; done'; wait; times")
	var spent float64
	for _, field := range strings.Fields(string(r.Stdout)) {
		if d, err := time.ParseDuration(field); err == nil {
			spent += d.Seconds()
		}
	}
	if wall := r.Duration.Seconds(); spent == 0 || spent > 0.65*wall {
		t.Errorf("two busy processes had %.2f s of a processor in %.2f s; want about half: %s", spent, wall, r.Stdout)
	}
}

// What a killed worker was running ends with the workspace's group.
func TestKilledWithCgroup(t *testing.T) {
	w := groupsOf(t, Limits{})
	if w == nil {
		return
	}
	go func() { _, _ = w.Run(t.Context(), workspace.Command{Args: []string{"sh", "-c", "exec sleep 54321"}}) }()
	for len(alive("sleep\x0054321")) == 0 {
		time.Sleep(time.Millisecond)
	}
	w.kill()
	if !gone("sleep\x0054321") {
		t.Error("the command outlives its workspace")
	}
}
