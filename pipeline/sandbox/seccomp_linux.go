package sandbox

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// denied is a system call that no command may make. The numbers are those of
// x/sys/unix; -1 where the architecture has no such call.
type denied struct {
	name         string
	errno        unix.Errno
	amd64, arm64 int
}

// deniedCalls is the deny list. personality is left out on purpose: the race
// detector turns address randomisation off with it.
var deniedCalls = []denied{
	// Keys, tracing, other processes' memory.
	{"add_key", unix.EPERM, 248, 217},
	{"request_key", unix.EPERM, 249, 218},
	{"keyctl", unix.EPERM, 250, 219},
	{"ptrace", unix.EPERM, 101, 117},
	{"process_vm_readv", unix.EPERM, 310, 270},
	{"process_vm_writev", unix.EPERM, 311, 271},
	{"process_madvise", unix.EPERM, 440, 440},
	{"process_mrelease", unix.EPERM, 448, 448},
	{"kcmp", unix.EPERM, 312, 272},
	{"pidfd_getfd", unix.EPERM, 438, 438},
	// Programs in the kernel, and what attackers need to win races against it.
	{"bpf", unix.EPERM, 321, 280},
	{"userfaultfd", unix.EPERM, 323, 282},
	{"perf_event_open", unix.EPERM, 298, 241},
	// Programs fall back from these.
	{"io_uring_setup", unix.ENOSYS, 425, 425},
	{"io_uring_enter", unix.ENOSYS, 426, 426},
	{"io_uring_register", unix.ENOSYS, 427, 427},
	{"clone3", unix.ENOSYS, 435, 435},
	// Memory without a name that no count finds, once it is not mapped; /dev/shm is there.
	{"memfd_create", unix.ENOSYS, 319, 279},
	{"memfd_secret", unix.ENOSYS, 447, 447},
	// Namespaces and mounts.
	{"unshare", unix.EPERM, 272, 97},
	{"setns", unix.EPERM, 308, 268},
	{"mount", unix.EPERM, 165, 40},
	{"umount2", unix.EPERM, 166, 39},
	{"pivot_root", unix.EPERM, 155, 41},
	{"chroot", unix.EPERM, 161, 51},
	{"move_mount", unix.EPERM, 429, 429},
	{"open_tree", unix.EPERM, 428, 428},
	{"open_tree_attr", unix.EPERM, 467, 467},
	{"fsopen", unix.EPERM, 430, 430},
	{"fsmount", unix.EPERM, 432, 432},
	{"fsconfig", unix.EPERM, 431, 431},
	{"fspick", unix.EPERM, 433, 433},
	{"mount_setattr", unix.EPERM, 442, 442},
	{"statmount", unix.EPERM, 457, 457},
	{"listmount", unix.EPERM, 458, 458},
	{"open_by_handle_at", unix.EPERM, 304, 265},
	{"name_to_handle_at", unix.EPERM, 303, 264},
	{"fanotify_init", unix.EPERM, 300, 262},
	// The machine itself.
	{"kexec_load", unix.EPERM, 246, 104},
	{"kexec_file_load", unix.EPERM, 320, 294},
	{"init_module", unix.EPERM, 175, 105},
	{"finit_module", unix.EPERM, 313, 273},
	{"delete_module", unix.EPERM, 176, 106},
	{"swapon", unix.EPERM, 167, 224},
	{"swapoff", unix.EPERM, 168, 225},
	{"reboot", unix.EPERM, 169, 142},
	{"acct", unix.EPERM, 163, 89},
	{"quotactl", unix.EPERM, 179, 60},
	{"quotactl_fd", unix.EPERM, 443, 443},
	{"syslog", unix.EPERM, 103, 116},
	{"settimeofday", unix.EPERM, 164, 170},
	{"clock_settime", unix.EPERM, 227, 112},
	{"clock_adjtime", unix.EPERM, 305, 266},
	{"adjtimex", unix.EPERM, 159, 171},
	{"sethostname", unix.EPERM, 170, 161},
	{"setdomainname", unix.EPERM, 171, 162},
	{"vhangup", unix.EPERM, 153, 58},
	{"nfsservctl", unix.EPERM, 180, 42},
	{"lookup_dcookie", unix.EPERM, 212, 18},
	{"iopl", unix.EPERM, 172, -1},
	{"ioperm", unix.EPERM, 173, -1},
	{"modify_ldt", unix.EPERM, 154, -1},
	{"move_pages", unix.EPERM, 279, 239},
	{"migrate_pages", unix.EPERM, 256, 238},
	{"uselib", unix.EPERM, 134, -1},
	{"_sysctl", unix.EPERM, 156, -1},
	{"create_module", unix.EPERM, 174, -1},
	{"get_kernel_syms", unix.EPERM, 177, -1},
	{"query_module", unix.EPERM, 178, -1},
	{"ustat", unix.EPERM, 136, -1},
	{"sysfs", unix.EPERM, 139, -1},
}

// seccompArch is what the filter needs to know of an architecture.
type seccompArch struct {
	audit                uint32 // AUDIT_ARCH_*
	clone, ioctl, socket uint32
	shmget, semget       uint32
	x32                  bool // has a second table of calls, from x32Bit on
	number               func(denied) int
}

