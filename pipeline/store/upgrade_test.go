package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"forge/pipeline"
	"forge/pipeline/record"
)

// withNext returns the migrations of a dialect and one more.
func withNext(t *testing.T, in dialect, statement string) fs.FS {
	t.Helper()
	tree := fstest.MapFS{fmt.Sprintf("%05d_next.sql", newestSchema+1): {Data: []byte("-- +goose Up\n" + statement)}}
	files, err := fs.Glob(in.tree(), "*.sql")
	must(t, err)
	want(t, "migrations", int64(len(files)), newestSchema)
	for _, name := range files {
		data, err := fs.ReadFile(in.tree(), name)
		must(t, err)
		tree[name] = &fstest.MapFile{Data: data}
	}
	return tree
}

// Covers reliability 21: a migration that breaks off leaves the old schema, one
// that succeeds the new one, and then this program refuses the database.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	onAddresses(t, func(t *testing.T, address string, in dialect) {
		d, err := Open(t.Context(), address, quiet())
		must(t, err)
		run := begin(t, d, 5)
		broken := withNext(t, in, "CREATE TABLE next (a INTEGER);\nINSERT INTO nowhere VALUES (1);")
		if err := migrate(t.Context(), d.SQL(), in, broken, quiet()); err == nil || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("broken migration: %v", err)
		}
		must(t, d.Check(t.Context()))
		if _, err := d.SQL().Exec("SELECT a FROM next"); err == nil {
			t.Error("a broken migration left a table")
		}
		must(t, migrate(t.Context(), d.SQL(), in, withNext(t, in, "CREATE TABLE next (a INTEGER);"), quiet()))
		if _, err := d.SQL().Exec("SELECT a FROM next"); err != nil {
			t.Error(err)
		}
		_, err = d.Load(t.Context(), run.ID)
		must(t, err)
		must(t, d.Close())
		if d, err := Open(t.Context(), address, quiet()); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("a newer Forge wrote it (schema %d", newestSchema+1)) {
			t.Errorf("open what a newer program wrote: %v, %v", d, err)
		}
	})
}

// A schema is not changed under a server that runs on it.
func TestUpgradeUnderAServer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forge.db")
	server, other := openPath(t, path), openPath(t, path)
	must(t, server.Own())
	gone, cancel := context.WithCancel(t.Context())
	cancel() // it would wait
	if err := other.upgradeSQLite(gone); err == nil || !strings.Contains(err.Error(), "is running on it") {
		t.Errorf("got %v", err)
	}
	must(t, server.Close())
	must(t, other.upgradeSQLite(t.Context()))
}

// Covers reliability 10: a full disk loses nothing that was acknowledged, and
// work goes on when there is room again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	d := openFile(t)
	ctx := t.Context()
	run := begin(t, d, 5)
	var pages int
	must(t, d.writer.QueryRow("PRAGMA page_count").Scan(&pages))
	if _, err := d.writer.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages+8)); err != nil {
		t.Fatal(err)
	}
	kept := 0
	var err error
	for ; err == nil && kept < 10_000; kept++ {
		v := delivery(strings.Repeat("g", kept+1))
		err = d.KeepDeliveries(ctx, []record.Delivery{v})
	}
	kept--
	if err == nil || !strings.Contains(err.Error(), "full") {
		t.Fatalf("after %d deliveries: %v", kept, err)
	}
	before := run.Seq
	big := ev("big", "note", 1, pipeline.Data{Note: strings.Repeat("x", 1<<20)})
	if err := d.Append(ctx, run, []pipeline.Event{big}, nil); err == nil || run.Seq != before {
		t.Errorf("append on a full disk: %v, seq %d", err, run.Seq)
	}
	want(t, "deliveries", count(t, d, "SELECT count(*) FROM deliveries"), kept)
	must(t, d.Check(ctx))
	if _, err := d.writer.Exec("PRAGMA max_page_count = 100000"); err != nil {
		t.Fatal(err)
	}
	must(t, d.Append(ctx, run, []pipeline.Event{big}, nil))
	must(t, d.KeepDeliveries(ctx, []record.Delivery{delivery("again")}))
}

// Covers reliability 12: a backup holds what was committed, and opens.
func TestBackup(t *testing.T) {
	t.Parallel()
	d := openFile(t)
	ctx := t.Context()
	run := begin(t, d, 5)
	must(t, d.KeepDeliveries(ctx, []record.Delivery{delivery("a")}))
	path := filepath.Join(t.TempDir(), "copy.db")
	write(t, path+".new", []byte("half a backup"))
	for _, events := range story()[:2] { // the second replaces the first
		add(t, d, run, events...)
		must(t, d.Backup(ctx, path))
	}
	info, err := os.Stat(path)
	must(t, err)
	want(t, "mode", info.Mode().Perm(), 0o600)
	restored := openPath(t, path)
	must(t, restored.Check(ctx))
	again, err := restored.Load(ctx, run.ID)
	must(t, err)
	if diff := same(run, again); diff != "" {
		t.Error(diff)
	}
	want(t, "deliveries", waiting(t, restored, now), "a")
	if err := d.Backup(ctx, filepath.Join(path, "below a file")); err == nil {
		t.Error("no error for a path that cannot be")
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := d.Backup(gone, path); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := os.Stat(path + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a half-made backup is left: %v", err)
	}
}

// Packages that cannot import this one know its errors by their methods.
func TestErrorsSpeakForThemselves(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		run := begin(t, d, 5)
		stale := clone(run)
		add(t, d, run, story()[0]...)
		var c interface{ Conflict() bool }
		if err := d.Append(t.Context(), stale, story()[1], nil); !errors.As(err, &c) || !c.Conflict() {
			t.Errorf("conflict: %v", err)
		}
		var n interface{ NotFound() bool }
		if _, err := d.Find(t.Context(), 1, 1, 1, ""); !errors.As(err, &n) || !n.NotFound() {
			t.Errorf("not found: %v", err)
		}
		var a interface{ ActiveRun() int64 }
		_, err := d.CreateRun(t.Context(), "x", startOf(5), now, trace, func(context.Context, *sql.Tx, int64) error { return nil })
		if !errors.As(err, &a) || a.ActiveRun() != run.ID || !strings.Contains(err.Error(), "has an active run: run 1") {
			t.Errorf("active: %v", err)
		}
	})
}
