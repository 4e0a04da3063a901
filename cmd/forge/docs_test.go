package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const top = "../.."

// The README is for a maintainer in a hurry.
func TestReadmeIsShort(t *testing.T) {
	if n := len(strings.Fields(read(t, filepath.Join(top, "README.md")))); n > 900 {
		t.Errorf("the README has %d words, over 900", n)
	}
}

var (
	docLink    = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	docCommand = regexp.MustCompile("(?m)(?:^|`)forge ([a-z][a-z -]*)")
)

// What the documents link to exists, and the commands that they name can be typed.
func TestDocuments(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(top, ".github", "docs", "*.md"))
	files = append(files, filepath.Join(top, "README.md"), filepath.Join(top, ".github", "CONTRIBUTING.md"))
	if len(files) < 6 {
		t.Fatalf("%d documents", len(files))
	}
	for _, file := range files {
		text := read(t, file)
		for _, m := range docLink.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			}
		}
		for _, m := range docCommand.FindAllStringSubmatch(text, -1) {
			name := strings.Fields(m[1])[0]
			if _, _, err := rootCommand().Find([]string{name}); err != nil && !strings.Contains(text, "## What is not here yet") {
				t.Errorf("%s names `forge %s`: %v", file, name, err)
			}
		}
	}
}
