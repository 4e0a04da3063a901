package sandbox

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// interpret runs a classic BPF program as the kernel does, on seccomp's data.
func interpret(t *testing.T, p program, data []byte) uint32 {
	t.Helper()
	var a uint32
	for pc := 0; pc < len(p); pc++ {
		i := p[pc]
		hit := false
		switch i.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = binary.LittleEndian.Uint32(data[i.K:])
			continue
		case unix.BPF_RET | unix.BPF_K:
			return i.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			hit = a == i.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			hit = a >= i.K
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			hit = a > i.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			hit = a&i.K != 0
		default:
			t.Fatalf("instruction %d: code %#x", pc, i.Code)
		}
		if hit {
			pc += int(i.Jt)
		} else {
			pc += int(i.Jf)
		}
	}
	t.Fatal("the program ran over its end")
	return 0
}

// wantDenied reads the calls that must be refused. They stand a second time in
// testdata, so that one that is taken off the filter's list is missed.
func wantDenied(t *testing.T) []denied {
	t.Helper()
	text, err := os.ReadFile("testdata/denied.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []denied
	for row := range strings.Lines(string(text)) {
		if strings.HasPrefix(row, "#") {
			continue
		}
		var d denied
		var errno string
		if _, err := fmt.Sscan(row, &d.name, &errno, &d.amd64, &d.arm64); err != nil {
			t.Fatalf("%q: %v", row, err)
		}
		d.errno = map[string]unix.Errno{"EPERM": unix.EPERM, "ENOSYS": unix.ENOSYS}[errno]
		all = append(all, d)
	}
	return all
}

// Covers S6 on both architectures.
func TestSeccompFilter(t *testing.T) {
	errno := func(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }
	const allow, kill = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_KILL_PROCESS
	for goarch, arch := range seccompArchs {
		filter := seccompFilter(arch)
		if len(filter) > 4096 {
			t.Errorf("%s: %d instructions, the kernel takes 4096", goarch, len(filter))
		}
		call := func(audit, nr uint32, args ...uint64) uint32 {
			data := make([]byte, 64)
			binary.LittleEndian.PutUint32(data, nr)
			binary.LittleEndian.PutUint32(data[4:], audit)
			for i, v := range args {
				binary.LittleEndian.PutUint64(data[16+8*i:], v)
			}
			return interpret(t, filter, data)
		}
		type row struct {
			name string
			got  uint32
			want uint32
		}
		rows := []row{
			{"another architecture", call(unix.AUDIT_ARCH_I386, 1), kill},
			{"fork", call(arch.audit, arch.clone, 17), allow},
			{"thread", call(arch.audit, arch.clone, unix.CLONE_VM|unix.CLONE_THREAD|unix.CLONE_SIGHAND), allow},
			{"isatty", call(arch.audit, arch.ioctl, 0, unix.TCGETS), allow},
			{"TIOCSTI", call(arch.audit, arch.ioctl, 0, unix.TIOCSTI), errno(unix.EPERM)},
			{"TIOCSTI in 64 bits", call(arch.audit, arch.ioctl, 0, 1<<32|unix.TIOCSTI), errno(unix.EPERM)},
			{"a segment of shared memory", call(arch.audit, arch.shmget, 0, 16<<10, 0o1600), allow},
			{"one of a page more", call(arch.audit, arch.shmget, 0, 16<<10+1, 0o1600), errno(unix.ENOMEM)},
			{"a set of semaphores", call(arch.audit, arch.semget, 0, 32, 0o1600), allow},
			{"one of a semaphore more", call(arch.audit, arch.semget, 0, 33, 0o1600), errno(unix.ENOSPC)},
			{"one of 4 GiB", call(arch.audit, arch.shmget, 0, 1<<32, 0o1600), errno(unix.ENOMEM)},
			{"one of 4 GiB and a page", call(arch.audit, arch.shmget, 0, 1<<32|4096, 0o1600), errno(unix.ENOMEM)},
			{"TIOCLINUX", call(arch.audit, arch.ioctl, 0, tioclinux), errno(unix.EPERM)},
		}
		if arch.x32 {
			rows = append(rows, row{"x32", call(arch.audit, x32Bit|1), kill})
		}
		for family := range uint64(64) {
			want := errno(unix.EAFNOSUPPORT)
			if family == unix.AF_UNIX || family == unix.AF_INET || family == unix.AF_INET6 || family == unix.AF_NETLINK {
				want = allow
			}
			rows = append(rows, row{"socket", call(arch.audit, arch.socket, family), want})
		}
		for _, flag := range []uint64{unix.CLONE_NEWNS, unix.CLONE_NEWUSER, unix.CLONE_NEWNET, unix.CLONE_NEWPID, unix.CLONE_NEWIPC,
			unix.CLONE_NEWUTS, unix.CLONE_NEWCGROUP} {
			rows = append(rows, row{"clone with a namespace", call(arch.audit, arch.clone, flag|17), errno(unix.EPERM)})
		}
		refused := map[uint32]bool{}
		for _, d := range wantDenied(t) {
			if n := arch.number(d); n >= 0 {
				refused[uint32(n)] = true
				rows = append(rows, row{d.name, call(arch.audit, uint32(n)), errno(d.errno)})
			}
		}
		for nr := range uint32(480) {
			if !refused[nr] && nr != arch.clone && nr != arch.ioctl && nr != arch.socket && nr != arch.shmget && nr != arch.semget {
				rows = append(rows, row{"any other call", call(arch.audit, nr), allow})
			}
		}
		for _, r := range rows {
			if r.got != r.want {
				t.Errorf("%s: %s: %#x; want %#x", goarch, r.name, r.got, r.want)
			}
		}
	}
	if _, err := seccompProgram("riscv64"); err == nil {
		t.Error("a filter for an architecture that has none")
	}
	if raw, err := seccompProgram(runtime.GOARCH); err != nil || len(raw)%8 != 0 || len(raw) == 0 {
		t.Errorf("program of %d bytes, %v", len(raw), err)
	}
}
