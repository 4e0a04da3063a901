package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/pressly/goose/v3"
)

// newestSchema is the version of the last migration in both folders.
const newestSchema = 1

// schemaTable is where goose notes which migrations were applied.
const schemaTable = "forge_schema"

type dialect string

const (
	dialectSQLite   dialect = "sqlite"
	dialectPostgres dialect = "postgres"
)

//go:embed migrations
var migrations embed.FS

// tree returns the migrations of a dialect.
func (in dialect) tree() fs.FS {
	tree, err := fs.Sub(migrations, "migrations/"+string(in))
	if err != nil {
		panic(err) // unreachable: the folders are embedded
	}
	return tree
}

// migrate applies what is missing, each migration in a transaction of its own:
// a crash leaves the old schema or the new one. The caller holds a lock.
func migrate(ctx context.Context, db *sql.DB, in dialect, tree fs.FS, log *slog.Logger) error {
	kind := goose.DialectSQLite3
	if in == dialectPostgres {
		kind = goose.DialectPostgres
	}
	steps, err := readMigrations(tree)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	p, err := goose.NewProvider(kind, db, nil, goose.WithGoMigrations(steps...), goose.WithTableName(schemaTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	done, err := p.Up(ctx)
	for _, r := range done {
		log.DebugContext(ctx, "schema migrated", "version", r.Source.Version, "ms", r.Duration.Milliseconds())
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// readMigrations reads the files, each of them given to the database as it stands, which
// reads statements better than goose cuts them: goose's parser takes 4 MiB for each line.
func readMigrations(tree fs.FS) ([]*goose.Migration, error) {
	names, err := fs.Glob(tree, "*.sql")
	if err != nil {
		return nil, err
	}
	var steps []*goose.Migration
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, err
		}
		statements, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		steps = append(steps, goose.NewGoMigration(version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, string(statements)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		}}, nil))
	}
	return steps, nil
}

// Newer reports whether a newer Forge has upgraded the schema since this one opened the
// database, as while servers are replaced one after the other.
func (d *DB) Newer(ctx context.Context) (bool, error) {
	version, err := schemaVersion(ctx, d.reader)
	return version > newestSchema, err
}

// schemaVersion returns the newest migration that was applied, 0 for none.
func schemaVersion(ctx context.Context, db *sql.DB) (int64, error) {
	var v int64
	err := db.QueryRowContext(ctx, "SELECT COALESCE(MAX(version_id), 0) FROM "+schemaTable).Scan(&v)
	if err != nil {
		return 0, fmt.Errorf("read the schema's version: %w", err)
	}
	return v, nil
}
