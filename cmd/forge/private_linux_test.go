package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Covers S29: what a command of Forge's holds in memory and in its environment is not for
// other processes of its user, and no crash writes it to a disk.
func TestCommandsArePrivate(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "forge-private-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	exe := filepath.Join(dir, "forge")
	// Written by another process: a child that a test beside this one starts meanwhile would
	// have the file open for writing, and it could not be run.
	if out, err := exec.CommandContext(t.Context(), "cp", self, exe).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "setup", "--terminal", "--dir", filepath.Join(dir, "x")) // it waits for an answer
	cmd.Env = []string{"FORGE_TEST_COMMAND=1", "PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	if os.Geteuid() == 0 { // what root has is root's anyway
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if n, err := out.Read(make([]byte, 1)); n == 0 {
		t.Fatal("it did not begin:", err)
	}
	proc := "/proc/" + strconv.Itoa(cmd.Process.Pid)
	info, err := os.Stat(proc + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid != 0 {
		t.Errorf("its environment belongs to user %d: others of that user may read it", uid)
	}
	limits, err := os.ReadFile(proc + "/limits")
	if err != nil || !strings.Contains(string(limits), "Max core file size        0                    0 ") {
		t.Errorf("it may leave core dumps: %v\n%s", err, limits)
	}
}
