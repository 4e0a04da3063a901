package protections

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forge/pipeline/needs"
)

// guards are the tests that look at the sandbox from inside and from outside.
const guards = "TestSeccompFilter|TestBoxArguments|TestCheckProbe|TestConfinement|TestWorkerLocks|TestInsideTheSandbox|TestSystemCallsInside|TestWorkerProcess|TestFailClosed"

// TestSandbox takes each lock of the sandbox off.
func TestSandbox(t *testing.T) {
	if testing.Short() {
		t.Skip("takes an hour: left out with -short")
	}
	needs.Sandbox(t)
	takeAway(t, ofSandbox(t))
}

// ofSandbox are the locks of the sandbox.
func ofSandbox(t *testing.T) []protection {
	t.Helper()
	const limits, shared = "TestTooBig|TestLimits|TestForkBomb", "TestSharedMemory"
	const alone, groups = "TestWorkerOfTheSameUser|TestIsolationArguments", ".*Cgroup.*"
	var all []protection
	for _, arg := range []string{
		`"--unshare-user", `, `"--unshare-pid", `, `"--unshare-net", `, `"--unshare-ipc", `, `"--unshare-uts", `, `, "--unshare-cgroup"`,
		`"--uid", "1000", `, `"--gid", "1000", `, `"--disable-userns", "--assert-userns-disabled",`, `, "--assert-userns-disabled"`,
		`"--die-with-parent", `, `"--new-session", `, `"--hostname", "sandbox", `, `"--cap-drop", "ALL",`, `"--seccomp", "4", `, `, "--clearenv"`,
		`"--size", "67108864", "--tmpfs", "/dev/shm", `, `"--remount-ro", "/dev",`, `"--size", "67108864", "--tmpfs", boxHome,`,
	} {
		all = append(all, protection{file: "bwrap_linux.go", text: arg})
	}
	all = append(all, []protection{
		{"bwrap_linux.go", `args = append(args, "--remount-ro", "/")`, ``, ""},
		{"bwrap_linux.go", `"--dev", "/dev", "--size", "67108864",`, `"--dev", "/dev",`, ""},
		{"bwrap_linux.go", `"--size", "268435456", "--tmpfs", "/tmp",`, `"--tmpfs", "/tmp",`, ""},
		{"bwrap_linux.go", `"--ro-bind", "/usr", "/usr"`, `"--bind", "/usr", "/usr"`, ""},
		{"bwrap_linux.go", `"--ro-bind", filepath.Join(w.Root, at), at)`, `"--bind", filepath.Join(w.Root, at), at)`, "TestImage"},
		{"bwrap_linux.go", `case slices.Contains(without, e.Name()):`, `case slices.Contains(without, "x"):`, "TestImage"},
		{"bwrap_linux.go", `"--ro-bind", dir, dir)`, `"--bind", dir, dir)`, ""},
		{"bwrap_linux.go", `"--ro-bind", name, name)`, `"--bind", name, name)`, ""},
		{"bwrap_linux.go", `"--ro-bind", filepath.Join(w.Etc, name)`, `"--bind", filepath.Join(w.Etc, name)`, ""},
		{"bwrap_linux.go", `p.cmd.Env = []string{"PATH=/usr/bin:/bin"}`, `p.cmd.Env = append(os.Environ(), "FORGE_X=5e1f")`, ""},
		{"bwrap_linux.go", `if lack := checkProbe(string(r.Stdout)); lack != ""`, `if lack := ""; lack != ""`, "TestProbeRefuses"},
		{"bwrap_linux.go", `"NoNewPrivs": "1", `, ``, ""},
		{"bwrap_linux.go", `"Seccomp": "2", `, ``, ""},
		{"bwrap_linux.go", `"CapEff": "0000000000000000", `, ``, ""},
		{"bwrap_linux.go", `"CapPrm": "0000000000000000",`, ``, ""},
		{"bwrap_linux.go", `"CapBnd": "0000000000000000", `, ``, ""},
		{"bwrap_linux.go", `, "Uid": "1000\t1000\t1000\t1000",`, `,`, ""},
		{"bwrap_linux.go", `n != 1 || !strings.Contains(part[1], "lo:")`, `n < 0`, ""},
		{"bwrap_linux.go", `err != nil || pid > 100`, `err != nil || pid < 0`, ""},

		{"worker_linux.go", `if err := unix.CloseRange(3, ^uint(0)>>1&0xffffffff, unix.CLOSE_RANGE_CLOEXEC); err != nil`, `if err := error(nil); err != nil`, ""},
		{"isolation_linux.go", `if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil`, `if err := error(nil); err != nil`, ""},
		{"worker_linux.go", `if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil`, `if err := error(nil); err != nil`, ""},
		{"worker_linux.go", `if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil`, `if err := error(nil); err != nil`,
			"TestWorkerProcess|TestNothingSurvives"},
		{"isolation_linux.go", `if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil`, `if err := error(nil); err != nil`, ""},
		{"worker_linux.go", `_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)`, ``, ""},
		{"isolation_linux.go", `"--unshare-pid", `, ``, alone},
		{"isolation_linux.go", `"--unshare-net", `, ``, alone},
		{"isolation_linux.go", `, "--proc", "/proc"`, ``, alone},
		{"isolation_linux.go", `args = append(args, "--tmpfs", dir)`, `_ = dir`, alone},
		{"isolation_linux.go", `args = append(args, "--ro-bind", "/dev/null", file)`, `_ = file`, alone},
		{"isolation_linux.go", `dir = filepath.Dir(real)`, `dir = "/"`, alone},
		{"cgroup_linux.go", `{"memory.max", strconv.FormatInt(l.Memory, 10)},`, ``, groups},
		{"cgroup_linux.go", `{"memory.swap.max", "0"},`, ``, groups},
		{"cgroup_linux.go", `{"memory.oom.group", "1"},`, ``, groups},
		{"cgroup_linux.go", `{"pids.max", strconv.Itoa(l.Processes)},`, ``, groups},
		{"cgroup_linux.go", `{"cpu.max", fmt.Sprintf("%d %d", int64(l.Processors*float64(cpuPeriod)), cpuPeriod)},`, ``, groups},
		{"cgroup_linux.go", `if err := c.ours(name, pid); err != nil {`, `if err := error(nil); err != nil {`, groups},
		{"cgroup_linux.go", "_ = killGroup(dir)\n\tfor", "for", groups},
		{"cgroup_linux.go", `f, free := unused(run); free {`, `f, _ := unused(run); true {`, groups},
		{"cgroup_linux.go", `if w.Group == "" {`, `if true {`, groups},
		{"worker.go", `if os.Geteuid() == 0 {`, `if false {`, "TestWorkerIsUnprivileged"},
		{"manager.go", `return &syscall.Credential{Uid: uint32(m.uid), Gid: uint32(m.gid)}`, `_, _ = m.uid, m.gid; return nil`, ""},
		{"workspace.go", `Env: workerEnv(w.m.setup.path())`, `Env: append(os.Environ(), workerEnv(w.m.setup.path())...)`, ""},
		{"command.go", `if os.Geteuid() == 0 {`, `if false {`, "TestWorkerIsUnprivileged"},
		{"limits_linux.go", `own.Max >= uint64(w.Limits.OpenFiles)`, `true`, "TestTooFewOpenFiles"},

		{"limits_linux.go", `"--core=0", `, ``, "TestCommandLimits"},
		{"limits_linux.go", `fmt.Sprintf("--nofile=%d", l.OpenFiles), `, ``, ""},
		{"limits_linux.go", `fmt.Sprintf("--fsize=%d", l.FileBytes),`, ``, ""},
		{"limits_linux.go", `int64(l.CPU/time.Second)`, `int64(time.Hour/time.Second)`, ""},
		{"limits_linux.go", `args = append(args, fmt.Sprintf("--nproc=%d", l.Processes))`, `args = append(args, "--nproc=9999")`, limits},
		{"command.go", `if was >= 0 && f.left < 0`, `if false && was < 0`, limits},
		{"command.go", `limited, stop := context.WithTimeoutCause(ctx, wall,`, `limited, stop := context.WithTimeoutCause(ctx, wall+time.Minute,`, limits},
		{"watch.go", `kill(classMemory)`, ``, limits},
		{"memory_linux.go", `return own+files > limit || proportional(pids)+files > limit`, `return own+files > limit`, shared},
		{"memory_linux.go", `total += int64(st.Blocks-st.Bfree) * st.Bsize`, `total += 0 * st.Bsize`, shared},
		{"seccomp_linux.go", `p.jump(unix.BPF_JGT, get.most, 0, 1)`, `p.jump(unix.BPF_JGT, get.most, 1, 1)`, shared + "|TestSeccompFilter"},
		{"seccomp_linux.go", `p.jump(unix.BPF_JEQ, 0, 0, 2)`, `p.jump(unix.BPF_JEQ, 0, 0, 0)`, "TestSeccompFilter"},
		{"worker.go", `w.laid = false`, ``, "TestNoCacheOutlivesACheckout"},
		{"watch.go", `if free < w.Limits.Reserve && `, `if false && `, "TestReserve"},
		{"watch.go", `if left := spareFiles(w.Dir); left < 0 && `, `if left := spareFiles(w.Dir); left < files-1<<40 && `, "TestFilesWithoutEnd"},
		{"sweep.go", `case spareFiles(dir) < 0:`, `case false:`, "TestFilesWithoutEnd"},
		{"sweep.go", `unix.LOCK_EX|unix.LOCK_NB`, `unix.LOCK_SH|unix.LOCK_NB`, "TestSweep"},
		{"remove.go", `if depth == removeDepth {`, `if false {`, "TestRemoveTree"},
		{"files_linux.go", `unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW`, `unix.O_PATH|unix.O_DIRECTORY`, "TestOpenToRemove"},
		{"watch.go", `if w.outgrown() {`, `if false {`, limits},
		{"watch.go", `files > t.limits.TreeFiles || `, ``, limits},
		{"watch.go", ` || bytes > t.limits.TreeBytes`, ``, limits},
		{"watch.go", `return over || err != nil, hidden`, `return over, hidden`, limits},
		{"watch.go", `return over || hidden && w.freeAtFirst-freeBytes(w.Dir) > w.Limits.TreeBytes`, `return over`, limits},
		{"watch.go", `dirs := []string{w.copies()}`, `dirs := []string{}`, limits},

		{"seccomp_linux.go", `p.jump(unix.BPF_JEQ, arch.audit, 1, 0)`, `p.jump(unix.BPF_JEQ, arch.audit, 1, 1)`, ""},
		{"seccomp_linux.go", `if arch.x32 {`, `if false {`, ""},
		{"seccomp_linux.go", `p.jump(unix.BPF_JSET, newNamespaces, 0, 1)`, `p.jump(unix.BPF_JSET, newNamespaces, 1, 1)`, ""},
		{"seccomp_linux.go", `p.jump(unix.BPF_JEQ, unix.TIOCSTI, 1, 0)`, `p.jump(unix.BPF_JEQ, 1, 1, 0)`, ""},
		{"seccomp_linux.go", `p.jump(unix.BPF_JEQ, tioclinux, 0, 1)`, `p.jump(unix.BPF_JEQ, 1, 0, 1)`, ""},
		{"seccomp_linux.go", `unix.AF_INET6, unix.AF_NETLINK}`, `unix.AF_INET6, unix.AF_NETLINK, unix.AF_VSOCK}`, ""},
	}...)
	for _, flag := range []string{"NEWNS | ", "NEWCGROUP | ", "NEWUTS | ", "NEWUSER | ", "NEWPID | "} {
		all = append(all, protection{file: "seccomp_linux.go", text: "unix.CLONE_" + flag})
	}
	source, err := os.ReadFile(filepath.Join(top, "pipeline/sandbox/seccomp_linux.go"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(source)) { // a system call that is refused: {"ptrace", unix.EPERM, 101, 117},
		if row := strings.TrimSpace(line); strings.HasPrefix(row, `{"`) && strings.Contains(row, ", unix.E") && strings.HasSuffix(row, "},") {
			all = append(all, protection{file: "seccomp_linux.go", text: row})
		}
	}
	for i := range all {
		all[i].file, all[i].tests = "pipeline/sandbox/"+all[i].file, cmp.Or(all[i].tests, guards)
	}
	return all
}
