package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"forge/pipeline"
	"forge/pipeline/fair"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/workspace"
)

// nobody is the user and group that workers run under when the server is root
// and its configuration names no other.
const nobody = 65534

// probeFor is how long a successful probe of the sandbox counts.
const probeFor = 5 * time.Minute

// Limits bound what one command, and one work tree, may use. Zero fields take
// the defaults of [DefaultLimits].
type Limits struct {
	Wall       time.Duration `json:"wall"`       // of one command
	CPU        time.Duration `json:"cpu"`        // of one process
	Memory     int64         `json:"memory"`     // bytes, all processes of a command together
	Processes  int           `json:"processes"`  // of a command, threads included
	Processors float64       `json:"processors"` // that a command keeps busy, where it has a cgroup
	OpenFiles  int           `json:"open_files"` // of one process
	FileBytes  int64         `json:"file_bytes"` // of one file that a command writes
	Output     int64         `json:"output"`     // bytes of a command's output that are kept
	TreeBytes  int64         `json:"tree_bytes"` // of a work tree
	TreeFiles  int           `json:"tree_files"` // of a work tree
	Reserve    int64         `json:"reserve"`    // bytes that stay free on the disk
	ReadBytes  int64         `json:"read_bytes"` // of one file that is read, or is part of a change
	Changes    int           `json:"changes"`    // files in one change
	ChangeAll  int64         `json:"change_all"` // bytes in one change
	Ignore     time.Duration `json:"ignore"`     // of matching the ignore files' patterns, some of which never end
}

// DefaultLimits are 10 minutes, 2 GiB, 512 processes, 1 GiB a file, 1 MiB of
// output, and a work tree of 4 GiB and 100,000 files.
func DefaultLimits() Limits {
	return Limits{
		Wall: 10 * time.Minute, CPU: 10 * time.Minute, Memory: 2 << 30, Processes: 512, OpenFiles: 4096,
		Processors: processors(0),
		FileBytes:  1 << 30, Output: 1 << 20, TreeBytes: 4 << 30, TreeFiles: 100_000, Reserve: 512 << 20,
		ReadBytes: 10 << 20, Changes: 2000, ChangeAll: 32 << 20, Ignore: 20 * time.Second,
	}
}

// fill replaces zero fields by the defaults.
func (l Limits) fill() Limits {
	d := DefaultLimits()
	setDefault(&l.Wall, d.Wall)
	setDefault(&l.CPU, d.CPU)
	setDefault(&l.Memory, d.Memory)
	setDefault(&l.Processes, d.Processes)
	setDefault(&l.Processors, d.Processors)
	setDefault(&l.OpenFiles, d.OpenFiles)
	setDefault(&l.FileBytes, d.FileBytes)
	setDefault(&l.Output, d.Output)
	setDefault(&l.TreeBytes, d.TreeBytes)
	setDefault(&l.TreeFiles, d.TreeFiles)
	setDefault(&l.Reserve, d.Reserve)
	setDefault(&l.ReadBytes, d.ReadBytes)
	setDefault(&l.Changes, d.Changes)
	setDefault(&l.ChangeAll, d.ChangeAll)
	setDefault(&l.Ignore, d.Ignore)
	return l
}

// processors is what a command may keep busy of the machine: its share where so many run
// at once, and never all of it, so that what arrives meanwhile is answered.
func processors(atOnce int) float64 {
	return max(1, float64(runtime.NumCPU())*0.9/float64(max(1, atOnce)))
}

