package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"forge/pipeline"
	"forge/pipeline/text"
	"forge/pipeline/workspace"
)

// etcShared are globs of the host's files in /etc that toolchains need; they hold
// no secret. Maven's settings.xml does, as a rule.
var etcShared = []string{"ld.so.cache", "alternatives", "ssl/certs", "ca-certificates", "localtime", "mime.types",
	"java-*-openjdk/security", "java-*-openjdk/*.cfg", "java-*-openjdk/*.properties", "maven/m2.conf", "maven/logging",
	"php/*/cli", "php/*/mods-available"}

// bubblewrap builds the sandboxed process. Its own arguments go through a pipe and
// its environment is empty, because a command can read both of the process that is
// its init. An ordinary goroutine starts it: the thread must outlive the sandbox.
func (w *worker) bubblewrap(ctx context.Context, c workspace.Command, dir string) (*prepared, error) {
	if w.Bwrap == "" {
		return nil, &pipeline.Fault{Class: pipeline.FaultSandbox,
			Message: "sandbox unavailable: bubblewrap is not installed: apt-get install bubblewrap (0.8 or newer)"}
	}
	filter, err := seccompProgram(runtime.GOARCH)
	if err != nil {
		return nil, &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "sandbox unavailable: " + err.Error(), Final: true}
	}
	if w.noFilter {
		filter = nil
	}
	var args bytes.Buffer
	w.inMemory = nil
	list, overlays := w.boxArgs(c, dir)
	for i, a := range list {
		args.WriteString(a)
		args.WriteByte(0)
		if a == "--tmpfs" {
			w.inMemory = append(w.inMemory, list[i+1])
		}
	}
	p := &prepared{status: make(chan []byte, 1)}
	argsFile, err := p.pipeIn(args.Bytes())
	if err != nil {
		return nil, err
	}
	filterFile, err := p.pipeIn(filter)
	if err != nil {
		p.closeAll(argsFile)
		return nil, err
	}
	status, statusFile, err := os.Pipe()
	if err != nil {
		p.closeAll(argsFile, filterFile)
		return nil, err
	}
	p.after = append(p.after, status)
	p.feed = append(p.feed, func() {
		report, _ := io.ReadAll(io.LimitReader(status, 64<<10))
		p.status <- report
	})
	argv := w.boxed(w.led(c.Args))
	p.cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	p.cmd.Env = []string{"PATH=/usr/bin:/bin"}
	p.cmd.Dir = "/"
	p.cmd.ExtraFiles = []*os.File{argsFile, filterFile, statusFile}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if len(overlays) > 0 {
		mounted(p.cmd, overlays)
	}
	return p, nil
}

// pipeIn returns a file out of which content can be read.
func (p *prepared) pipeIn(content []byte) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.after = append(p.after, w)
	p.feed = append(p.feed, func() {
		_, _ = w.Write(content)
		w.Close()
	})
	return r, nil
}

func (p *prepared) closeAll(files ...*os.File) {
	for _, f := range append(files, p.after...) {
		f.Close()
	}
}

// boxArgs are bubblewrap's arguments. Namespaces are asked for one by one, since
// --unshare-all goes on without those that it cannot have.
func (w *worker) boxArgs(c workspace.Command, dir string) ([]string, []layered) {
	args := []string{
		"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup",
		"--uid", "1000", "--gid", "1000", "--disable-userns", "--assert-userns-disabled",
		"--die-with-parent", "--new-session", "--hostname", "sandbox", "--cap-drop", "ALL",
		"--seccomp", "4", "--json-status-fd", "5", "--clearenv",
	}
	args = append(args, w.system()...)
	args = append(args,
		"--proc", "/proc", "--dev", "/dev", "--size", "67108864", "--tmpfs", "/dev/shm", "--remount-ro", "/dev",
		"--size", "268435456", "--tmpfs", "/tmp", "--size", "67108864", "--tmpfs", boxHome,
	)
	at := places{home: boxHome, tmp: "/tmp", scratch: boxScratch, cache: boxScratch + "/go-build"}
	if w.making != nil || len(w.env.Lowers) > 0 {
		at.home = boxDeps
	}
	if w.Root == "" {
		for _, dir := range w.Toolchains {
			args = append(args, "--ro-bind", dir, dir)
		}
	}
	env, overlays := w.envArgs()
	args = append(args, "--bind", w.scratch(), boxScratch)
	args = append(append(args, env...), "--chdir", path.Join(boxTree, dir))
	args = append(args, "--remount-ro", "/")
	for _, kv := range w.withEnv(w.commandEnv(at), c.Env) {
		key, value, _ := strings.Cut(kv, "=")
		args = append(args, "--setenv", key, value)
	}
	return args, overlays
}

