package change

import "slices"

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

// content is a file at the newer commit, "" when it is not there.
func (f *File) content(now func(file string) (content string, ok bool)) string {
	if f.Deleted {
		return ""
	}
	content, _ := now(f.Path)
	return content
}

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