func setDefault[T int | int64 | float64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Options say where workspaces live and what they may use.
type Options struct {
	Dir        string   // state directory: work trees and environments; made when missing, never one that others use
	Exe        string   // the forge binary
	Args       []string // that make it a worker; empty: {"worker"}
	Bridge     []string // that make it a bridge to registries; empty: {"bridge"}
	UID, GID   int      // the worker's, when this process is root; 0: 65534. Never root
	Unsafe     bool     // no bubblewrap: commands run directly, as the worker's user. For the server's own configuration alone
	Limits     Limits   //
	Toolchains []string // directories of the host that commands see, read-only, with their bin directory in PATH; /usr and Go are there anyway
	Bwrap      string   // path of bubblewrap; empty: from PATH
	Secrets    []string // files and directories that a worker which shares this process' user must not see
	Shown      []string // directories below such that it reads all the same
	Log        *slog.Logger
	AtOnce     int // commands at the same time, fair between owners of workspaces; 0: any number
}

// Manager opens workspaces.
type Manager struct {
	dir       string
	exe       string
	args      []string
	bridge    []string
	uid       int // -1: the worker runs as this process' own user
	gid       int
	setup     setup // what every worker is told
	log       *slog.Logger
	now       func() time.Time
	places    *fair.Pool // for commands
	groups    *cgroups   // that commands are held by; nil: none
	lacks     error      // why there are none
	isolation *isolation // that workers are in; nil: none
	probe1    sync.Mutex // one probe at a time

	mu     sync.Mutex
	probed time.Time // when the last good probe was; zero after a sandbox error
	copied bool      // this program lies where a sandbox can be shown it

	maxDeps   int64          // bytes of all environments
	depsUse   map[string]int // how many workspaces use an environment
	depsLocks sync.Map       // path of one → chan struct{}, full while it is made
}

// New checks the options and prepares the state directory. It does not probe the
// sandbox: a server without one still serves.
func New(o Options) (*Manager, error) {
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("sandbox directory %q: must be an absolute path", o.Dir)
	}
	if !filepath.IsAbs(o.Exe) {
		return nil, fmt.Errorf("worker binary %q: must be an absolute path", o.Exe)
	}
	gitBin, err := findGit()
	if err != nil {
		return nil, err
	}
	m := &Manager{dir: o.Dir, exe: o.Exe, args: o.Args, bridge: o.Bridge, uid: -1, gid: -1, log: o.Log, now: time.Now, maxDeps: maxDeps, depsUse: map[string]int{},
		places: fair.New(o.AtOnce)}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	if len(m.args) == 0 {
		m.args = []string{"worker"}
	}
	if len(m.bridge) == 0 {
		m.bridge = []string{"bridge"}
	}
	if os.Geteuid() == 0 {
		m.uid, m.gid = o.UID, o.GID
		setDefault(&m.uid, nobody)
		setDefault(&m.gid, nobody)
	} else if o.UID != 0 && o.UID != os.Geteuid() {
		return nil, fmt.Errorf("worker user %d: only a server that is started as root can change users; leave it out", o.UID)
	}
	setDefault(&o.Limits.Processors, processors(o.AtOnce))
	m.groups, m.lacks = handedOver(m.uid)
	m.setup = setup{Limits: o.Limits.fill(), Unsafe: o.Unsafe, Git: gitBin, Bwrap: o.Bwrap}
	if err := m.findTools(o); err != nil {
		return nil, err
	}
	if o.Unsafe {
		m.log.Warn("commands run WITHOUT a sandbox: unsafe_no_sandbox is set")
	}
	if err := m.prepare(); err != nil {
		return nil, err
	}
	m.isolation = m.newIsolation(o)
	return m, nil
}

// prepare makes the state directory: passable, not readable, for the worker.
func (m *Manager) prepare() error {
	for _, d := range []string{m.dir, m.path("trees"), m.path("deps"), m.path("etc")} {
		if err := os.MkdirAll(d, 0o711); err != nil {
			return fmt.Errorf("make sandbox directory: %w", err)
		}
		if err := os.Chmod(d, 0o711); err != nil {
			return fmt.Errorf("make sandbox directory: %w", err)
		}
	}
	for name, text := range etcFiles {
		if err := writeFile(m.path("etc", name), text, 0o644); err != nil {
			return fmt.Errorf("make sandbox files: %w", err)
		}
	}
	m.setup.Etc = m.path("etc")
	if m.uid >= 0 {
		if at := unreachable(m.dir, m.uid, m.gid); at != "" {
			return fmt.Errorf("sandbox directory %s: the worker's user %d may not pass %s; choose a directory such as /var/lib/forge", m.dir, m.uid, at)
		}
	}
	return nil
}

// Cgroups says why the kernel does not hold each command by a control group of its own:
// nil when it does.
func (m *Manager) Cgroups() error { return m.lacks }

func (m *Manager) path(elem ...string) string {
	return filepath.Join(append([]string{m.dir}, elem...)...)
}

