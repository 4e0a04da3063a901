package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// Restore puts a backup in the place of an SQLite database, whose address is as for
// [Open]. The backup is checked first, and what stood there is moved aside, to the path
// that is returned; "" when there was nothing. No server may run on it.
func Restore(ctx context.Context, backup, address string, now time.Time) (aside string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("restore %s: %w", backup, err)
		}
	}()
	if strings.HasPrefix(address, "postgres") {
		return "", errors.New("the database is PostgreSQL's: use pg_restore, or PostgreSQL's own archiving")
	}
	path := strings.TrimPrefix(strings.TrimPrefix(address, "sqlite:"), "//")
	if _, err = os.Stat(backup); err == nil {
		_, err = inspect(ctx, backup, 1<<62)
	}
	if err != nil {
		return "", err
	}
	unlock, err := lockToChange(ctx, path)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := unused(path); err != nil {
		return "", err
	}
	draft := path + ".restored"
	if err := copyFile(ctx, backup, draft); err != nil {
		return "", errors.Join(err, os.Remove(draft))
	}
	if aside, err = moveAside(path, now); err != nil {
		return "", err
	}
	if err := os.Rename(draft, path); err != nil {
		return aside, err
	}
	return aside, syncDir(path)
}

// unused makes sure that no server has locked the file itself.
func unused(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errors.Join(&errLocked{path: path}, f.Close())
	}
	return errors.Join(err, unlock(f))
}

// copyFile copies a file that others write to only by replacing it, and checks the copy.
func copyFile(ctx context.Context, from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // it was read
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	if err = errors.Join(err, dst.Sync(), dst.Close()); err != nil {
		return err
	}
	_, err = inspect(ctx, to, 1<<62)
	return err
}

// moveAside gives a database and its log another name.
func moveAside(path string, now time.Time) (string, error) {
	aside := path + ".before-" + now.UTC().Format("20060102T150405")
	moved := ""
	for _, suffix := range []string{"-wal", "-shm", ""} { // the file last: without it, it is not a database yet
		err := os.Rename(path+suffix, aside+suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err == nil && suffix == "" {
			moved = aside
		}
	}
	return moved, nil
}
