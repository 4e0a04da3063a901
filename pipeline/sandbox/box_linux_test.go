package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"forge/pipeline/workspace"
)

// Covers S3: bubblewrap's arguments, one option a line, without what differs from
// machine to machine. Some are second locks: what they shut is shut without them
// too, so that nothing inside shows that they are gone.
func TestBoxArguments(t *testing.T) {
	w := &worker{setup: setup{
		Dir: "/state/trees/run-1", Etc: "/state/etc", Toolchains: []string{"/opt/go"},
	}}
	w.tree = &tree{dir: "/state/trees/run-1/tree"}
	const locks = `--unshare-user
--unshare-pid
--unshare-net
--unshare-ipc
--unshare-uts
--unshare-cgroup
--uid 1000
--gid 1000
--disable-userns
--assert-userns-disabled
--die-with-parent
--new-session
--hostname sandbox
--cap-drop ALL
--seccomp 4
--json-status-fd 5
--clearenv
--ro-bind /usr /usr
--dir /etc
--ro-bind /state/etc/passwd /etc/passwd
--ro-bind /state/etc/group /etc/group
--ro-bind /state/etc/hosts /etc/hosts
--ro-bind /state/etc/nsswitch.conf /etc/nsswitch.conf
--proc /proc
--dev /dev
--size 67108864 --tmpfs /dev/shm
--remount-ro /dev
--size 268435456 --tmpfs /tmp
--size 67108864 --tmpfs /home/sbx
--ro-bind /opt/go /opt/go
--bind /state/trees/run-1/copies/tmp /scratch
`
	for _, tt := range []struct {
		name string
		set  func()
		want string
	}{
		{"a command", func() {}, locks + "--bind /state/trees/run-1/tree /work\n--chdir /work/sub\n--remount-ro /\n"},
		{"with an environment", func() {
			w.env, w.overlays = environment{Lowers: []string{"/state/deps/d"}}, true
		}, locks + "--bind /state/trees/run-1/copies/tree.merged /work\n--bind /state/trees/run-1/copies/home.merged /deps\n--chdir /work/sub\n--remount-ro /\n"},
		{"a set-up", func() {
			w.env = environment{}
			w.making = &preparation{Dir: "/state/deps/new-1", Exe: "/state/forge", Sockets: "/state/run"}
		},
			locks + "--bind /state/trees/run-1/tree /work\n--bind /state/deps/new-1/home /deps\n--ro-bind /state/forge /run/forge\n" +
				"--ro-bind /state/run /run/registries\n--chdir /work/sub\n--remount-ro /\n"},
	} {
		tt.set()
		args, _ := w.boxArgs(workspace.Command{Args: []string{"true"}}, "sub")
		if got := options(args); got != tt.want {
			t.Errorf("%s: bubblewrap's options are\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

// options lists bubblewrap's options, one a line; without the environment, and
// without the host's own directories in / and /etc, which are read-only.
func options(args []string) string {
	var rows []string
	for _, a := range args {
		if last := len(rows) - 1; strings.HasPrefix(a, "--") && (last < 0 || !isSize(rows[last])) {
			rows = append(rows, a)
		} else {
			rows[last] += " " + a
		}
	}
	var b strings.Builder
	for _, row := range rows {
		f := strings.Fields(row)
		shared := f[0] == "--ro-bind" && len(f) == 3 && f[1] == f[2] && f[1] != "/usr" && (strings.HasPrefix(f[1], "/etc/") || strings.Count(f[1], "/") == 1)
		if f[0] != "--setenv" && f[0] != "--symlink" && !shared {
			b.WriteString(row + "\n")
		}
	}
	return b.String()
}

// isSize reports whether a row is a size and no more: it belongs to what follows.
func isSize(row string) bool {
	return strings.HasPrefix(row, "--size ") && !strings.Contains(row, "--tmpfs")
}

// Covers S3: whatever a sandbox lacks, the probe says so.
func TestCheckProbe(t *testing.T) {
	const whole = "Name:\tcat\nPid:\t3\nUid:\t1000\t1000\t1000\t1000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n" +
		"NoNewPrivs:\t1\nSeccomp:\t2\n==\nInter-|   Receive\n face |bytes\n    lo:       0\n==\n3 (cat) R\n"
	if lack := checkProbe(whole); lack != "" {
		t.Errorf("a whole sandbox lacks %q", lack)
	}
	for _, tt := range []struct{ old, new, want string }{
		{"NoNewPrivs:\t1", "NoNewPrivs:\t0", "NoNewPrivs"}, {"Seccomp:\t2", "Seccomp:\t0", "Seccomp"}, {"CapEff:\t0", "CapEff:\t1", "CapEff"},
		{"CapPrm:\t0", "CapPrm:\t1", "CapPrm"}, {"CapBnd:\t0", "CapBnd:\t1", "CapBnd"}, {"Uid:\t1000", "Uid:\t0", "Uid"}, {"Uid:\t1000", "Gid:\t1000", "Uid"},
		{"    lo:", "  eth0:", "network"}, {"    lo:       0\n", "    lo:       0\n  eth0:       0\n", "network"}, {"Pid:\t3", "Pid:\t3000", "processes"},
		{"==\n3 (cat) R\n", "", "something else"},
	} {
		if lack := checkProbe(strings.Replace(whole, tt.old, tt.new, 1)); !strings.Contains(lack, tt.want) {
			t.Errorf("with %q for %q, a sandbox lacks %q; want it to speak of %s", tt.new, tt.old, lack, tt.want)
		}
	}
}

// Covers S3: namespaces, session, sizes and limits as a command finds them.
func TestConfinement(t *testing.T) {
	needBwrap(t)
	f := newFixture(t, sources)
	w := f.open(t, newManager(t, Options{Limits: Limits{Processes: 99, OpenFiles: 88, FileBytes: 7 << 20}}), f.head)
	for _, ns := range []string{"user", "pid", "net", "ipc", "uts", "cgroup", "mnt"} {
		host, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil {
			t.Fatal(err)
		}
		r := mustRun(t.Context(), t, w, "readlink /proc/self/ns/"+ns)
		if got := strings.TrimSpace(string(r.Stdout)); got == host || !strings.HasPrefix(got, ns+":[") {
			t.Errorf("the namespace %s is %q inside, %q outside", ns, got, host)
		}
	}
	for _, tt := range []struct{ name, script, want string }{
		{"session and process group, in the sandbox's own numbers",
			`read -r _ _ _ _ group session _ </proc/self/stat; test "$group" -gt 0 && test "$session" -gt 0 && echo own`, "own\n"},
		{"name of the machine", "uname -n", "sandbox\n"},
		{"user and group", "id -u; id -g; id -G", "1000\n1000\n1000\n"},
		{"sizes", "df -B1 --output=size,target /dev/shm /tmp $HOME | tail -n 3 | sed 's/^ *//'",
			"67108864 /dev/shm\n268435456 /tmp\n67108864 /home/sbx\n"},
		{"read-only", "awk '$2 == \"/\" || $2 == \"/usr\" || $2 == \"/dev\" {print $2, substr($4, 1, 2)}' /proc/mounts | sort",
			"/ ro\n/dev ro\n/usr ro\n"},
		{"limits", "awk '/core file|file size|open files|cpu time|processes/ {print $(NF-2), $(NF-1)}' /proc/self/limits",
			"600 600\n7340032 7340032\n0 0\n99 99\n88 88\n"},
		{"capabilities", "grep -c '^Cap[A-Za-z]*:.0000000000000000$' /proc/self/status", "5\n"},
	} {
		if r := mustRun(t.Context(), t, w, tt.script); string(r.Stdout) != tt.want {
			t.Errorf("%s: %q %q; want %q", tt.name, r.Stdout, r.Stderr, tt.want)
		}
	}
}

// Covers S3: a sandbox that is not whole is not trusted.
func TestProbeRefuses(t *testing.T) {
	needBwrap(t)
	weaker := filepath.Join(openDir(t), "bwrap")
	if err := writeFile(weaker, "#!/bin/sh\nshift 2\nexec bwrap --args 3 --cap-add ALL \"$@\"\n", 0o755); err != nil {
		t.Fatal(err)
	}
	err := newManager(t, Options{Bwrap: weaker}).Probe(t.Context())
	if err == nil || !strings.Contains(err.Error(), "Cap") {
		t.Errorf("Probe of a sandbox with capabilities = %v; want it refused", err)
	}
}

// inherited is an open file that every process started from here on has, too: Go
// itself would close it.
func inherited(t *testing.T, name string) *os.File {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	return file
}

// Covers S10: none of the worker's descriptors goes on to what it starts, whatever
// it inherited, and of its other locks none is open.
func TestWorkerLocks(t *testing.T) {
	if os.Geteuid() != 0 {
		return // none of this can be read by the same user: that is the point
	}
	leaked := inherited(t, "/etc/hostname")
	f := newFixture(t, map[string]string{"a": "a"})
	w := f.open(t, newManager(t, Options{Unsafe: true}), f.head)
	proc := fmt.Sprintf("/proc/%d/", w.cmd.Process.Pid)
	fds, err := os.ReadDir(proc + "fdinfo")
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, fd := range fds {
		info, err := os.ReadFile(filepath.Join(proc, "fdinfo", fd.Name()))
		_, flags, ok := strings.Cut(string(info), "flags:\t")
		flags, _, _ = strings.Cut(flags, "\n")
		bits, bad := strconv.ParseUint(flags, 8, 64)
		if err != nil || !ok || bad != nil {
			t.Fatalf("descriptor %s: %q, %v", fd.Name(), info, err)
		}
		if n, _ := strconv.Atoi(fd.Name()); n > 2 && bits&unix.O_CLOEXEC == 0 {
			target, _ := os.Readlink(proc + "fd/" + fd.Name())
			t.Errorf("what the worker starts has its descriptor %d, %s", n, target)
		}
		seen = seen || fd.Name() == strconv.Itoa(int(leaked.Fd()))
	}
	if !seen {
		t.Error("the descriptor was not inherited: nothing was tried")
	}
	for file, want := range map[string]string{"oom_score_adj": "500\n", "limits": "Max core file size        0                    0 "} {
		if got, err := os.ReadFile(proc + file); err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s = %q, %v; want %q", file, got, err, want)
		}
	}
}
