// Package change makes a patch readable for a model: files with numbered lines and
// the code around them, in parts that fit into a prompt, with a summary where a
// machine wrote the content, and a word about everything that cannot be shown. It
// also says what became of a place in the code between two commits.
//
// The package is pure: no I/O, no clock, nothing kept between calls.
package change

import (
	"fmt"
	"path"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"forge/pipeline"
)

// Change is a patch.
type Change struct {
	Files []*File            // in the patch's order
	Lost  []pipeline.Skipped // parts that cannot be read
}

// File is what a patch does to one file.
type File struct {
	Path    string   // at the head; of a deleted file, at the base
	From    string   // at the base; "" of a new file
	Deleted bool     //
	Binary  bool     //
	notes   []string // what git says of the file: modes, renames
	hunks   []hunk
}

// hunk is a run of lines. Numbers count from 1.
type hunk struct {
	old, new int    // first line at the base and at the head
	heading  string // of the function around it
	lines    []line
}

// line is a line of a hunk, without its end.
type line struct {
	op   byte // ' ', '-' or '+'
	text string
}

// Read reads a unified patch as git makes it, with a/ and b/ before the paths.
func Read(patch string) Change {
	var c Change
	parts := split(patch)
	if len(parts) == 0 && strings.TrimSpace(patch) != "" {
		c.Lost = append(c.Lost, pipeline.Skipped{Path: brief(strings.TrimSpace(patch)), Why: "the patch cannot be read"})
	}
	for _, part := range parts {
		f := readFile(part)
		if f == nil {
			c.Lost = append(c.Lost, pipeline.Skipped{Path: brief(part), Why: "this part of the patch cannot be read"})
			continue
		}
		c.Files = append(c.Files, f)
	}
	return c
}

// split cuts a patch at its file headers. Lines of content begin with a space, a
// sign or a backslash, so none is taken for a header.
func split(patch string) []string {
	var parts []string
	start := -1
	for off := 0; off < len(patch); {
		end := strings.IndexByte(patch[off:], '\n')
		if end < 0 {
			end = len(patch) - off
		} else {
			end++
		}
		if strings.HasPrefix(patch[off:], "diff --git ") {
			if start >= 0 {
				parts = append(parts, patch[start:off])
			}
			start = off
		}
		off += end
	}
	if start >= 0 {
		parts = append(parts, patch[start:])
	}
	return parts
}

func readFile(part string) *File {
	files, _, err := gitdiff.Parse(strings.NewReader(part))
	if err != nil || len(files) != 1 {
		return nil
	}
	g := files[0]
	f := &File{Deleted: g.IsDelete, Binary: g.IsBinary}
	if g.OldName != "" && !g.IsNew {
		f.From = path.Clean(g.OldName)
	}
	f.Path = path.Clean(g.NewName)
	if g.IsDelete || g.NewName == "" {
		f.Path = path.Clean(g.OldName)
	}
	if f.Path == "." || f.Path == "" {
		return nil
	}
	switch {
	case g.IsNew:
		f.notes = append(f.notes, "new file")
	case g.IsDelete:
		f.notes = append(f.notes, "deleted")
	case g.IsRename:
		f.notes = append(f.notes, "renamed from "+f.From)
	case g.IsCopy:
		f.notes = append(f.notes, "copied from "+f.From)
		f.From = "" // the file that it is a copy of stands where it stood
	}
	if g.NewMode != 0 && (g.OldMode != g.NewMode || g.NewMode&0o111 != 0) && (g.OldMode != 0 || g.NewMode != 0o100644) {
		f.notes = append(f.notes, fmt.Sprintf("mode %o", g.NewMode))
	}
	for _, t := range g.TextFragments {
		f.hunks = append(f.hunks, readHunk(t))
	}
	return f
}

func readHunk(t *gitdiff.TextFragment) hunk {
	h := hunk{old: int(t.OldPosition), new: int(t.NewPosition), heading: strings.TrimSpace(t.Comment)}
	if t.OldLines == 0 {
		h.old++ // "-3,0": after line 3
	}
	if t.NewLines == 0 {
		h.new++
	}
	for _, l := range t.Lines {
		op := byte(' ')
		switch l.Op {
		case gitdiff.OpAdd:
			op = '+'
		case gitdiff.OpDelete:
			op = '-'
		}
		h.lines = append(h.lines, line{op, strings.TrimSuffix(strings.TrimSuffix(l.Line, "\n"), "\r")})
	}
	return h
}

// counts returns how many lines of a hunk stand at the base and at the head.
func (h *hunk) counts() (old, new int) {
	for _, l := range h.lines {
		if l.op != '+' {
			old++
		}
		if l.op != '-' {
			new++
		}
	}
	return old, new
}

// Touched returns how many lines a file gained and lost.
func (f *File) Touched() (added, removed int) {
	for _, h := range f.hunks {
		for _, l := range h.lines {
			switch l.op {
			case '+':
				added++
			case '-':
				removed++
			}
		}
	}
	return added, removed
}

// brief is the first line of a text, shortened.
func brief(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

// Before is the text of a file at the base, by that at the head.
func (f *File) Before(now string) string {
	return strings.Join(f.before(splitLines(now)), "\n")
}
