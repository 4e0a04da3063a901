package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// restore takes some paths of a commit over the work tree as it stands.
func (t *tree) restore(ctx context.Context, sha string, paths []string) error {
	if err := checkOIDs(sha); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	manifest, err := t.readManifest(ctx, sha)
	if err != nil {
		return fmt.Errorf("restore from %s: %w", sha, err)
	}
	wanted := map[string]entry{}
	for _, name := range paths {
		name, err := cleanPath(name)
		if err != nil {
			return fmt.Errorf("restore from %s: %w", sha, err)
		}
		if name == "." {
			return errors.New("restore: the work tree as a whole is checked out, not restored")
		}
		if e, ok := manifest[name]; ok && e.mode != modeSub {
			wanted[name] = e
		}
		if err := t.makeWay(name, wanted[name].mode != ""); err != nil {
			return fmt.Errorf("restore %s from %s: %w", name, sha, err)
		}
	}
	if err := t.fill(ctx, wanted, nil); err != nil {
		return fmt.Errorf("restore from %s: %w", sha, err)
	}
	return nil
}

// makeWay removes what is at a path and, where something is to come there, whatever
// on the way to it is no directory.
func (t *tree) makeWay(name string, comes bool) error {
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		info, err := t.root.Lstat(name[:i])
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case info.IsDir():
		case comes:
			return t.clear(name[:i])
		default:
			return nil // not in the tree, then
		}
	}
	if _, err := t.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return t.clear(name)
}
