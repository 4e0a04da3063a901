package store

import (
	"context"
	"fmt"
	"io"
	"log/slog"
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

// databases are those that all has to hold on. With the tag e2e, PostgreSQL is one.
var databases = []database{{dialectSQLite, func(t testing.TB) string { return filepath.Join(t.TempDir(), "forge.db") }}}

type database struct {
	dialect dialect
	address func(testing.TB) string // of a new one
}

// thorough has tests that do the same again and again do more of it; with the tag e2e.
var thorough bool

func onEach(t *testing.T, test func(t *testing.T, d *DB)) {
	onAddresses(t, func(t *testing.T, address string, _ dialect) { test(t, openPath(t, address)) })
}

func onAddresses(t *testing.T, test func(t *testing.T, address string, in dialect)) {
	for _, d := range databases {
		t.Run(string(d.dialect), func(t *testing.T) {
			t.Parallel()
			test(t, d.address(t), d.dialect)
		})
	}
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
