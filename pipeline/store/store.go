package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is an open database. It is safe for concurrent use.
type DB struct {
	log      *slog.Logger
	name     string // for people: the file, or the server's host and database; never a password
	dialect  dialect
	path     string // SQLite's file; empty on PostgreSQL
	writer   *sql.DB
	reader   *sql.DB
	pool     *pgxpool.Pool        // nil on SQLite
	prepared map[string]*sql.Stmt // statements that are prepared once, by their text; SQLite only
	packers  sync.Pool            // of *packer
	lock     *os.File             // held by the server that owns the file
	file     *os.File             // the file itself, locked by the server that owns it
	opened   os.FileInfo          // of the file; nil on PostgreSQL
}

// A stateError is a refusal that callers react to. Packages that cannot import
// this one recognise it by its methods.
type stateError struct {
	text               string
	conflict, notFound bool
}

func (e *stateError) Error() string  { return e.text }
func (e *stateError) Conflict() bool { return e.conflict } // load the run again and decide anew
func (e *stateError) NotFound() bool { return e.notFound }

// The errors that callers test with errors.Is.
var (
	ErrConflict error = &stateError{text: "another writer was first", conflict: true}
	ErrNotFound error = &stateError{text: "not found", notFound: true}
	ErrActive         = errors.New("the issue has an active run")
)

// ActiveError is ErrActive with the run that is active.
type ActiveError struct{ Run int64 }

func (e *ActiveError) Error() string    { return fmt.Sprintf("%v: run %d", ErrActive, e.Run) }
func (e *ActiveError) ActiveRun() int64 { return e.Run }
func (e *ActiveError) Unwrap() error    { return ErrActive }

// Open opens a database and brings its schema up to date. The address is the
// path of an SQLite file, the same after "sqlite:", or a "postgres://" URL. An
// SQLite file that does not exist is made; its directory must exist.
func Open(ctx context.Context, address string, log *slog.Logger) (*DB, error) {
	scheme, rest, found := strings.Cut(address, ":")
	switch {
	case address == "":
		return nil, errors.New("open database: no address: give a file's path, or a postgres:// URL")
	case found && (scheme == "postgres" || scheme == "postgresql"):
		return openPostgres(ctx, address, log)
	case found && scheme == "sqlite":
		return openSQLite(ctx, strings.TrimPrefix(rest, "//"), log)
	case found && strings.HasPrefix(rest, "//"):
		return nil, fmt.Errorf("open database: %q is not a kind of database that Forge knows: give a file's path, sqlite:PATH or postgres://…", scheme)
	}
	return openSQLite(ctx, address, log)
}

// Close closes the database and gives it up, when this process owned it.
func (d *DB) Close() error {
	var errs []error
	if d.reader != d.writer {
		errs = append(errs, d.reader.Close())
	}
	errs = append(errs, d.writer.Close())
	if d.pool != nil {
		d.pool.Close()
	}
	errs = append(errs, unlock(d.file), unlock(d.lock))
	d.file, d.lock = nil, nil
	return errors.Join(errs...)
}

// SQL returns the connections that may write: exactly one on SQLite.
func (d *DB) SQL() *sql.DB { return d.writer }

// Pool returns the pool of a PostgreSQL database, nil on SQLite.
func (d *DB) Pool() *pgxpool.Pool { return d.pool }

// Tx runs fn in a transaction that may write. It is committed when fn returns
// nil. On SQLite, transactions run one after the other: fn must be short, and
// must reach the database through tx alone.
func (d *DB) Tx(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) error) error {
	if err := d.present(); err != nil { // what is written now would be lost at the end
		return err
	}
	tx, err := d.writer.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to undo
	if err := fn(ctx, tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil { // it was rolled back when ctx ended
			err = ctx.Err()
		}
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// exec runs a statement inside tx, prepared when it is a hot one.
func (d *DB) exec(ctx context.Context, tx *sql.Tx, query string, args ...any) (int64, error) {
	var res sql.Result
	var err error
	if st := d.prepared[query]; st != nil {
		res, err = tx.StmtContext(ctx, st).ExecContext(ctx, args...)
	} else {
		res, err = tx.ExecContext(ctx, query, args...)
	}
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// change runs one statement in a transaction of its own, or in tx when there is
// one, and reports how many rows it touched.
func (d *DB) change(ctx context.Context, tx *sql.Tx, query string, args ...any) (n int64, err error) {
	if tx != nil {
		return d.exec(ctx, tx, query, args...)
	}
	err = d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		n, err = d.exec(ctx, tx, query, args...)
		return err
	})
	return n, err
}

// prepareHot prepares the statements that every run and delivery needs. pgx
// keeps statements by itself; SQLite's driver would parse them each time.
func (d *DB) prepareHot(ctx context.Context) error {
	d.prepared = map[string]*sql.Stmt{}
	queries := []string{stepRun, updateRun, addSpend}
	for _, n := range chunkSizes {
		queries = append(queries, insertEvents.sql(d.dialect, n), insertDeliveries.sql(d.dialect, n))
	}
	for _, q := range queries {
		st, err := d.writer.PrepareContext(ctx, q)
		if err != nil {
			return fmt.Errorf("prepare %.40q: %w", q, err)
		}
		d.prepared[q] = st
	}
	return nil
}

// redact returns a URL's host and database.
func redact(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "postgres"
	}
	return "postgres://" + u.Host + u.Path
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// clean makes text from outside fit for a column: PostgreSQL takes neither NUL
// nor bytes that are not UTF-8.
func clean[S ~string](s S) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(s), "\uFFFD"), "\x00", "\uFFFD")
}

func limitOr(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}
