package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forge/pipeline/needs"
	"forge/pipeline/workspace"
)

// Covers D1, S7: with an image, commands see its system and nothing of the server's, under the
// same limits; environments are made and used in it.
func TestImage(t *testing.T) {
	needBwrap(t)
	f := newFixture(t, ignoring)
	m := newManager(t, Options{Limits: Limits{Processes: 40}})
	root := needs.System(t, openDir(t), "sh", "cat", "ls", "id", "grep", "mkdir", "sleep", "chmod", "ln", "mkfifo", "env")
	if err := os.Chmod(filepath.Join(root, "opt"), 0o777); err != nil {
		t.Fatal(err)
	}
	open := func() *Workspace {
		w, err := m.open(t.Context(), workspace.OpenOptions{Name: "image", GitDir: f.gateway.Dir(f.repo), Commit: f.head, Cache: "1",
			Root: root, RootEnv: []string{"PATH=/opt/tool/bin:/usr/bin:/bin", "OF_IMAGE=1", "HOME=/root"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		return w
	}
	w := open()
	for script, want := range map[string]string{
		"tool; cat /etc/image-release README.md; echo; echo $OF_IMAGE $HOME":   "tool\nminiature\nreadme\n1 /home/sbx",
		"id -u; cat /etc/passwd | grep -c image; ls /home /run; ls /root /srv": "1000\n0",
		"command -v git go python3; ls /usr/share /usr/lib/git-core":           "No such file",
		"echo x > /opt/x": "Read-only file system",
		"cat /proc/self/status | grep -E 'NoNewPrivs|CapEff'":     "NoNewPrivs:\t1",
		"i=0; while [ $i -lt 60 ]; do sleep 5 & i=$((i+1)); done": "Cannot fork",
	} {
		if got := says(t, w.Run, workspace.Command{Args: []string{"/bin/sh", "-c", script}}); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	err := w.Install(t.Context(), workspace.Installation{Key: "k", Sockets: sockets(t, "served "), Routes: []workspace.Route{{Port: 4801, Socket: "go.sock"}},
		Make: func(ctx context.Context, in workspace.Installer) ([]byte, error) {
			if got := says(t, in.Run, script("tool > version.gen; mkdir -p /deps/bin; ln -s /opt/tool/bin/tool /deps/bin/other")); got != "" {
				t.Errorf("a set-up says %q", got)
			}
			_, err := in.Keep(ctx, nil)
			return []byte("about"), err
		}})
	if err == nil {
		err = w.Use(t.Context(), "k", []string{"PATH=/deps/bin"})
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := says(t, w.Run, script("cat version.gen; other; tool")); got != "tool\ntool\ntool" {
		t.Errorf("with an environment, commands see %q", got)
	}
	if r, err := w.Run(t.Context(), workspace.Command{Args: []string{"no-such-program"}}); err != nil || r.Exit != 127 {
		t.Errorf("a program that is not there: %+v, %v", r, err)
	}
}
