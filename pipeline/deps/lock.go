package deps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"forge/pipeline/lock"
	"forge/pipeline/workspace"
)

// Where a manifest of a change asks for something that its lock file does not have, the
// package manager's own command brings that in line: on copies of manifests, or where it
// must read sources, on those as they are and cannot be written. It starts from the lock
// file as it was before the change, so that nothing of it moves without a reason, and no
// script of a package is run. What it writes is looked through before it is taken.

// Files are those of one state of a repository.
type Files struct {
	Paths []string
	Read  func(path string) ([]byte, error)
}

// Text is a file's content, nil where there is none.
func (f Files) Text(name string) ([]byte, error) {
	if !slices.Contains(f.Paths, name) {
		return nil, nil
	}
	return f.Read(name)
}

// Edit is a change that is not committed yet.
type Edit struct {
	Now, Before, Base Files    // the work tree, the commit it began from, and that the whole work began from
	Changed           []string // paths that Now and Before differ in
}

// Both is a file as it is and as it was before the change, nil where there is none.
func (e *Edit) Both(name string) (now, before []byte, err error) {
	if now, err = e.Now.Text(name); err == nil {
		before, err = e.Before.Text(name)
	}
	return now, before, err
}

// touches reports whether one of some files was changed.
func (e *Edit) touches(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(e.Changed, n) })
}

// Lock is a lock file that a change leaves behind its manifest.
type Lock struct {
	Manager, Dir string
	Refused      string             // why nothing is run: what the manifest asks for no registry has
	Lacks        string             // why this machine cannot
	Check        *workspace.Command // of the repository, with its dependencies: where it ends well nothing is lacking; nil: something is

	stage map[string][]byte
	tries [][]workspace.Command // one after the other, until what one wrote can be taken
	take  map[string]string     // files of the tree, by the paths that they have in the repository
	read  func(taken map[string][]byte) (files map[string][]byte, packages []lock.Package, err error)
}

// String names a lock's project for people.
func (l *Lock) String() string { return (&Project{Manager: l.Manager, Dir: l.Dir}).String() }

// Has reports whether a package is one of the lock's project.
func (l *Lock) Has(p lock.Package) bool { return p.Manager == l.Manager && p.Dir == place(l.Dir) }

// Taker is where a lock file is made.
type Taker interface {
	Installer
	Take(ctx context.Context, name string) ([]byte, error)
}

// FindLocks finds the lock files that a change leaves behind.
func FindLocks(e Edit, host Host) ([]*Lock, error) {
	goes := slices.ContainsFunc(e.Changed, func(n string) bool { return strings.HasSuffix(n, ".go") || path.Base(n) == "go.mod" })
	node := slices.ContainsFunc(e.Changed, isNodeManifest)
	out, err := unreadable(e)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	if goes {
		list, err := goLocks(e, host)
		if err != nil {
			return nil, fmt.Errorf("find lock files: %w", err)
		}
		out = append(out, list...)
	}
	if node {
		list, err := nodeLocks(e, host)
		if err != nil {
			return nil, fmt.Errorf("find lock files: %w", err)
		}
		out = append(out, list...)
	}
	return out, nil
}

// Made are lock files as they are to be.
type Made struct {
	Files    map[string][]byte
	Packages []lock.Package
	Why      string // why there are none: for whoever wrote the manifest
}

// Make has the package manager write the lock file. The error is for what is no fault of
// the change.
func (l *Lock) Make(ctx context.Context, in Taker) (Made, error) {
	var made Made
	for _, steps := range l.tries {
		var err error
		if made, err = l.try(ctx, in, steps); err != nil {
			return made, fmt.Errorf("lock with %s: %w", l, err)
		}
		if made.Why == "" {
			break
		}
	}
	return made, nil
}

func (l *Lock) try(ctx context.Context, in Taker, steps []workspace.Command) (Made, error) {
	for _, name := range slices.Sorted(maps.Keys(l.stage)) {
		if err := in.Stage(ctx, name, l.stage[name]); err != nil {
			return Made{}, err
		}
	}
	for _, step := range steps {
		r, err := in.Run(ctx, step)
		if err != nil {
			return Made{}, err
		}
		if r.Exit != 0 {
			return Made{Why: why(step, r)}, nil
		}
	}
	taken := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(l.take)) {
		content, err := in.Take(ctx, l.take[name])
		if err != nil {
			return Made{Why: fmt.Sprintf("%s was not written: %v", name, err)}, nil
		}
		taken[name] = content
	}
	files, packages, err := l.read(taken)
	var no refusal
	if errors.As(err, &no) {
		return Made{Why: string(no)}, nil
	}
	return Made{Files: files, Packages: packages}, err
}

// refusal is why what a package manager wrote is not taken.
type refusal string

func (r refusal) Error() string { return string(r) }

// place is a project's directory as packages name it.
func place(dir string) string {
	if dir == "." {
		return ""
	}
	return dir
}
