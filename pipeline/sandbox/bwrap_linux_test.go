package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/workspace"
)

// Covers S3: the probe finds namespaces, capabilities, NoNewPrivs and the filter in place.
func TestProbe(t *testing.T) {
	needBwrap(t)
	m := newManager(t, Options{})
	if err := m.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := m.probed
	if err := m.Probe(t.Context()); err != nil || m.probed != first {
		t.Errorf("a second Probe looked again: %v", err)
	}
	m.now = func() time.Time { return first.Add(probeFor) }
	if err := m.Probe(t.Context()); err != nil || m.probed == first {
		t.Errorf("a Probe after five minutes did not look again: %v", err)
	}
}

// Covers S1: whatever breaks the sandbox, no command runs.
func TestFailClosed(t *testing.T) {
	needBwrap(t)
	f := newFixture(t, sources)
	noUserns := filepath.Join(openDir(t), "bwrap")
	script := "#!/bin/sh\nexec unshare -U -r /bin/sh -c 'echo 0 >/proc/sys/user/max_user_namespaces; exec bwrap \"$@\"' sh \"$@\"\n"
	if err := writeFile(noUserns, script, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		o     Options
		spoil func(t *testing.T, m *Manager)
		want  string
	}{
		{name: "bubblewrap is gone", o: Options{Bwrap: "/nonexistent/bwrap"}, want: "no such file"},
		{name: "bubblewrap was never there", spoil: func(_ *testing.T, m *Manager) { m.setup.Bwrap = "" }, want: "apt-get install bubblewrap"},
		{name: "no user namespaces", o: Options{Bwrap: noUserns}, want: "max_user_namespaces"},
		{name: "empty seccomp program", o: Options{Args: []string{workerArg, "nofilter"}}, want: "SECCOMP"},
		{name: "a mount's source is gone", o: Options{Toolchains: []string{mkdir(t, "tools")}}, spoil: func(t *testing.T, m *Manager) {
			if err := os.RemoveAll(m.setup.Toolchains[len(m.setup.Toolchains)-1]); err != nil {
				t.Fatal(err)
			}
		}, want: "source path"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newManager(t, tt.o)
			if tt.spoil != nil {
				tt.spoil(t, m)
			}
			w := f.open(t, m, f.head)
			m.probed = m.now()
			_, err := w.Run(t.Context(), workspace.Command{Args: []string{"/bin/sh", "-c", "echo ran >ran"}})
			var fault *pipeline.Fault
			if !errors.As(err, &fault) || fault.Class != pipeline.FaultSandbox || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Run = %v; want a sandbox fault that says %q", err, tt.want)
			}
			if _, err := w.Read(t.Context(), "ran"); err == nil {
				t.Error("the command ran")
			}
			if err := m.Probe(t.Context()); !errors.As(err, &fault) {
				t.Errorf("Probe after a sandbox error = %v; want a fault, not what was known before", err)
			}
		})
	}
}

