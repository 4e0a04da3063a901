package server_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/server"
	"forge/cmd/forge/server/servertest"
	"forge/cmd/forge/settings"
	"forge/pipeline/store"
)

// The server backs its database up by itself, and only as many copies are kept as the
// settings say; a file of somebody else's stays. Covers reliability 12.
func TestBackups(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ts := servertest.New(t, servertest.Options{Wire: func(o *server.Options) {
		o.Config.BackupEvery, o.Config.BackupKeep, o.Config.BackupDir = time.Hour, 2, dir
	}})
	var list []server.Backup
	servertest.Eventually(t, func() bool {
		list, _ = server.Backups(dir)
		return len(list) > 0
	}, func() string { return "no backup is made" })
	ts.Must(os.WriteFile(filepath.Join(dir, "notes.db"), nil, 0o600))
	begun := filepath.Join(dir, list[0].At.Add(-3*time.Hour).Format(server.BackupForm)+".new") // by a server that died
	fresh := filepath.Join(dir, list[0].At.Format(server.BackupForm)+".new")                   // by a command that is at it
	for _, path := range []string{begun, begun + "-journal", fresh} {
		ts.Must(os.WriteFile(path, nil, 0o600))
	}
	hours := time.Now().Add(-3 * time.Hour)
	ts.Must(os.Chtimes(begun, hours, hours))
	ts.Must(os.Chtimes(begun+"-journal", hours, hours))
	cfg := settings.Config{BackupKeep: 2, BackupDir: dir}
	for i := range 3 {
		_, err := server.BackUp(t.Context(), ts.Forge.DB, cfg, list[0].At.Add(time.Duration(i+1)*time.Hour))
		ts.Must(err)
	}
	kept, err := server.Backups(dir)
	ts.Must(err)
	if len(kept) != 2 || !kept[0].At.Equal(list[0].At.Add(3*time.Hour)) || kept[0].Size == 0 {
		t.Fatalf("kept: %+v", kept)
	}
	names := func() (out []string) {
		left, err := os.ReadDir(dir)
		ts.Must(err)
		for _, e := range left {
			out = append(out, e.Name())
		}
		return out
	}
	want := []string{filepath.Base(fresh), filepath.Base(kept[1].Path), filepath.Base(kept[0].Path), "notes.db"}
	if got := names(); !slices.Equal(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
	copied, err := store.Open(t.Context(), kept[0].Path, slog.New(slog.DiscardHandler))
	ts.Must(err)
	ts.Must(copied.Check(t.Context()))
	ts.Must(copied.Close())
}

// Covers reliability 11: who has a database that cannot be read, or is gone, is told which
// backup is sound, by its path, and by which command it is put in place; that command
// works, and what was there stays. Nothing is begun anew meanwhile.
func TestWayBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, backups := filepath.Join(dir, "forge.db"), filepath.Join(dir, "backups")
	cfg := settings.Config{StateDir: dir, DatabaseURL: settings.NewSecret(path), BackupKeep: 3, BackupDir: backups}
	open := func() (*store.DB, error) {
		return server.OpenStore(t.Context(), server.Options{Config: cfg, Log: slog.New(slog.DiscardHandler)})
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := open()
	must(err)
	must(db.SetPaused(t.Context(), store.Pause{At: time.Now(), Actor: "mia", Paused: true, Reason: "kept"}))
	sound, err := server.BackUp(t.Context(), db, cfg, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	must(err)
	torn, err := server.BackUp(t.Context(), db, cfg, time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC))
	must(err)
	must(os.Truncate(torn, 20_000))
	must(db.Close())
	for name, spoil := range map[string]func() error{
		"truncated": func() error { return os.Truncate(path, 30_000) },
		"empty":     func() error { return os.Truncate(path, 0) },
		"foreign":   func() error { return os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600) },
	} {
		must(spoil())
		_, err := open()
		if err == nil || !strings.Contains(err.Error(), "`forge restore "+sound+"`") || strings.Contains(err.Error(), torn) {
			t.Fatalf("%s: %v; want it to name %s", name, err, sound)
		}
		aside, err := store.Restore(t.Context(), sound, path, time.Now())
		must(err)
		must(os.Remove(aside)) // it is there; the next is of the same second
		db, err := open()
		must(err)
		if paused, err := db.Paused(t.Context(), ""); err != nil || !paused {
			t.Errorf("%s: what was in it is not there: %v", name, err)
		}
		must(db.Close())
	}
	must(os.RemoveAll(backups))
	must(os.Truncate(path, 0))
	if _, err := open(); err == nil || !strings.Contains(err.Error(), "There is no sound backup in "+backups) {
		t.Errorf("without a backup: %v", err)
	}
	cfg.DatabaseURL = settings.NewSecret(filepath.Join(dir, "none", "forge.db"))
	must(os.WriteFile(filepath.Join(dir, "none"), nil, 0o600))
	if _, err := open(); err == nil || strings.Contains(err.Error(), "backup") {
		t.Errorf("a mistaken path: %v", err)
	}
}