// findTools looks up bubblewrap, prlimit and the toolchains.
func (m *Manager) findTools(o Options) error {
	s := &m.setup
	if s.Bwrap == "" {
		s.Bwrap, _ = exec.LookPath("bwrap") // the probe says what is missing
	}
	s.Prlimit, _ = exec.LookPath("prlimit")
	if goBin, err := exec.LookPath("go"); err == nil {
		if real, err := filepath.EvalSymlinks(goBin); err == nil {
			root := filepath.Dir(filepath.Dir(real))
			if m.uid >= 0 && unreachable(root, m.uid, m.gid) != "" {
				m.log.Warn("the host's Go cannot be read by the worker's user; commands will not find it", "dir", root)
			} else {
				s.addToolchain(root)
			}
		}
	}
	for _, dir := range o.Toolchains {
		if err := m.checkMount("toolchain", dir); err != nil {
			return err
		}
		s.addToolchain(dir)
	}
	return nil
}

func (m *Manager) checkMount(what, dir string) error {
	info, err := os.Stat(dir)
	switch {
	case !filepath.IsAbs(dir) || filepath.Clean(dir) == "/":
		return fmt.Errorf("%s %q: must be an absolute path", what, dir)
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case !info.IsDir():
		return fmt.Errorf("%s %s: not a directory", what, dir)
	}
	if m.uid >= 0 {
		if at := unreachable(dir, m.uid, m.gid); at != "" {
			return fmt.Errorf("%s %s: the worker's user %d may not read %s; copy it to a directory that everybody can read", what, dir, m.uid, at)
		}
	}
	return nil
}

// credential is the worker's user; nil: this process' own.
func (m *Manager) credential() *syscall.Credential {
	if m.uid < 0 {
		return nil
	}
	return &syscall.Credential{Uid: uint32(m.uid), Gid: uint32(m.gid)}
}

// unreachable returns the first directory on the way to dir, dir included, that a
// user may not enter; empty when there is none.
func unreachable(dir string, uid, gid int) string {
	for at := range walkUp(dir) {
		info, err := os.Stat(at)
		if err != nil {
			return at
		}
		if !mayEnter(info, uid, gid) {
			return at
		}
	}
	return ""
}

// walkUp yields "/", then every directory down to dir.
func walkUp(dir string) func(func(string) bool) {
	return func(yield func(string) bool) {
		var all []string
		for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
			all = append(all, at)
			if at == "/" || at == "." {
				break
			}
		}
		for _, at := range slices.Backward(all) {
			if !yield(at) {
				return
			}
		}
	}
}

func mayEnter(info fs.FileInfo, uid, gid int) bool {
	owner, group := ownerOf(info)
	switch {
	case owner == uid:
		return info.Mode()&0o100 != 0
	case group == gid:
		return info.Mode()&0o010 != 0
	}
	return info.Mode()&0o001 != 0
}

// Probe reports whether commands can be run: nil, or a *pipeline.Fault of class
// sandbox that says how to mend it. A good answer counts for five minutes, or
// until a command finds the sandbox broken.
func (m *Manager) Probe(ctx context.Context) error {
	m.probe1.Lock()
	defer m.probe1.Unlock()
	m.mu.Lock()
	fresh := !m.probed.IsZero() && m.now().Sub(m.probed) < probeFor
	m.mu.Unlock()
	if fresh {
		return nil
	}
	w, err := m.open(ctx, workspace.OpenOptions{Name: "probe", Cache: "probe"})
	if err != nil {
		return &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "sandbox unavailable: " + err.Error()}
	}
	defer w.Close()
	if err := w.call(ctx, "probe", nil, nil); err != nil {
		var fault *pipeline.Fault
		if errors.As(err, &fault) {
			return fault
		}
		return &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "sandbox unavailable: " + err.Error()}
	}
	m.mu.Lock()
	m.probed = m.now()
	m.mu.Unlock()
	return nil
}

// distrust makes the next Probe look again.
func (m *Manager) distrust() {
	m.mu.Lock()
	m.probed = time.Time{}
	m.mu.Unlock()
}

var unsafeName = lazyregexp.New(`[^A-Za-z0-9._-]+`)

// dirName makes a directory's name of a run's, a repository's or an environment's.
func dirName(name string) string {
	name = strings.Trim(unsafeName.ReplaceAllString(name, "-"), ".-")
	if name == "" {
		return "x"
	}
	return name[:min(len(name), 100)]
}

// own gives a path to the worker's user.
func (m *Manager) own(path string) error {
	if m.uid < 0 {
		return nil
	}
	return os.Lchown(path, m.uid, m.gid)
}