var seccompArchs = map[string]seccompArch{
	"amd64": {unix.AUDIT_ARCH_X86_64, 56, 16, 41, 29, 64, true, func(d denied) int { return d.amd64 }},
	"arm64": {unix.AUDIT_ARCH_AARCH64, 220, 29, 198, 194, 190, false, func(d denied) int { return d.arm64 }},
}

const x32Bit = 0x40000000

// maxSegment is more than a database server locks itself with. A namespace has 4,096
// segments at most, 64 MiB of these.
const maxSegment = 16 << 10

// maxSemaphores are more than programs put into one set. A namespace has 32,000 sets at most,
// 70 MiB of these; the kernel's limit of 32,000 in each would be 65 GiB.
const maxSemaphores = 32

// newNamespaces are the flags of clone(2) that make namespaces. CLONE_NEWTIME is
// not among them: clone takes that bit for part of the exit signal.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// socketFamilies are all that a command may open: a network namespace does not
// hold the others back (AF_VSOCK reaches the hypervisor).
var socketFamilies = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// Offsets in struct seccomp_data; of arguments, the lower half.
const (
	dataNumber = 0
	dataArch   = 4
	dataArg0   = 16
	dataArg1   = 24
	dataArg1Up = 28 // its upper half, on machines of little endian
)

// program collects BPF instructions.
type program []unix.SockFilter

func (p *program) load(offset uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

// jump skips then or otherwise instructions, by the test of the loaded value with k.
func (p *program) jump(test uint16, k uint32, then, otherwise uint8) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: then, Jf: otherwise, K: k})
}

func (p *program) ret(action uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
}

func (p *program) refuse(errno unix.Errno) { p.ret(unix.SECCOMP_RET_ERRNO | uint32(errno)) }

// seccompProgram returns the filter for an architecture in the form that
// bubblewrap reads.
func seccompProgram(goarch string) ([]byte, error) {
	arch, ok := seccompArchs[goarch]
	if !ok {
		return nil, fmt.Errorf("there is no seccomp filter for %s, only for amd64 and arm64", goarch)
	}
	var raw []byte
	for _, i := range seccompFilter(arch) {
		raw = binary.NativeEndian.AppendUint16(raw, i.Code)
		raw = append(raw, i.Jt, i.Jf)
		raw = binary.NativeEndian.AppendUint32(raw, i.K)
	}
	return raw, nil
}

func seccompFilter(arch seccompArch) program {
	var p program
	p.load(dataArch)
	p.jump(unix.BPF_JEQ, arch.audit, 1, 0)
	p.ret(unix.SECCOMP_RET_KILL_PROCESS)
	p.load(dataNumber)
	if arch.x32 {
		p.jump(unix.BPF_JGE, x32Bit, 0, 1)
		p.ret(unix.SECCOMP_RET_KILL_PROCESS)
	}
	for _, d := range deniedCalls {
		if n := arch.number(d); n >= 0 {
			p.jump(unix.BPF_JEQ, uint32(n), 0, 1)
			p.refuse(d.errno)
		}
	}
	// clone: not with new namespaces.
	p.jump(unix.BPF_JEQ, arch.clone, 0, 4)
	p.load(dataArg0)
	p.jump(unix.BPF_JSET, newNamespaces, 0, 1)
	p.refuse(unix.EPERM)
	p.ret(unix.SECCOMP_RET_ALLOW)
	// ioctl: not to put input into a terminal.
	p.jump(unix.BPF_JEQ, arch.ioctl, 0, 5)
	p.load(dataArg1)
	p.jump(unix.BPF_JEQ, unix.TIOCSTI, 1, 0)
	p.jump(unix.BPF_JEQ, tioclinux, 0, 1)
	p.refuse(unix.EPERM)
	p.ret(unix.SECCOMP_RET_ALLOW)
	// shmget, semget: not what is great, and stays when nothing uses it.
	for _, get := range []struct {
		number, most uint32
		errno        unix.Errno
	}{{arch.shmget, maxSegment, unix.ENOMEM}, {arch.semget, maxSemaphores, unix.ENOSPC}} {
		p.jump(unix.BPF_JEQ, get.number, 0, 6)
		p.load(dataArg1Up)
		p.jump(unix.BPF_JEQ, 0, 0, 2)
		p.load(dataArg1)
		p.jump(unix.BPF_JGT, get.most, 0, 1)
		p.refuse(get.errno)
		p.ret(unix.SECCOMP_RET_ALLOW)
	}
	// socket: the few families, nothing else.
	p.jump(unix.BPF_JEQ, arch.socket, 1, 0)
	p.ret(unix.SECCOMP_RET_ALLOW)
	p.load(dataArg0)
	for i, family := range socketFamilies {
		p.jump(unix.BPF_JEQ, family, uint8(len(socketFamilies)-i), 0)
	}
	p.refuse(unix.EAFNOSUPPORT)
	p.ret(unix.SECCOMP_RET_ALLOW)
	return p
}

// tioclinux is TIOCLINUX of ioctl_console(2), which can paste into a terminal.
const tioclinux = 0x541C
