package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	applicationID = 0x466F7267 // "Forg", in the file's header; the first migration sets it
	pageSize      = 4096
	// quickCheckUpTo is the size in bytes up to which a file is checked in full
	// when it is opened: some 40 ms. Larger ones are checked by [DB.Check].
	quickCheckUpTo = 16 << 20
)

// Every connection gets its settings from its address. mode=rw: a file that has
// vanished is an error, never a fresh start. The write-ahead log is folded into
// the file after 8,000 pages (32 MiB): after SQLite's own 1,000 it would be ten
// times a second at full speed.
const (
	inspectOptions = "mode=rw&_pragma=busy_timeout(10000)&_pragma=query_only(1)"
	copyOptions    = "mode=rw&_pragma=busy_timeout(10000)"
	createOptions  = "mode=rwc&_pragma=busy_timeout(10000)"
	writerOptions  = "mode=rw&_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)" +
		"&_pragma=synchronous(FULL)&_pragma=wal_autocheckpoint(8000)&_pragma=fullfsync(1)&_pragma=foreign_keys(1)&_pragma=journal_size_limit(67108864)"
	readerOptions = "mode=rw&_txlock=deferred&_pragma=busy_timeout(10000)&_pragma=query_only(1)"
)

func connect(path, options string) (*sql.DB, error) {
	u := url.URL{Path: path}
	// Times are compared as texts, and the queue writes some in the server's own zone.
	return sql.Open("sqlite", "file:"+u.EscapedPath()+"?_timezone=UTC&_time_format=sqlite&"+options)
}

// openSQLite opens or makes a database file. Nothing is written to a file before
// it is known to be a Forge database of a schema that this program understands.
func openSQLite(ctx context.Context, path string, log *slog.Logger) (*DB, error) {
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return nil, errors.New("open database: no file's path given: Forge keeps its database in a file")
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // SQLite's log and the lock lie beside the file itself
	}
	version := int64(newestSchema)
	isNew, err := provide(ctx, path, log)
	if err == nil && !isNew {
		version, err = inspect(ctx, path, quickCheckUpTo)
	}
	if err != nil {
		return nil, err
	}
	d := &DB{log: log, name: path, dialect: dialectSQLite, path: path}
	if d.writer, err = connect(path, writerOptions); err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	d.writer.SetMaxOpenConns(1)
	if d.reader, err = connect(path, readerOptions); err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, errors.Join(err, d.writer.Close()))
	}
	d.reader.SetMaxOpenConns(max(4, runtime.NumCPU()))
	d.reader.SetMaxIdleConns(4)
	if version < newestSchema {
		err = d.upgradeSQLite(ctx)
	}
	if err == nil {
		d.opened, err = os.Stat(path)
	}
	if err == nil {
		err = d.prepareHot(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, errors.Join(err, d.Close()))
	}
	return d, nil
}

// provide makes sure that the file is there and not empty: it makes a new one
// when nothing is left of an old one.
func provide(ctx context.Context, path string, log *slog.Logger) (isNew bool, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return false, fmt.Errorf("open database %s: it is a directory: give the path of a file", path)
	case err == nil && info.Size() == 0:
		return false, unsound("open database %s: the file is empty, so its contents are lost: restore a backup; "+
			"if there was nothing in it, delete it and %[1]s.lock, and Forge makes a new one", path)
	case err == nil:
		return false, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("open database: %w", err)
	}
	if err := Lost(path); err != nil {
		return false, err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return false, fmt.Errorf("open database %s: it is a link to a file that is missing: make the file's directory reachable, or give the file's own path", path)
	}
	return create(ctx, path, log)
}

// Lost reports that a database's file is not there although one has been in its place.
func Lost(path string) error {
	if _, err := os.Stat(path + "-wal"); err == nil {
		return unsound("open database %s: the file is missing but %[1]s-wal is there: put the file back beside it, or restore a backup; "+
			"to start anew, move %[1]s-wal away", path)
	}
	for _, beside := range []string{rescued, ".lock"} { // a server writes into the lock which process it is
		if info, err := os.Stat(path + beside); err == nil && info.Size() > 0 {
			return unsound("open database %s: the file is missing, but a server ran on it: put it back, or restore a backup or %[1]s%[2]s; "+
				"to start anew, delete %[1]s%[3]s", path, rescued, beside)
		}
	}
	return nil
}

