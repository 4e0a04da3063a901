package sandbox

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// overMemory reports whether processes hold more than a limit: it stands in for a control
// group where there is none. mounts are the file systems in memory that they have. Most looks
// read a number a process; only where what they share could settle it, their mappings are read.
func overMemory(pids []int, mounts []string, limit int64) bool {
	own, mapped := pagesOf(pids)
	files := filesInMemory(pids, mounts)
	if own+mapped+files <= limit {
		return false
	}
	return own+files > limit || proportional(pids)+files > limit
}

// pagesOf is what processes have of their own, and what of files and shared memory they
// have mapped, each for itself.
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

// proportional is what processes have of memory that is no file's, of what they share each
// its part. Of one that does not let itself be looked into, all that it has mapped counts.
func proportional(pids []int) (bytes int64) {
	for _, pid := range pids {
		parts, found := int64(0), false
		for line := range strings.Lines(string(procFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup"))) {
			field := strings.Fields(line) // Pss_Shmem: 1024 kB
			if len(field) == 3 && (field[0] == "Pss_Anon:" || field[0] == "Pss_Shmem:") {
				kib, _ := strconv.ParseInt(field[1], 10, 64)
				parts, found = parts+kib<<10, true
			}
		}
		if !found {
			own, mapped := pagesOf([]int{pid})
			parts = own + mapped
		}
		bytes += parts
	}
	return bytes
}

// filesInMemory is what lies in the sandbox's file systems in memory. Its first process has
// them all for as long as it lives.
func filesInMemory(pids []int, mounts []string) int64 {
	for _, pid := range slices.Backward(pids) { // the oldest is outside
		var total int64
		seen := 0
		for _, dir := range mounts {
			var st unix.Statfs_t
			if err := unix.Statfs("/proc/"+strconv.Itoa(pid)+"/root"+dir, &st); err == nil && st.Type == unix.TMPFS_MAGIC {
				total += int64(st.Blocks-st.Bfree) * st.Bsize
				seen++
			}
		}
		if seen == len(mounts) {
			return total
		}
	}
	return 0
}
