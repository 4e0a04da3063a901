package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"forge/cmd/forge/settings"
	"forge/pipeline/store"
)

// The server backs its database up by itself, and only as many copies are kept as the
// settings say; a file of somebody else's stays. Covers reliability 12.
func TestBackups(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ts := newTestServer(t, testOptions{wire: func(o *Options) {
		o.Config.BackupEvery, o.Config.BackupKeep, o.Config.BackupDir = time.Hour, 2, dir
	}})
	deadline := time.After(time.Minute)
	var list []Backup
	for len(list) == 0 {
		list, _ = Backups(dir)
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Fatal("no backup is made")
		}
	}
	ts.must(os.WriteFile(filepath.Join(dir, "notes.db"), nil, 0o600))
	cfg := settings.Config{BackupKeep: 2, BackupDir: dir}
	for i := range 3 {
		_, err := BackUp(t.Context(), ts.s.DB, cfg, list[0].At.Add(time.Duration(i+1)*time.Hour))
		ts.must(err)
	}
	kept, err := Backups(dir)
	ts.must(err)
	if len(kept) != 2 || !kept[0].At.Equal(list[0].At.Add(3*time.Hour)) || kept[0].Size == 0 {
		t.Fatalf("kept: %+v", kept)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.db")); err != nil {
		t.Error(err)
	}
	copied, err := store.Open(t.Context(), kept[0].Path, slog.New(slog.DiscardHandler))
	ts.must(err)
	ts.must(copied.Check(t.Context()))
	ts.must(copied.Close())
}
