//go:build e2e

package store

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forge/pipeline/store/storetest"
)

func init() {
	thorough = true
	databases = append(databases, database{dialectPostgres, storetest.Postgres})
}

func TestOwnOnPostgresIsForAll(t *testing.T) {
	t.Parallel()
	address := storetest.Postgres(t)
	for range 2 {
		d, err := Open(t.Context(), address, quiet())
		must(t, err)
		closeAfter(t, d)
		must(t, d.Own())
		if d.Pool() == nil {
			t.Error("no pool")
		}
	}
}

func TestPostgresRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, statement, says string }{
		{"another program's", `CREATE TABLE events (a int)`, `another program, which has a table "events"`},
		{"newer", `INSERT INTO forge_schema (version_id, is_applied) VALUES (900, true)`, "a newer Forge wrote it (schema 900"},
	} {
		t.Run(c.name, func(t *testing.T) {
			address := storetest.Postgres(t)
			admin, err := sql.Open("pgx", address)
			must(t, err)
			defer admin.Close()
			if strings.Contains(c.statement, schemaTable) {
				d, err := Open(t.Context(), address, quiet())
				must(t, err)
				must(t, d.Close())
			}
			_, err = admin.Exec(c.statement)
			must(t, err)
			d, err := Open(t.Context(), address, quiet())
			if err == nil {
				d.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %q, want %q", err, c.says)
			}
		})
	}
}

// The two migration folders make the same tables, columns and indexes, but for
// the search in texts: a virtual table in SQLite, a column and its index in PostgreSQL.
func TestSchemasAreAlike(t *testing.T) {
	t.Parallel()
	address := storetest.Postgres(t)
	p, err := Open(t.Context(), address, quiet())
	must(t, err)
	closeAfter(t, p)
	names := func(d *DB, query string) string {
		rows, err := d.reader.Query(query)
		must(t, err)
		list, err := collect(rows, "names", func(s *string) error { return rows.Scan(s) })
		must(t, err)
		return strings.Join(list, "\n")
	}
	want(t, "columns", names(p, `SELECT table_name || '.' || column_name FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name <> 'forge_schema' AND column_name <> 'words' ORDER BY table_name COLLATE "C", ordinal_position`),
		names(openFile(t), `SELECT m.name || '.' || c.name FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' AND m.name <> 'forge_schema' AND m.name NOT LIKE 'memories_text%' ORDER BY m.name, c.cid`))
	want(t, "indexes", names(p, `SELECT indexname::text FROM pg_indexes WHERE schemaname = current_schema()
		AND indexname NOT LIKE '%key' AND indexname NOT LIKE '%pkey' AND indexname <> 'memories_words' ORDER BY indexname COLLATE "C"`),
		names(openFile(t), `SELECT name FROM sqlite_master WHERE type = 'index' AND name NOT LIKE 'sqlite%' ORDER BY name`))
}

// The same on PostgreSQL, which plans by what the tables hold: of a repository with
// few rows it reads these; of one with many it may go through the newest rows of
// all, and finds as many as it needs soon.
func TestPlansOnPostgres(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), storetest.Postgres(t), quiet())
	must(t, err)
	closeAfter(t, d)
	for _, q := range []string{
		`INSERT INTO runs (key, trace, seq, repo_id, repo, issue, title, branch, state, started, updated)
			SELECT 'k' || i, '', 100, i % 50, 'acme/r' || i % 50, i, 'title', 'b' || i, CASE WHEN i % 1000 = 0 THEN 'failed' ELSE 'verified' END, i, i FROM generate_series(1, 20000) i`,
		`INSERT INTO events (run, seq, id, type, source, time, data) SELECT i % 500 + 1, i / 500, 'e' || i, 'note', '', i, '{}' FROM generate_series(1, 20000) i`,
		`INSERT INTO deliveries (guid, event, action, repo, received, state, quiet, payload)
			SELECT 'g' || i, 'push', '', 'acme/r' || i % 50, i, CASE WHEN i % 1000 = 0 THEN 'dead' ELSE 'done' END, i % 10 <> 0, '' FROM generate_series(1, 20000) i`,
		`INSERT INTO cursors (name, run, seq) SELECT 'metrics', i, 5 FROM generate_series(1, 20000) i`,
		`INSERT INTO metric_snapshots SELECT 'acme/r' || i % 20, 20260101 + i % 28, 'm' || i % 50, '', i, 1, 1, 1 FROM generate_series(1, 20000) i`,
		`ANALYZE`,
	} {
		_, err := d.SQL().Exec(q)
		must(t, err)
	}
	for _, p := range planned() {
		if p.postgres == nil {
			continue
		}
		query := p.query
		for i := len(p.args) - 1; i >= 0; i-- { // EXPLAIN takes no parameters
			value := fmt.Sprint(p.args[i])
			if s, ok := p.args[i].(string); ok {
				value = "'" + s + "'"
			} else {
				value = "'" + value + "'::bigint"
			}
			query = strings.ReplaceAll(query, fmt.Sprintf("$%d", i+1), value)
		}
		rows, err := d.reader.Query("EXPLAIN (COSTS OFF) " + query)
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		lines, err := collect(rows, "explain", func(s *string) error { return rows.Scan(s) })
		must(t, err)
		checkPlan(t, p.name, strings.Join(lines, "\n"), p.postgres, []string{"Seq Scan"})
	}
}

func TestBackupOfPostgres(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), storetest.Postgres(t), quiet())
	must(t, err)
	closeAfter(t, d)
	if err := d.Backup(t.Context(), filepath.Join(t.TempDir(), "x")); err == nil || !strings.Contains(err.Error(), "pg_dump") {
		t.Errorf("got %v", err)
	}
}

// Covers reliability 2: the locks of a server that is cut off within a transaction are gone before
// its leases run out, so that another one can take its runs over.
func TestLocksOfTheCutOff(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d, err := Open(ctx, storetest.Postgres(t), quiet())
	must(t, err)
	closeAfter(t, d)
	conn, err := d.writer.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var after string
	if err := conn.QueryRowContext(ctx, "SHOW idle_in_transaction_session_timeout").Scan(&after); err != nil || after != idleInTransaction {
		t.Errorf("a session may be idle in a transaction for %s, %v", after, err)
	}
	if _, err := conn.ExecContext(ctx, "SET idle_in_transaction_session_timeout = '200ms'; CREATE TABLE held (id INT); INSERT INTO held VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // its session is ended
	if _, err := tx.ExecContext(ctx, "UPDATE held SET id = 2"); err != nil {
		t.Fatal(err)
	}
	waiting, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	if _, err := d.writer.ExecContext(waiting, "UPDATE held SET id = 3"); err != nil {
		t.Errorf("another one waits for the lock: %v", err)
	}
}
