package sandbox

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"forge/pipeline/workspace"
)

// hoard is what the attacks have in common: memory that no process' own pages are.
const hoard = `
import ctypes, mmap, os, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.mmap.restype = ctypes.c_void_p
MiB = 1 << 20
block = b"x" * MiB
def fill(m, n):
    for i in range(n): m[i*MiB:(i+1)*MiB] = block
def anonymous(n):
    m = mmap.mmap(-1, n*MiB, flags=mmap.MAP_SHARED|mmap.MAP_ANONYMOUS)
    fill(m, n)
    return m
def memfd(n):
    fd = os.memfd_create("x")
    for i in range(n): os.write(fd, block)
    return fd
def segment(n):
    key = libc.shmget(0, ctypes.c_size_t(n*MiB), 0o1600)
    if key < 0: raise OSError(ctypes.get_errno(), "shmget")
    at = libc.shmat(key, None, 0)
    for i in range(n): ctypes.memset(at + i*MiB, 120, MiB)
    return at
def stay():
    print("has it", flush=True)
    time.sleep(60)
`

// Covers S8: memory that processes share counts as any other, by whatever name it is
// had; what cannot be counted cannot be had.
func TestSharedMemory(t *testing.T) {
	needBwrap(t)
	if err := exec.Command("/usr/bin/python3", "-c", "import mmap").Run(); err != nil {
		t.Skip("needs Python: apt-get install python3")
	}
	w := limited(t, false, Limits{Memory: 160 << 20, TreeBytes: 2 << 30, FileBytes: 1 << 30, Processes: 64})
	const kill, refuse, allow = "killed", "refused", "allowed"
	for _, tt := range []struct{ name, script, want string }{
		{"a shared mapping", "m = anonymous(400); stay()", kill},
		{"a mapping of /dev/zero", "f = open('/dev/zero', 'r+b'); m = mmap.mmap(f.fileno(), 400*MiB); fill(m, 400); stay()", kill},
		{"shared mappings of many processes", "for i in range(8):\n    if os.fork() == 0: m = anonymous(50); stay()\nstay()", kill},
		{"a process that cannot be looked into", "libc.prctl(4, 0, 0, 0, 0); m = anonymous(400); stay()", kill},
		{"a file in memory", "fd = memfd(400); stay()", refuse},
		{"a file in memory, on its way to nobody",
			"a, b = socket.socketpair()\nfor i in range(8):\n    fd = memfd(50); socket.send_fds(a, [b'x'], [fd]); os.close(fd)\nstay()", refuse},
		{"a segment", "segment(400); stay()", refuse},
		{"a segment, let go", "libc.shmdt(ctypes.c_void_p(segment(400))); stay()", refuse},
		{"many small segments, more than there can be", "for i in range(25600):\n    key = libc.shmget(0, ctypes.c_size_t(16384), 0o1600)\n" +
			"    if key < 0: raise OSError('shmget')\n    at = libc.shmat(key, None, 0); ctypes.memset(at, 120, 16384); libc.shmdt(ctypes.c_void_p(at))\nstay()", refuse},
		{"files of all that is in memory", "for d in ('/dev/shm', '/tmp', os.environ['HOME']):\n    f = open(d + '/x', 'wb')\n" +
			"    try:\n        for i in range(400): f.write(block)\n    except OSError: pass\nstay()", kill},

		// What honest programs do.
		{"one mapping that five processes share", "m = anonymous(80)\nfor i in range(4):\n    if os.fork() == 0: fill(m, 80); time.sleep(1.5); os._exit(0)\n" +
			"for i in range(4): os.wait()", allow},
		{"a great mapping, hardly used", "m = mmap.mmap(-1, 4000*MiB, flags=mmap.MAP_SHARED|mmap.MAP_ANONYMOUS); fill(m, 100); time.sleep(0.5)", allow},
		{"a file of the disk, mapped", "f = open('big', 'w+b'); f.truncate(400*MiB); m = mmap.mmap(f.fileno(), 400*MiB); fill(m, 400); time.sleep(0.5)", allow},
		{"a segment of a page", "key = libc.shmget(0, ctypes.c_size_t(4096), 0o1600); assert key >= 0; at = libc.shmat(key, None, 0); ctypes.memset(at, 1, 4096)", allow},
		{"a file in /dev/shm", "f = open('/dev/shm/x', 'wb')\nfor i in range(32): f.write(block)\nf.close(); time.sleep(0.3); os.remove('/dev/shm/x')", allow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := w.Run(t.Context(), workspace.Command{Args: []string{"/usr/bin/python3", "-c", hoard + tt.script}, Timeout: 3 * time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			got := allow
			switch {
			case r.Class == classMemory:
				got = kill
			case strings.Contains(string(r.Stderr), "Error"):
				got = refuse
			case r.Class != "" || r.Exit != 0:
				got = "neither"
			}
			if got != tt.want {
				t.Errorf("%s; want %s: class %q, exit %d: %s%.300s", got, tt.want, r.Class, r.Exit, r.Stdout, r.Stderr)
			}
			mustRun(t.Context(), t, w, "rm -f big")
		})
	}
}
