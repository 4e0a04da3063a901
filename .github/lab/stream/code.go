package stream

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"forge/pipeline/lazyregexp"
)

// Code is a repository's Go code as it stands.
type Code struct {
	Name  string // for people
	Files []File // by path
}

// File is one file of it.
type File struct {
	Path  string
	Lines []string
}

// What a stream needs at least to touch different things.
const (
	leastFiles = 5
	leastLines = 500
)

// Read reads the Go files under a directory, but for hidden folders, vendor and
// testdata. Less than 5 files or 500 lines are an error.
func Read(name string, dir fs.FS) (*Code, error) {
	c := &Code{Name: name}
	err := fs.WalkDir(dir, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(p)
		if d.IsDir() {
			if p != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "vendor" || base == "testdata" || base == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(p) != ".go" || !d.Type().IsRegular() {
			return nil
		}
		data, err := fs.ReadFile(dir, p)
		if err != nil {
			return err
		}
		if lines := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n"); len(starts(lines)) > 0 {
			c.Files = append(c.Files, File{p, lines})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the Go files of %s: %w", name, err)
	}
	if len(c.Files) < leastFiles || c.LineCount() < leastLines {
		return nil, fmt.Errorf("%s has %d Go files with functions, of %d lines: a stream of changes needs %d and %d; name a bigger repository",
			name, len(c.Files), c.LineCount(), leastFiles, leastLines)
	}
	return c, nil
}

// LineCount is how many lines there are.
func (c *Code) LineCount() (n int) {
	for _, f := range c.Files {
		n += len(f.Lines)
	}
	return n
}

var declaration = lazyregexp.New(`^(func|type) `)

// starts are the lines on which functions and types begin, from 0: what changes
// are about.
func starts(lines []string) []int {
	var out []int
	for i, l := range lines {
		if declaration.MatchString(l) {
			out = append(out, i)
		}
	}
	return out
}

// clone copies the code, so that a stream may change it.
func (c *Code) clone() []File {
	out := make([]File, len(c.Files))
	for i, f := range c.Files {
		out[i] = File{f.Path, append([]string(nil), f.Lines...)}
	}
	return out
}
