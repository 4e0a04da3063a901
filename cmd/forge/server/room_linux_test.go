package server

import (
	"forge/pipeline/needs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Covers reliability 15: a file on a disk that is full takes no webhooks in, although it may
// take a small write.
func TestNoRoomForWebhooks(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "forge.db")
	for _, tt := range []struct {
		mounted string // the size of the file system; "": that of the machine
		want    string
	}{{"", ""}, {"size=1m", "has 1 MB free"}, {"size=100m", ""}} {
		if tt.mounted != "" {
			needs.Root(t)
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, tt.mounted); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := roomFor(file); (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.mounted, err, tt.want)
		}
	}
	for _, elsewhere := range []string{"postgres://forge@127.0.0.1/forge", ""} {
		if err := roomFor(elsewhere); err != nil {
			t.Errorf("%q: %v", elsewhere, err)
		}
	}
}
