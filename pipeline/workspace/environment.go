package workspace

import "context"

// Environments are what set-ups of a repository have left: packages, caches, and what is
// built or generated and ignored. Each is kept under a key that stands for all that decided
// it, and commands see it under and beside the work tree: what they write stays theirs.
type Environments interface {
	// Installed returns the description of a kept environment.
	Installed(key string) (about []byte, ok bool)
	// Install makes one in this workspace, unless there is one with its key by now.
	Install(ctx context.Context, o Installation) error
	// Use has commands see a kept environment from now on, "" for none, with variables
	// (KEY=value; what PATH and PYTHONPATH name comes before what is there).
	Use(ctx context.Context, key string, env []string) error
}

// TreePath is where commands in a sandbox see the work tree.
const TreePath = "/work"

// EnvPath is a directory beside the work tree that belongs to the environment.
const EnvPath = "/deps"

// StartFile is where an environment may have a script, below [EnvPath], by which each command
// that uses it is run, and what listens beside it is started first.
const StartFile = "start.sh"

// Started are the words that come before such a command.
var Started = []string{"/bin/bash", EnvPath + "/" + StartFile}

// Installation is an environment to be made.
type Installation struct {
	Key     string                  // stands for all that it is made of
	From    string                  // the key of the one that it begins as; "": an empty one
	Stale   func(about []byte) bool // whether a kept one is to be made again; nil: never
	Sockets string                  // directory of the host with the sockets; empty: none
	Routes  []Route                 // to them
	// Make makes the environment. The error is why there is none; else what it returns
	// describes it, as [Environments.Installed] gives it back.
	Make func(ctx context.Context, in Installer) (about []byte, err error)
}

// Installer is what an installation works with.
type Installer interface {
	// Run runs a command that may write the work tree and [EnvPath], where its home is.
	Run(ctx context.Context, c Command) (Result, error)
	// Stage writes a file below EnvPath.
	Stage(ctx context.Context, name string, content []byte) error
	// Keep takes out of the work tree what was left there and is ignored by the repository,
	// or has one of some paths or names. It returns what else was made or changed, which is not kept: some of it.
	Keep(ctx context.Context, named []string) (left []string, err error)
}

// Route leads from a port on a sandbox's own loopback to a unix socket of the host.
type Route struct {
	Port   int
	Socket string // its file name in the directory that the sandbox sees
}
