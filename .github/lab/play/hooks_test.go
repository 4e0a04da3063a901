package play

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const promToken = "0123456789abcdef-prom"

// left returns the processes whose command line is the given one.
func left(t *testing.T, args ...string) (pids []int) {
	t.Helper()
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	want := []byte(strings.Join(args, "\x00") + "\x00")
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		if line, _ := os.ReadFile(filepath.Join("/proc", d.Name(), "cmdline")); bytes.Equal(line, want) {
			pids = append(pids, pid)
		}
	}
	return pids
}
