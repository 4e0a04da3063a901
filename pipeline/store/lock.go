package store

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	if d.path == "" || d.lock != nil {
		return nil
	}
	f, err := tryLock(d.path)
	if err != nil {
		return fmt.Errorf("own database %s: %w", d.path, err)
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
		return fmt.Errorf("own database %s: %w", d.path, errors.Join(err, f.Close()))
	}
	d.lock = f
	return nil
}

// errLocked says that another process holds the lock, and which.
type errLocked struct{ path, pid string }

func (e *errLocked) Error() string {
	who := "another Forge"
	if e.pid != "" {
		who = "the Forge with process id " + e.pid
	}
	return fmt.Sprintf("%s is running on it: stop that one first, or give another database (%s.lock is held)", who, e.path)
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
func lockToChange(ctx context.Context, path string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		f, err := tryLock(path)
		if err == nil {
			return func() { _ = f.Close() }, nil
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
