package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Check looks for damage: on SQLite at every page of the file, on PostgreSQL
// (which checks its own pages) at the schema. It can take seconds on a large file.
func (d *DB) Check(ctx context.Context) error {
	var version int64
	var err error
	if d.dialect == dialectPostgres {
		version, err = d.inspectPostgres(ctx)
	} else {
		version, err = inspect(ctx, d.path, 1<<62)
	}
	if err == nil && version != newestSchema {
		err = fmt.Errorf("check database %s: its schema has version %d, not %d: start Forge once to upgrade it", d.name, version, newestSchema)
	}
	return err
}

// Backup writes a copy of an SQLite database to path, as it is at one moment,
// checks it, and only then replaces an older copy of that name. Writers go on
// meanwhile. PostgreSQL has its own tools.
func (d *DB) Backup(ctx context.Context, path string) error {
	if d.dialect == dialectPostgres {
		return fmt.Errorf("back up database %s: use pg_dump, or PostgreSQL's own archiving", d.name)
	}
	if err := d.replaceable(ctx, path); err != nil {
		return fmt.Errorf("back up database %s to %s: %w", d.path, path, err)
	}
	draft := path + ".new"
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("back up database %s: %w", d.path, err)
	}
	if err := d.copyTo(ctx, draft); err != nil {
		return fmt.Errorf("back up database %s to %s: %w", d.path, path, errors.Join(err, os.Remove(draft)))
	}
	if err := os.Rename(draft, path); err != nil {
		return fmt.Errorf("back up database %s: %w", d.path, err)
	}
	return syncDir(path)
}

// replaceable says why a backup must not be put in the place of a file: only an older
// backup may be lost by it. The database's own files would be, with all that is in them.
func (d *DB) replaceable(ctx context.Context, path string) error {
	for _, suffix := range []string{"-wal", "-shm", "-journal", ".lock", ".new", rescued} {
		if path == d.path+suffix {
			return errors.New("this name is the database's own: give another")
		}
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if dir := filepath.Dir(path); !isDir(dir) {
			return fmt.Errorf("there is no directory %s: make it first", dir)
		}
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a directory: give a file's path in it")
	}
	if own, err := os.Stat(d.path); err == nil && os.SameFile(own, info) {
		return errors.New("it is the database itself: give another path")
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no plain file: give another path")
	}
	if _, err := inspect(ctx, path, 0); err != nil {
		return fmt.Errorf("it is there and is no backup, so it is left as it is: give another path, or remove it (%w)", err)
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// copyTo writes a copy, over a connection of its own.
func (d *DB) copyTo(ctx context.Context, draft string) error {
	db, err := connect(d.path, copyOptions)
	if err != nil {
		return err
	}
	return errors.Join(copyFrom(ctx, db, draft), db.Close())
}

// copyFrom writes a copy, makes it durable and checks every page of it.
func copyFrom(ctx context.Context, db *sql.DB, draft string) error {
	f, err := os.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was synced
	if _, err := db.ExecContext(ctx, "VACUUM INTO $1", draft); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	_, err = inspect(ctx, draft, 1<<62)
	return err
}
