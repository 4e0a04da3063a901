package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// Covers reliability 12: a backup takes the place of the database, and what was there
// is kept.
func TestRestore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, backup := filepath.Join(dir, "forge.db"), filepath.Join(dir, "copy.db")
	d, err := Open(t.Context(), path, quiet())
	must(t, err)
	must(t, d.Own())
	first := begin(t, d, 5)
	must(t, d.Backup(t.Context(), backup))
	begin(t, d, 6)
	synctest.Test(t, func(t *testing.T) { // it waits for the server
		if _, err := Restore(t.Context(), backup, path, now); err == nil || !strings.Contains(err.Error(), "is running on it") {
			t.Errorf("under a server: %v", err)
		}
	})
	must(t, d.Close())
	aside, err := Restore(t.Context(), backup, "sqlite:"+path, now)
	must(t, err)
	for file, runs := range map[string]int{path: 1, aside: 2} {
		d := openPath(t, file)
		want(t, file, count(t, d, "SELECT count(*) FROM runs"), runs)
		if _, err := d.Load(t.Context(), first.ID); err != nil {
			t.Error(err)
		}
	}
	// Where nothing is, nothing is moved.
	fresh := filepath.Join(dir, "fresh.db")
	aside, err = Restore(t.Context(), backup, fresh, now)
	must(t, err)
	want(t, "aside", aside, "")
	must(t, openPath(t, fresh).Check(t.Context()))
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, backup := filepath.Join(dir, "forge.db"), filepath.Join(dir, "copy.db")
	makeFile(t, path)
	makeFile(t, backup)
	must(t, os.Truncate(backup, 3*pageSize))
	write(t, filepath.Join(dir, "text"), []byte("no database"))
	for from, says := range map[string]string{backup: "damaged", filepath.Join(dir, "text"): "", filepath.Join(dir, "missing"): ""} {
		before, err := os.ReadFile(path)
		must(t, err)
		if _, err := Restore(t.Context(), from, path, now); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), from) {
			t.Errorf("%s: %v", from, err)
		}
		after, err := os.ReadFile(path)
		must(t, err)
		if string(before) != string(after) {
			t.Errorf("%s: the database was changed", from)
		}
	}
	if _, err := Restore(t.Context(), backup, "postgres://h/d", now); err == nil || !strings.Contains(err.Error(), "pg_restore") {
		t.Errorf("PostgreSQL: %v", err)
	}
}

// Covers reliability 21: a backup takes the place of an older one, and of nothing else:
// neither of the database itself, by any of its names, nor of what somebody keeps there.
func TestBackupReplacesBackupsAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "forge.db")
	makeFile(t, path)
	d := openPath(t, path)
	older := filepath.Join(dir, "older.db")
	must(t, d.Backup(t.Context(), older))
	must(t, d.Backup(t.Context(), older))
	write(t, filepath.Join(dir, "key.pem"), []byte("precious"))
	write(t, filepath.Join(dir, "empty"), nil)
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	must(t, os.Symlink(path, filepath.Join(dir, "link")))
	must(t, os.Link(path, filepath.Join(dir, "twin")))
	for name, says := range map[string]string{"forge.db": "the database itself", "twin": "the database itself", "link": "no plain file", "forge.db-wal": "the database's own",
		"forge.db.lock": "the database's own", "forge.db-shm": "the database's own", "key.pem": "no backup", "empty": "no backup", "folder": "a directory", "gone/x": "no directory " + filepath.Join(dir, "gone") + ": make it"} {
		to := filepath.Join(dir, name)
		before, _ := os.ReadFile(to)
		if err := d.Backup(t.Context(), to); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("onto %s: %v, want %q", name, err, says)
		}
		after, _ := os.ReadFile(to)
		if string(before) != string(after) {
			t.Errorf("%s was changed", name)
		}
	}
	must(t, d.Check(t.Context()))
}
