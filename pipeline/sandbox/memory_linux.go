package sandbox

import (
	"bytes"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memory counts what a command holds. Its own pages the kernel counts for each process.
// Pages that processes share are in no process' count once they are let go, and in many
// while they are mapped, so they are counted by what holds them: the file systems in
// memory that the sandbox has, and each shared mapping once. Everything else that
// could hold pages unseen, files without a name and big segments, the filter refuses.
type memory struct {
	mounts []string // file systems in memory, as the command sees them
	before int64    // what the whole machine had shared, at its least since the beginning
	read   int64    // what it had when mappings were last read
	mapped int64    // what the command had mapped then

	// What each piece was seen to hold: one of which all but a page is unmapped keeps
	// the rest.
	pieces map[string]piece
}

// piece is memory without a file that processes share.
type piece struct {
	reach    uint64 // how far it was seen to reach, in bytes
	resident uint64 // the most of it that one process was seen to have in memory
}

const (
	readEvery  = 64 << 20 // mappings are read whenever so much more is shared
	manyPieces = 64       // of shared memory are more than an honest command has
)

// countMemory begins to count, before or just after a command starts.
func (w *worker) countMemory() *memory {
	m := &memory{before: sharedByAll(), pieces: map[string]piece{}}
	m.read = m.before
	if !w.Unsafe {
		m.mounts = w.inMemory
	}
	return m
}

// over reports whether processes hold more than a limit. Most looks read a number a
// process and one of the machine; only where those do not settle it, mappings are read.
func (m *memory) over(pids []int, limit int64) bool {
	own, mapped := pagesOf(pids)
	now := sharedByAll()
	m.before, m.read, m.mapped = min(m.before, now), min(m.read, now), min(m.mapped, mapped)
	grown := now - m.before // by all that runs here: never less than what the command has
	if own > limit {
		return true
	}
	every := min(readEvery, limit/8)
	if own+mapped <= limit && own+grown <= limit && now-m.read < every && mapped-m.mapped < every {
		return false
	}
	m.read, m.mapped = now, mapped
	return own+m.shared(pids, grown) > limit
}

// shared is what processes have in memory together, each piece once.
func (m *memory) shared(pids []int, grown int64) int64 {
	if !m.look(pids) || len(m.pieces) > manyPieces {
		return grown // whoever hides is held to what the machine has
	}
	var reach, resident int64
	for _, p := range m.pieces {
		reach += int64(min(p.reach, math.MaxInt64/(2*manyPieces)))
		resident += int64(min(p.resident, math.MaxInt64/(2*manyPieces)))
	}
	// A piece may be greater than what was ever written to it, and what the machine has
	// more says too little while others let go of theirs.
	return m.files(pids) + max(min(reach, grown), resident)
}

// files is what lies in the sandbox's file systems in memory. Its first process has
// them all for as long as it lives.
func (m *memory) files(pids []int) int64 {
	for _, pid := range slices.Backward(pids) { // the oldest is outside
		var total int64
		seen := 0
		for _, dir := range m.mounts {
			var st unix.Statfs_t
			if err := unix.Statfs("/proc/"+strconv.Itoa(pid)+"/root"+dir, &st); err == nil && st.Type == unix.TMPFS_MAGIC {
				total += int64(st.Blocks-st.Bfree) * st.Bsize
				seen++
			}
		}
		if seen == len(m.mounts) {
			return total
		}
	}
	return 0
}

// pagesOf is what processes have of their own, swapped out or not, and what of files
// and shared memory they have mapped, each for itself.
func pagesOf(pids []int) (own, mapped int64) {
	for _, pid := range pids {
		field := strings.Fields(string(procFile("/proc/" + strconv.Itoa(pid) + "/statm")))
		if len(field) < 3 {
			continue
		}
		resident, _ := strconv.ParseInt(field[1], 10, 64)
		shared, _ := strconv.ParseInt(field[2], 10, 64)
		own, mapped = own+resident-shared, mapped+shared
	}
	page := int64(os.Getpagesize())
	return own * page, mapped * page
}

// sharedByAll is what the whole machine has in shared memory and in file systems in
// memory; nothing is known where the kernel does not tell.
func sharedByAll() int64 {
	_, rest, _ := bytes.Cut(procFile("/proc/meminfo"), []byte("\nShmem:"))
	field := bytes.Fields(rest[:min(len(rest), 64)])
	if len(field) == 0 {
		return math.MaxInt64 / 4
	}
	kib, _ := strconv.ParseInt(string(field[0]), 10, 64)
	return kib << 10
}

// look reads which memory without a file processes have mapped shared; false when one
// of them does not let itself be looked into.
func (m *memory) look(pids []int) bool {
	seen := map[string]piece{}
	for _, pid := range pids {
		name := "/proc/" + strconv.Itoa(pid) + "/"
		fd, err := unix.Open(name+"maps", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			return false
		}
		if err != nil {
			continue // it has ended
		}
		unix.Close(fd)
		if len(sharedIn(procFile(name+"maps"))) == 0 {
			continue // as for most: what is in memory takes the kernel longer to tell
		}
		for inode, p := range sharedIn(procFile(name + "smaps")) {
			for _, other := range []piece{seen[inode], m.pieces[inode]} {
				p.reach, p.resident = max(p.reach, other.reach), max(p.resident, other.resident)
			}
			seen[inode] = p
		}
	}
	m.pieces = seen
	return true
}

// sharedIn reads the pieces of shared memory, by inode, from a process' list of
// mappings, with or without what of them is in memory.
func sharedIn(list []byte) map[string]piece {
	pieces := map[string]piece{}
	inode := ""
	for row := range bytes.Lines(list) {
		// from-to permissions offset device inode name, or Key: value kB
		field := bytes.Fields(row)
		switch {
		case len(field) == 3 && string(field[0]) == "Rss:" && inode != "":
			kib, _ := strconv.ParseUint(string(field[1]), 10, 64)
			p := pieces[inode]
			p.resident += kib << 10
			pieces[inode] = p
		case len(field) < 5 || len(field[1]) < 4:
		case len(field) < 6 || field[1][3] != 's' || !nameless(field[5]):
			inode = ""
		default:
			from, to, _ := bytes.Cut(field[0], []byte("-"))
			low, _ := strconv.ParseUint(string(from), 16, 64)
			high, _ := strconv.ParseUint(string(to), 16, 64)
			offset, _ := strconv.ParseUint(string(field[2]), 16, 64)
			inode = string(field[4])
			p := pieces[inode]
			p.reach = max(p.reach, offset+high-low)
			pieces[inode] = p
		}
	}
	return pieces
}

// nameless reports whether a mapping's name is one of those that the kernel gives to
// shared memory.
func nameless(name []byte) bool {
	for _, prefix := range []string{"/dev/zero", "/memfd:", "/SYSV"} {
		if bytes.HasPrefix(name, []byte(prefix)) {
			return true
		}
	}
	return false
}