// system are the arguments by which a command sees programs: the server's, or those of an image.
func (w *worker) system() []string {
	own := []string{"--dir", "/etc"}
	for _, name := range ownEtc {
		own = append(own, "--ro-bind", filepath.Join(w.Etc, name), "/etc/"+name)
	}
	if w.Root != "" {
		return append(own, w.imageSystem()...)
	}
	args := []string{"--ro-bind", "/usr", "/usr"}
	for _, dir := range []string{"bin", "sbin", "lib", "lib32", "lib64"} {
		if target, err := os.Readlink("/" + dir); err == nil && strings.TrimPrefix(target, "/") == "usr/"+dir {
			args = append(args, "--symlink", "usr/"+dir, "/"+dir)
		} else if info, err := os.Lstat("/" + dir); err == nil && info.IsDir() { // a system without merged /usr
			args = append(args, "--ro-bind", "/"+dir, "/"+dir)
		}
	}
	args = append(args, own...)
	for _, glob := range etcShared {
		names, _ := filepath.Glob("/etc/" + glob) // fails for a bad pattern alone
		for _, name := range names {
			args = append(args, "--ro-bind", name, name)
		}
	}
	return args
}

// ownEtc are the sandbox's own files in /etc.
var ownEtc = []string{"passwd", "group", "hosts", "nsswitch.conf"}

// apart are directories of an image in whose place the sandbox has its own.
var apart = []string{"dev", "proc", "sys", "run", "tmp", "etc", "home", path.Base(boxTree), path.Base(boxDeps), path.Base(boxScratch)}

// imageSystem shows an image's directories.
func (w *worker) imageSystem() (args []string) {
	show := func(dir string, without []string) {
		entries, _ := os.ReadDir(filepath.Join(w.Root, dir)) // an image without them has none
		for _, e := range entries {
			at := path.Join("/", dir, e.Name())
			switch {
			case slices.Contains(without, e.Name()):
			case e.Type() == os.ModeSymlink:
				if to, err := os.Readlink(filepath.Join(w.Root, at)); err == nil {
					args = append(args, "--symlink", to, at)
				}
			default:
				args = append(args, "--ro-bind", filepath.Join(w.Root, at), at)
			}
		}
	}
	show("", apart)
	show("etc", ownEtc)
	return args
}

// mend is what an operator can do about bubblewrap's words.
func mend(said string) string {
	has := func(s string) bool { return strings.Contains(said, s) }
	read := func(file string) string {
		text, _ := os.ReadFile(file)
		return strings.TrimSpace(string(text))
	}
	switch {
	case read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" && (has("uid map") || has("ermission denied") || has("not permitted")):
		return ". AppArmor forbids user namespaces: write /etc/apparmor.d/bwrap with " +
			"`abi <abi/4.0>, profile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }` and run `apparmor_parser -r /etc/apparmor.d/bwrap`"
	case read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return ". User namespaces are off: `sysctl -w kernel.unprivileged_userns_clone=1`"
	case read("/proc/sys/user/max_user_namespaces") == "0" || has("No space left") || has("ENOSPC"):
		return ". User namespaces are used up or off: `sysctl -w user.max_user_namespaces=15000`"
	case has("mount proc"):
		return ". /proc is masked, as in a container: start it with `--security-opt systempaths=unconfined`"
	case has("not permitted"):
		return ". User namespaces are forbidden, as in a container: start it with `--security-opt seccomp=unconfined`, or on the host"
	case has("nknown option"):
		return ". bubblewrap is too old: 0.8 or newer is needed"
	case has("find source path"):
		return ". A directory that the sandbox mounts is gone: check toolchains and module cache in the server's configuration"
	}
	return ""
}

// probeScript prints what the sandbox looks like from inside.
const probeScript = `cat /proc/self/status; echo ==; cat /proc/net/dev; echo ==; cat /proc/self/stat /proc/1/environ`

// probe runs a command and looks at what it is confined by.
func (w *worker) probe(ctx context.Context) error {
	r, err := w.run(ctx, workspace.Command{Args: []string{"/bin/sh", "-c", probeScript}})
	if err != nil {
		return err
	}
	if r.Exit != 0 {
		return &pipeline.Fault{Class: pipeline.FaultSandbox,
			Message: fmt.Sprintf("sandbox unavailable: the probe ended with %d: %s", r.Exit, text.ClipBytes(string(r.Stderr), 300))}
	}
	if w.Unsafe {
		return nil
	}
	if lack := checkProbe(string(r.Stdout)); lack != "" {
		return &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "sandbox unavailable: " + lack}
	}
	return nil
}

// checkProbe returns what a sandbox lacks; empty when it is whole.
func checkProbe(out string) string {
	part := strings.Split(out, "==\n")
	if len(part) != 3 {
		return "the probe printed something else"
	}
	status := map[string]string{}
	for l := range strings.SplitSeq(part[0], "\n") {
		key, value, _ := strings.Cut(l, ":")
		status[key] = strings.TrimSpace(value)
	}
	want := map[string]string{
		"NoNewPrivs": "1", "Seccomp": "2", "CapEff": "0000000000000000", "CapPrm": "0000000000000000",
		"CapBnd": "0000000000000000", "Uid": "1000\t1000\t1000\t1000",
	}
	for key, value := range want {
		if status[key] != value {
			return fmt.Sprintf("%s is %q inside, not %q", key, status[key], value)
		}
	}
	if n := strings.Count(part[1], ":"); n != 1 || !strings.Contains(part[1], "lo:") {
		return "there is a network inside"
	}
	if pid, err := strconv.Atoi(status["Pid"]); err != nil || pid > 100 {
		return "the host's processes are seen inside"
	}
	return ""
}
