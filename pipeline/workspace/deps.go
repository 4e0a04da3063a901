package workspace

import "context"

// Dependencies are installed before commands run, and kept for later work trees.
type Dependencies interface {
	// Installed returns the description of a kept tree.
	Installed(key string) (about []byte, ok bool)
	// Install makes a tree of dependencies, unless there is one with its key by now.
	Install(ctx context.Context, o Installation) error
	// Resolve lets package managers work on files of a tree that is thrown away: what they
	// wrote there is taken out of it by [Installer.Take].
	Resolve(ctx context.Context, o Installation) error
	// Use has commands see a kept tree of dependencies from now on; "" for none.
	Use(ctx context.Context, key string, use Use) error
	// Layer returns the second tree that commands see, as Use said.
	Layer() Layer
}

// DepsPath is where commands see the tree of dependencies.
const DepsPath = "/deps"

// Mount shows a directory of a tree of dependencies at a place of the work tree.
type Mount struct {
	From string `json:"from"`           // in the tree of dependencies; empty: an empty directory that can be written, and is thrown away
	To   string `json:"to"`             // in the work tree
	Copy bool   `json:"copy,omitempty"` // commands see a copy that they may write, and that is thrown away; of a Layer alone
}

// DirEnv is what commands in a directory of the work tree, and below it, are told.
// PATH and PYTHONPATH are put behind what is there, and told to commands above it, too,
// which may go there; the others replace what is there.
type DirEnv struct {
	Dir string   `json:"dir"` // "." for the top
	Env []string `json:"env"` // KEY=value
}

// Use says how commands use a tree of dependencies.
type Use struct {
	Mounts []Mount  `json:"mounts,omitempty"`
	Env    []DirEnv `json:"env,omitempty"` // what is above comes before what is below
	Layer  Layer    `json:"layer,omitzero"`
}

// Layer is a second kept tree: what commands of a repository's settings have left.
type Layer struct {
	Key    string  `json:"key"`
	Mounts []Mount `json:"mounts"`
}

// Installation is a tree of dependencies to be made.
type Installation struct {
	Key     string                  // stands for all that the tree is made of
	Stale   func(about []byte) bool // whether a kept tree is to be made again; nil: never
	Sockets string                  // directory of the host with the sockets; empty: none
	Routes  []Route                 // to them
	// Make makes the tree. The error is why there is none; else what it returns
	// describes the tree, as [Workspace.Installed] gives it back.
	Make func(ctx context.Context, in Installer) (about []byte, err error)
}

// Installer is what an installation works with.
type Installer interface {
	// Run runs a command in a directory of the work tree, which it cannot write, or,
	// when the directory begins with [DepsPath], in one of the tree to be made.
	Run(ctx context.Context, c Command) (Result, error)
	// Stage writes a file of the tree to be made.
	Stage(ctx context.Context, name string, content []byte) error
	// Take reads a plain file of the tree to be made.
	Take(ctx context.Context, name string) ([]byte, error)
	// Prepare runs a command in the work tree, which it may write, with the dependencies
	// that are in use.
	Prepare(ctx context.Context, c Command) (Result, error)
	// Keep moves directories that such commands left into the tree to be made: those with
	// a name, and those that the repository ignores.
	Keep(ctx context.Context, named []string) (Prepared, error)
}

// Route leads from a port on a sandbox's own loopback to a unix socket of the host.
type Route struct {
	Port   int
	Socket string // its file name in the directory that the sandbox sees
}

// Prepared is what commands have left that is kept.
type Prepared struct {
	Dirs []Mount  `json:"dirs,omitempty"` // from the tree to be made, to where they were
	Left []string `json:"left,omitempty"` // changed and new files that are not kept; some of them
	More int      `json:"more,omitempty"` // how many others
}
