package needs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// System makes, below a directory, the root of a system of some of this machine's programs and the libraries that they need.
func System(t testing.TB, dir string, programs ...string) string {
	t.Helper()
	root := filepath.Join(dir, "system")
	put := func(from string) {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, from)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range programs {
		at, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("needs %s", name)
		}
		put(at)
		libs, err := exec.Command("ldd", at).Output()
		if err != nil {
			t.Skipf("needs ldd: %v", err)
		}
		for word := range strings.FieldsSeq(string(libs)) {
			if strings.HasPrefix(word, "/") {
				put(word)
			}
		}
	}
	if err := os.Symlink("usr/bin", filepath.Join(root, "bin")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"etc/image-release": "miniature\n", "etc/passwd": "of the image\n", "home/x": "x", "run/x": "x", "opt/tool/bin/tool": "#!/bin/sh\necho tool\n"} {
		to := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
