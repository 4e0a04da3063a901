package sandbox

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"testing"
)

// Covers S8: whatever a command starts is counted with it, by the list of each process'
// children as by that of all processes of the machine.
func TestBeneath(t *testing.T) {
	// Two that the shell starts, and one that a shell of its own starts.
	cmd := exec.Command("sh", "-c", "sleep 600 & sh -c 'sleep 600 & echo ready; wait' & wait")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range slices.Backward(descendants(cmd.Process.Pid)) {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
		_ = cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	want := descendants(cmd.Process.Pid)
	got := beneath(cmd.Process.Pid)
	slices.Sort(want)
	slices.Sort(got)
	if len(want) != 4 || !slices.Equal(got, want) {
		t.Errorf("beneath the shell are %v, of all processes %v; want the same four", got, want)
	}
	if here := beneath(os.Getpid()); !slices.Contains(here, cmd.Process.Pid) || !slices.Contains(here, got[len(got)-1]) {
		t.Errorf("beneath this process are %v, without %v", here, got)
	}
	if used, _ := pagesOf(got); used <= 0 || used > 1<<30 {
		t.Errorf("four processes use %d bytes", used)
	}
	if left, _ := pagesOf([]int{1 << 30}); left != 0 {
		t.Errorf("a process that is gone uses %d bytes", left)
	}
}
