package play

import (
	"forge/cmd/forge/server/servertest"
	"forge/pipeline"
	"forge/pipeline/needs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A disk without room is a fault of the environment, told with what to do, and
// counts no attempt; once there is room the run goes on where it was.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"work", "git"} {
		t.Run(where, func(t *testing.T) {
			var disk string
			ts := newServer(t, servertest.Options{
				Files:   map[string]string{".github/forge.yml": servertest.Greeter()[".github/forge.yml"] + "loop: {faults: 1}\n"},
				Prepare: func(state string) { disk = smallDisk(t, filepath.Join(state, where)) },
			})
			fill(t, disk)
			ts.Label("acme")
			run := ts.UntilState(pipeline.StateWaiting)
			if g := run.Gate().Guard; g.Name != pipeline.GuardFaults || run.Fault.Class != pipeline.FaultEnvironment || len(run.Iterations) != 0 {
				t.Errorf("guard %+v, fault %+v, %d iterations", g, run.Fault, len(run.Iterations))
			}
			ts.Says("has no room left")
			ts.Says("answer `retry`")
			if err := os.Remove(filepath.Join(disk, "full")); err != nil {
				t.Fatal(err)
			}
			ts.Comment("acme", "/forge retry")
			run = ts.UntilState(pipeline.StateVerified)
			if len(run.Iterations) != 1 {
				t.Errorf("%d iterations, want 1: the fault counts no attempt", len(run.Iterations))
			}
		})
	}
}

// smallDisk mounts a file system of 16 MiB at dir.
func smallDisk(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	needs.Root(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16m,mode=0711"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill writes until nothing more fits.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "full"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 64<<10); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
}
