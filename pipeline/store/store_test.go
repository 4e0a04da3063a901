package store

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
)

// now is a fixed time, whole microseconds.
var now = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

const (
	trace  = "0123456789abcdef0123456789abcdef"
	repoID = 1 << 40 // more than 32 bits
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// onBoth runs a test on SQLite and, where there is one, on PostgreSQL.
func onBoth(t *testing.T, test func(t *testing.T, d *DB)) {
	t.Run("sqlite", func(t *testing.T) { test(t, openFile(t)) })
	t.Run("postgres", func(t *testing.T) {
		d, err := Open(t.Context(), postgresAddress(t), quiet())
		if err != nil {
			t.Fatal(err)
		}
		closeAfter(t, d)
		test(t, d)
	})
}

func openFile(t testing.TB) *DB {
	t.Helper()
	return openPath(t, filepath.Join(t.TempDir(), "forge.db"))
}

func openPath(t testing.TB, path string) *DB {
	t.Helper()
	d, err := Open(t.Context(), path, quiet())
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, d)
	return d
}

func closeAfter(t testing.TB, d *DB) {
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// postgresAddress makes a schema for the test alone and returns its address.
func postgresAddress(t testing.TB) string {
	t.Helper()
	address := os.Getenv("FORGE_TEST_POSTGRES")
	if address == "" {
		t.Skip("needs PostgreSQL: set FORGE_TEST_POSTGRES to a postgres:// URL of a database to make schemas in")
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	schema := fmt.Sprintf("forge_%d_%d", os.Getpid(), time.Now().UnixNano())
	admin, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec("CREATE SCHEMA " + schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.Exec("DROP SCHEMA " + schema + " CASCADE"); err != nil {
			t.Error(err)
		}
		admin.Close()
	})
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

func startOf(issue int) pipeline.Start {
	return pipeline.Start{
		Repo:   pipeline.Repo{ID: repoID, Owner: "acme", Name: "site", DefaultBranch: "main", CloneURL: "https://example.org/acme/site"},
		Task:   pipeline.Task{Issue: issue, Title: "Add a thing", Author: pipeline.Actor{ID: 1, Login: "ann"}},
		By:     pipeline.Actor{ID: 1, Login: "ann"},
		Config: config.Default(), Base: strings.Repeat("a", 40), Branch: fmt.Sprintf("forge/issue-%d", issue),
	}
}

func begin(t testing.TB, d *DB, issue int) *pipeline.Run {
	t.Helper()
	run, err := d.CreateRun(context.Background(), fmt.Sprintf("start/%d", issue), startOf(issue), now, trace, nil)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// ev is an event of a type at a number of seconds after now.
func ev(id string, typ pipeline.EventType, seconds int, data pipeline.Data) pipeline.Event {
	return pipeline.Event{ID: id, Type: typ, Source: "forge", Time: now.Add(time.Duration(seconds) * time.Second), Data: data}
}

func add(t testing.TB, d *DB, run *pipeline.Run, events ...pipeline.Event) {
	t.Helper()
	if err := d.Append(context.Background(), run, events, nil); err != nil {
		t.Fatal(err)
	}
}

func count(t testing.TB, d *DB, query string, args ...any) (n int) {
	t.Helper()
	if err := d.reader.QueryRow(query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