// create makes a new database under another name and moves it into place when it
// is complete, so that a crash never leaves a half-made one.
func create(ctx context.Context, path string, log *slog.Logger) (isNew bool, err error) {
	unlock, err := lockToChange(ctx, path)
	if err != nil {
		return false, fmt.Errorf("create database %s: %w", path, err)
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return false, nil // another process was faster
	}
	draft := path + ".new"
	for _, suffix := range []string{"", "-journal", "-wal", "-shm"} {
		if err := os.Remove(draft + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("create database %s: %w", path, err)
		}
	}
	// Deliveries and model calls are nobody else's business.
	f, err := os.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false, fmt.Errorf("create database: %w", err)
	}
	err = fill(ctx, draft, log)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return false, fmt.Errorf("create database %s: %w", path, err)
	}
	if err := os.Rename(draft, path); err != nil {
		return false, fmt.Errorf("create database: %w", err)
	}
	return true, syncDir(path)
}

// fill gives an empty file the schema and turns on the write-ahead log, which
// stays on for whoever opens it later. Nothing is synced on the way: the file is
// nobody's yet.
func fill(ctx context.Context, draft string, log *slog.Logger) error {
	db, err := connect(draft, fmt.Sprintf("%s&_pragma=page_size(%d)&_pragma=journal_mode(MEMORY)&_pragma=synchronous(OFF)", createOptions, pageSize))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	err = migrate(ctx, db, dialectSQLite, dialectSQLite.tree(), log)
	if err == nil {
		_, err = db.ExecContext(ctx, "PRAGMA journal_mode = WAL")
	}
	return errors.Join(err, db.Close())
}

// upgradeSQLite migrates a file that an older Forge wrote. No server may be
// running on it meanwhile.
func (d *DB) upgradeSQLite(ctx context.Context) error {
	unlock, err := lockToChange(ctx, d.path)
	if err != nil {
		return err
	}
	defer unlock()
	return migrate(ctx, d.writer, d.dialect, d.dialect.tree(), d.log)
}

// inspect looks at a file without changing it and returns its schema's version.
// A file of up to checkUpTo bytes is checked in full.
func inspect(ctx context.Context, path string, checkUpTo int64) (version int64, err error) {
	db, err := connect(path, inspectOptions)
	if err != nil {
		return 0, fmt.Errorf("open database %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	var id int64
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return 0, explain(path, err)
	}
	if id != applicationID {
		return 0, fmt.Errorf("open database %s: it is an SQLite database of another program (application id %#x): give another path", path, id)
	}
	version, err = schemaVersion(ctx, db)
	switch {
	case err != nil:
		return 0, explain(path, err)
	case version == 0:
		return 0, unsound("open database %s: the record of its schema is gone: restore a backup", path)
	case version > newestSchema:
		return 0, newer(path, version)
	}
	if info, err := os.Stat(path); err == nil && info.Size() <= checkUpTo {
		return version, quickCheck(ctx, db, path)
	}
	return version, nil
}

// quickCheck looks at every page.
func quickCheck(ctx context.Context, db *sql.DB, path string) error {
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return explain(path, err)
	}
	if verdict != "ok" {
		return damaged(path, strings.Join(strings.Fields(verdict), " "))
	}
	return nil
}

// explain turns SQLite's complaint about a file into words that help.
func explain(path string, err error) error {
	var se *sqlite.Error
	if errors.As(err, &se) {
		switch se.Code() & 0xff {
		case sqlite3.SQLITE_NOTADB:
			return unsound("open database %s: the file is not an SQLite database: give another path, or restore a backup", path)
		case sqlite3.SQLITE_CORRUPT:
			return damaged(path, se.Error())
		case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY:
			return fmt.Errorf("open database %s: %w: Forge must be allowed to write the file and its directory", path, err)
		}
	}
	return fmt.Errorf("open database %s: %w", path, err)
}

// unsoundError says that a database cannot be read, or is gone: nothing in it is to be had.
type unsoundError struct{ error }

func (e *unsoundError) Unwrap() error { return e.error }

func unsound(format string, args ...any) error {
	return &unsoundError{fmt.Errorf(format, args...)}
}

// Unsound reports whether an error of [Open] means that what was in the database is not
// to be had from it, and a backup is.
func Unsound(err error) bool {
	var e *unsoundError
	return errors.As(err, &e)
}

// Sound looks at every page of an SQLite database that nobody has open, such as a backup.
func Sound(ctx context.Context, path string) error {
	_, err := inspect(ctx, path, 1<<62)
	return err
}

func damaged(path, what string) error {
	return unsound("open database %s: the file is damaged (%s): move it and its -wal file away and restore the latest backup", path, what)
}

func newer(name string, version int64) error {
	return fmt.Errorf("open database %s: a newer Forge wrote it (schema %d, this program knows up to %d): run that version, or restore a backup of before the upgrade", name, version, newestSchema)
}
