package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Private keeps what this process holds from others of its user: what it has in memory
// and in its environment is not theirs to read, and no crash writes it to a disk. What it
// starts has no core dumps either.
func Private() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("set not dumpable: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("no core dumps: %w", err)
	}
	return nil
}

// isolation is what a worker is started in: namespaces of its own without a network, without
// other processes, and without the files that hold secrets.
type isolation struct {
	bwrap string
	as    *syscall.Credential // nil: the server's own user
	hide  []string            // directories and files that hold secrets
	show  []string            // directories that are needed although they lie below such
	work  string              // the one of these that it writes
}

// newIsolation is for where there is a sandbox at all. From another user than the server's, the
// rights of files hide what is secret.
func (m *Manager) newIsolation(o Options) *isolation {
	if o.Unsafe || m.setup.Bwrap == "" {
		return nil
	}
	f := &isolation{bwrap: m.setup.Bwrap, as: m.credential()}
	if f.as == nil {
		f.hide, f.work, f.show = o.Secrets, m.dir, slices.Concat([]string{m.dir}, o.Shown, m.setup.Toolchains)
	}
	if err := f.works(); err != nil {
		m.log.Warn("what works on repositories is not kept from the server's network and, where it has the same user, its files: namespaces cannot be had", "error", err)
		return nil
	}
	return f
}

// common are directories of everybody: what lies in them is hidden by itself.
var common = []string{"/", "/bin", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr",
	"/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin", "/usr/share", "/var", "/var/lib", "/var/tmp"}

// args are bubblewrap's. A file is hidden with the directory that it is in, where that can
// be done without: another that takes its place there is hidden, too.
func (f *isolation) args() []string {
	args := []string{"--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--dev-bind", "/", "/", "--proc", "/proc"}
	var dirs, files []string
	for _, name := range f.hide {
		real, err := filepath.EvalSymlinks(name)
		if err == nil {
			real, err = filepath.Abs(real)
		}
		if err != nil {
			continue // nothing to hide
		}
		dir := real
		if info, err := os.Stat(real); err == nil && !info.IsDir() {
			dir = filepath.Dir(real)
		}
		if slices.Contains(common, dir) {
			files = append(files, real)
		} else if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs) // what is above comes first
	for _, dir := range dirs {
		args = append(args, "--tmpfs", dir)
	}
	for _, dir := range f.show {
		bind := "--ro-bind-try"
		if dir == f.work {
			bind = "--bind"
		}
		if slices.ContainsFunc(dirs, func(d string) bool { return dir == d || strings.HasPrefix(dir, d+"/") }) {
			args = append(args, bind, dir, dir)
		}
	}
	for _, file := range files {
		args = append(args, "--ro-bind", "/dev/null", file)
	}
	return append(args, "--")
}

// around has a command start in it; a nil one is none.
func (f *isolation) around(cmd *exec.Cmd) {
	if f == nil {
		return
	}
	cmd.Args = slices.Concat([]string{f.bwrap}, f.args(), []string{cmd.Path}, cmd.Args[1:])
	cmd.Path = f.bwrap
}

// works reports whether that can be had here.
func (f *isolation) works() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.bwrap, append(f.args(), "/bin/sh", "-c", "exit 0")...)
	cmd.Env, cmd.Dir = []string{"PATH=/usr/bin:/bin"}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: f.as}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