func mkdir(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(openDir(t), name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Covers S4, S7, S10 and a part of S5: what a command sees, and what it can reach.
func TestInsideTheSandbox(t *testing.T) {
	needBwrap(t)
	const canary = "canary-5e1f"
	t.Setenv("FORGE_CANARY", canary)
	secret := filepath.Join(openDir(t), "secret")
	if err := writeFile(secret, canary, 0o644); err != nil {
		t.Fatal(err)
	}
	inherited(t, secret)
	host, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	_, port, _ := net.SplitHostPort(host.Addr().String())

	f := newFixture(t, sources)
	w := f.open(t, newManager(t, Options{}), f.head)
	for _, tt := range []struct {
		name, script string
		want         string // exact output; the script turns a success of the attack into something else
	}{
		{"work tree", "pwd; cat README.md; id -u", "/work\nhello\n1000\n"},
		{"write the work tree", "echo x >x && cat x", "x\n"},
		{"environment", "env | grep -c -e canary -e FORGE || true", "0\n"},
		{"other processes' environment", "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -v grep | grep -c 5e1[f] || true", "0\n"},
		{"init's environment", "tr '\\0' '\\n' </proc/1/environ | grep -v ^PATH= | grep -c . || true", "0\n"},
		{"init's arguments", "tr '\\0' '\\n' </proc/1/cmdline | grep -c -e 'ro-bin[d]' -e 'forge-sandbo[x]' || true", "0\n"},
		{"descriptors", "ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 "},
		{"the host's files", "cat " + secret + " /etc/shadow /root/.bashrc 2>/dev/null; ls -d /var /run /sys /boot /root /home/* 2>/dev/null; true", "/home/sbx\n"},
		{"devices", "ls /dev/kvm /dev/fuse /dev/net /dev/vda /dev/mem 2>/dev/null; true", ""},
		{"write outside", "for p in /x /usr/x /etc/x /dev/x /work/../x; do touch $p 2>/dev/null && echo $p; done; true", ""},
		{"core pattern", "{ echo x >/proc/sys/kernel/core_pattern; } 2>/dev/null && echo written; true", ""},
		{"host's loopback", "timeout 2 bash -c 'echo >/dev/tcp/127.0.0.1/" + port + "' 2>/dev/null && echo connected; true", ""},
		{"metadata service", "timeout 2 bash -c 'echo >/dev/tcp/169.254.169.254/80' 2>/dev/null && echo connected; true", ""},
		{"the internet", "timeout 2 bash -c 'echo >/dev/tcp/1.1.1.1/443' 2>/dev/null && echo connected; true", ""},
		{"the host's processes", "kill -0 " + strconv.Itoa(os.Getpid()) + " 2>/dev/null && echo there; true", ""},
		{"namespaces", "unshare -U true 2>/dev/null && echo user; unshare -r -m true 2>/dev/null && echo mount; unshare -n true 2>/dev/null && echo net; true", ""},
		{"mounts", "mount -t tmpfs none /work 2>/dev/null && echo mounted; mount -o remount,rw / 2>/dev/null && echo remounted; true", ""},
		{"a git directory", "ls -d .git 2>/dev/null; true", ""},
		{"loopback inside", "ls /sys/class/net 2>/dev/null; grep -c : /proc/net/dev", "1\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := mustRun(t.Context(), t, w, tt.script)
			if string(r.Stdout) != tt.want || r.Exit != 0 {
				t.Errorf("%s\n= %d %q %q; want %q", tt.script, r.Exit, r.Stdout, r.Stderr, tt.want)
			}
		})
	}
}

// Covers S6 in the running kernel: each call is refused. The same numbers are
// looked at without a kernel in TestSeccompFilter.
func TestSystemCallsInside(t *testing.T) {
	needBwrap(t)
	f := newFixture(t, sources)
	w := f.open(t, newManager(t, Options{}), f.head)
	// A row is a name, an expected outcome, a call's number and its arguments.
	const probe = `
use Errno;
for (split /\n/, $ARGV[0]) {
	my ($name, $want, $nr, @args) = split / /;
	my $r = syscall($nr, map { $_ + 0 } @args);
	my $got = $r == -1 ? $!+0 : "done";
	POSIX::close($r) if $got eq "done";
	print "$name: $got, want $want\n" if $got ne $want;
}
print "all\n";`
	arch := seccompArchs["amd64"]
	if r := mustRun(t.Context(), t, w, "uname -m"); string(r.Stdout) == "aarch64\n" {
		arch = seccompArchs["arm64"]
	}
	var rows []string
	row := func(name string, want any, numbers ...any) {
		rows = append(rows, strings.TrimSpace(fmt.Sprintln(append([]any{name, want}, numbers...)...)))
	}
	for _, d := range wantDenied(t) {
		if n := arch.number(d); n >= 0 {
			row(d.name, int(d.errno), n, 0, 0, 0, 0, 0)
		}
	}
	for family, want := range map[int]any{40: 97, 17: 97, 38: 97, 16: "done", 1: "done", 2: "done"} {
		row(fmt.Sprint("socket-of-family-", family), want, arch.socket, family, 2, 0)
	}
	for _, flag := range []int{0x00020000, 0x10000000, 0x20000000, 0x40000000} {
		row(fmt.Sprintf("clone-with-%#x", flag), 1, arch.clone, flag|17, 0, 0, 0, 0)
	}
	row("TIOCSTI", 1, arch.ioctl, 0, 0x5412, 0)
	r, err := w.Run(t.Context(), workspace.Command{Args: []string{"perl", "-MPOSIX", "-e", probe, strings.Join(rows, "\n")}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Exit == 127 {
		t.Skip("needs perl: apt-get install perl")
	}
	if string(r.Stdout) != "all\n" {
		t.Errorf("%s%s", r.Stdout, r.Stderr)
	}
}

// A command in the sandbox against one without: performance.md allows 15 ms more.
func BenchmarkRun(b *testing.B) {
	f := newFixture(b, map[string]string{"a": "a"})
	for _, unsafe := range []bool{true, false} {
		b.Run(fmt.Sprintf("unsafe=%v", unsafe), func(b *testing.B) {
			if !unsafe {
				needBwrap(b)
			}
			w := f.open(b, newManager(b, Options{Unsafe: unsafe}), f.head)
			for b.Loop() {
				if _, err := w.Run(b.Context(), workspace.Command{Args: []string{"true"}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
