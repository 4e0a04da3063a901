package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// schemaLock is the advisory lock that servers take to migrate one after the other.
const schemaLock = applicationID

// idleInTransaction is less than a lease lasts.
const idleInTransaction = "10s"

// openPostgres connects to a PostgreSQL database and migrates it.
func openPostgres(ctx context.Context, address string, log *slog.Logger) (*DB, error) {
	name := redact(address)
	cfg, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("open database %s: the URL cannot be read: give postgres://USER@HOST:PORT/DATABASE", name)
	}
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = "forge"
	}
	// A server that is cut off in the middle of a transaction leaves its locks behind, and whoever
	// takes its runs over would wait for them until PostgreSQL finds the connection dead: two hours.
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SET idle_in_transaction_session_timeout = '"+idleInTransaction+"'")
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", name, err)
	}
	db := stdlib.OpenDBFromPool(pool)
	d := &DB{log: log, name: name, dialect: dialectPostgres, writer: db, reader: db, pool: pool}
	if err := d.upgradePostgres(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// upgradePostgres migrates under a lock, unless there is nothing to do.
func (d *DB) upgradePostgres(ctx context.Context) error {
	version, err := d.inspectPostgres(ctx)
	if err != nil || version == newestSchema {
		return err
	}
	conn, err := d.writer.Conn(ctx)
	if err != nil {
		return fmt.Errorf("open database %s: %w", d.name, err)
	}
	defer conn.Close() //nolint:errcheck // back to the pool
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", schemaLock); err != nil {
		return fmt.Errorf("open database %s: wait for its migration: %w", d.name, err)
	}
	err = migrate(ctx, d.writer, d.dialect, d.dialect.tree(), d.log)
	// The lock must not go back to the pool with the connection, even when ctx has ended.
	_, unlockErr := conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", schemaLock)
	if err := errors.Join(err, unlockErr); err != nil {
		return fmt.Errorf("open database %s: %w", d.name, err)
	}
	return nil
}

// inspectPostgres returns the schema's version; 0 for a database without one. It
// refuses a schema in which another program has tables of the same names.
func (d *DB) inspectPostgres(ctx context.Context) (int64, error) {
	var ours bool
	var theirs sql.NullString
	err := d.writer.QueryRowContext(ctx, `SELECT to_regclass($1) IS NOT NULL, COALESCE(to_regclass('runs'), to_regclass('events'), to_regclass('deliveries'))::text`,
		schemaTable).Scan(&ours, &theirs)
	switch {
	case err != nil:
		return 0, fmt.Errorf("open database %s: %w", d.name, err)
	case !ours && theirs.Valid:
		return 0, fmt.Errorf("open database %s: it belongs to another program, which has a table %q: give a database or a schema (search_path) of its own", d.name, theirs.String)
	case !ours:
		return 0, nil
	}
	version, err := schemaVersion(ctx, d.writer)
	if err != nil {
		return 0, fmt.Errorf("open database %s: %w", d.name, err)
	}
	if version > newestSchema {
		return 0, newer(d.name, version)
	}
	return version, nil
}
