package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Covers reliability 12: a backup takes the place of the database, and what was there
// is kept.
func TestRestore(t *testing.T) {
	dir := t.TempDir()
	path, backup := filepath.Join(dir, "forge.db"), filepath.Join(dir, "copy.db")
	d, err := Open(t.Context(), path, quiet())
	must(t, err)
	must(t, d.Own())
	first := begin(t, d, 5)
	must(t, d.Backup(t.Context(), backup))
	begin(t, d, 6)
	if _, err := Restore(t.Context(), backup, path, now); err == nil || !strings.Contains(err.Error(), "is running on it") {
		t.Errorf("under a server: %v", err)
	}
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
