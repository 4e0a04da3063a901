package change

import (
	"slices"
	"strings"
)

// Differs reports whether a place, of the newer commit, was another at the older one, as
// Follow does: what has no effect does not count.
func (c Change) Differs(p Place, now func(file string) (content string, ok bool)) bool {
	before := func(file string) (string, bool) {
		i := slices.IndexFunc(c.Files, func(f *File) bool { return f.Path == file || f.From == file })
		if i < 0 {
			return now(file)
		}
		f := c.Files[i]
		return f.Before(f.content(now)) + "\n", f.From == file
	}
	return c.reverse().Follow(p, before).Changed
}

// Undid reports whether what was done between two commits is no longer as it was left: in some
// file a line that it added is missing, or one that it took out is back. c is what was changed
// since the later of the two, all since the earlier one; only says which files count.
func (c Change) Undid(all Change, only func(file string) bool, now func(file string) (content string, ok bool)) bool {
	return slices.ContainsFunc(c.Files, func(f *File) bool {
		if !only(f.Path) && !only(f.From) {
			return false
		}
		i := slices.IndexFunc(all.Files, func(g *File) bool { return g.Path == f.Path })
		if f.Binary {
			return i < 0 // it is again what it was
		}
		head := f.content(now)
		done, was := f.Before(head), head
		if i >= 0 {
			was = all.Files[i].Before(head)
		}
		before, after, here := countLines(was), countLines(done), countLines(head)
		for line, n := range after {
			if here[line] < n && before[line] < n { // it came with it, and is missing
				return true
			}
		}
		for line, n := range before {
			if after[line] < n && here[line] > after[line] { // it went with it, and is back
				return true
			}
		}
		return false
	})
}

// content is a file at the newer commit, "" when it is not there.
func (f *File) content(now func(file string) (content string, ok bool)) string {
	if f.Deleted {
		return ""
	}
	content, _ := now(f.Path)
	return content
}

// countLines counts the lines of a text by what is written on them, white space left out.
func countLines(s string) map[string]int {
	out := map[string]int{}
	for _, l := range splitLines(s) {
		if l = squeezed(l); strings.ContainsFunc(l, isWord) {
			out[l]++
		}
	}
	return out
}

// isWord tells a character of words from brackets, which stand in every file.
func isWord(r rune) bool { return !strings.ContainsRune("(){}[];,", r) }

// reverse is the change from the newer commit to the older one.
func (c Change) reverse() Change {
	var out Change
	for _, f := range c.Files {
		r := &File{Path: f.From, From: f.Path, Binary: f.Binary}
		switch {
		case f.Deleted:
			r.From = ""
		case f.From == "":
			r.Path, r.Deleted = f.Path, true
		}
		for _, h := range f.hunks {
			back := hunk{old: h.new, new: h.old, heading: h.heading}
			for _, l := range h.lines {
				switch l.op {
				case '+':
					l.op = '-'
				case '-':
					l.op = '+'
				}
				back.lines = append(back.lines, l)
			}
			r.hunks = append(r.hunks, back)
		}
		out.Files = append(out.Files, r)
	}
	return out
}
