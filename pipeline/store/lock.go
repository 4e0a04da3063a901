package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// lockWait is how long a process waits for another one that makes or upgrades
// the same file; both take well under a second.
const lockWait = 10 * time.Second

// Own makes this process the one server of an SQLite file, until Close. A second
// server is refused. PostgreSQL has no owner: there, leases keep servers apart.
func (d *DB) Own() error {
	if d.dialect == dialectPostgres || d.lock != nil {
		return nil
	}
	f, err := tryLock(d.path)
	if err == nil {
		err = d.lockFile()
	}
	if err != nil {
		return fmt.Errorf("own database %s: %w", d.path, errors.Join(err, unlock(f)))
	}
	// Another process may have upgraded the schema since this one looked.
	version, err := schemaVersion(context.Background(), d.writer)
	if err == nil && version != newestSchema {
		err = newer(d.path, version)
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	if err != nil {
		return fmt.Errorf("own database %s: %w", d.path, errors.Join(err, unlock(f)))
	}
	d.lock = f
	return nil
}

// lockFile locks the database file itself, because the file beside it can be deleted
// while its lock is held, and has another name for every name of the database. The
// descriptor stays open until Close: to close it would end SQLite's own locks, too.
func (d *DB) lockFile() error {
	f, err := os.OpenFile(d.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	d.file = f
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
		return fmt.Errorf("the file has %d names (hard links), and each would get a log of its own: copy it, and delete the other names", st.Nlink)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &errLocked{path: d.path}
	}
	return err
}

// unlock lets go of a lock and closes its file; nil is no lock. To close it is not enough:
// a child that is being started has a copy of the descriptor for a moment, and the lock with it.
func unlock(f *os.File) error {
	if f == nil {
		return nil
	}
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// errGone says that a database's file was taken away from under it.
type errGone struct{ path string }

func (e *errGone) Error() string {
	return fmt.Sprintf("the database file %s was deleted or replaced while it was in use: nothing is kept any more; stop Forge and put the file back, or run `forge restore %[1]s%s`, which has what was in it", e.path, rescued)
}

// present reports whether the file that was opened still has its name.
func (d *DB) present() error {
	if d.opened == nil {
		return nil
	}
	if info, err := os.Stat(d.path); err != nil || !os.SameFile(info, d.opened) {
		return &errGone{d.path}
	}
	return nil
}

// Rescued is where [DB.Rescue] copies the database in a file to.
func Rescued(path string) string { return path + rescued }

// rescued ends the name of the copy that is made of a database without a name.
const rescued = ".rescued"

// Rescue writes a copy of the database beside it when its file was deleted or replaced
// while it was open: what is in it is there until the process ends. It returns the
// copy's path, "" when the file is in place.
func (d *DB) Rescue(ctx context.Context) (string, error) {
	if d.present() == nil {
		return "", nil
	}
	path := d.path + rescued
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	draft := path + ".new"
	err := os.Remove(draft) // of a try before
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = copyFrom(ctx, d.writer, draft)
	}
	if err == nil { // the log that stays behind would be played over a file that is put in the database's place
		_, err = d.writer.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	}
	if err == nil {
		err = os.Rename(draft, path)
	}
	if err != nil {
		return "", fmt.Errorf("rescue database %s: %w", d.path, err)
	}
	return path, syncDir(path)
}

// errLocked says that another process holds the lock, and which.
type errLocked struct{ path, pid string }

func (e *errLocked) Error() string {
	who := "another Forge"
	if e.pid != "" {
		who = "the Forge with process id " + e.pid
	}
	return fmt.Sprintf("%s is running on it: stop that one first, or give another database (%s is locked)", who, e.path)
}

// tryLock takes the lock that lies beside a database file. The kernel lets go of
// it when the process ends, however it ends.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		pid, _ := io.ReadAll(io.LimitReader(f, 20)) // without it the message is just shorter
		err = &errLocked{path: path, pid: strings.TrimSpace(string(pid))}
	}
	return nil, errors.Join(err, f.Close())
}

// lockToChange takes the lock for as long as a file is made or upgraded. It waits
// for another process that does the same.
func lockToChange(ctx context.Context, path string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		f, err := tryLock(path)
		if err == nil {
			return func() { _ = unlock(f) }, nil
		}
		if held := (*errLocked)(nil); !errors.As(err, &held) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-tick.C:
		}
	}
}

// syncDir makes a file's name durable.
func syncDir(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("sync directory of %s: %w", path, err)
	}
	err = errors.Join(dir.Sync(), dir.Close())
	if err != nil {
		return fmt.Errorf("sync directory of %s: %w", path, err)
	}
	return nil
}
