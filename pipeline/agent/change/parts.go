package change

import (
	"fmt"
	"strings"

	"forge/pipeline"
)

// Part is as much of a change as is read at once.
type Part struct {
	Text  string
	Files []string // whose patch, or a piece of it, the part shows
}

// Limits say how much is shown, in bytes.
type Limits struct {
	Part  int // of a part
	Parts int // the most parts
	Whole int // of a file that a machine wrote: a smaller patch is shown as it is
}

// Reading is a change, divided.
type Reading struct {
	Parts  []Part
	Unread []pipeline.Skipped // what no part shows, and why
}

// Divide divides a change into parts, in the order of its files. now returns a file
// of the head. Each file is in a part, in several, or in Unread.
func (c Change) Divide(l Limits, now func(file string) (content string, ok bool)) Reading {
	d := divider{limits: l, out: Reading{Unread: append([]pipeline.Skipped{}, c.Lost...)}}
	for _, f := range c.Files {
		content, ok := "", false
		if !f.Binary && !f.Deleted {
			content, ok = now(f.Path)
		}
		d.file(f, content, ok)
	}
	d.flush()
	if n := len(d.out.Parts); n > l.Parts {
		d.giveUp(l.Parts)
	}
	return d.out
}

type divider struct {
	limits Limits
	out    Reading
	text   strings.Builder
	files  []string
}

func (d *divider) unread(f *File, why string) {
	d.out.Unread = append(d.out.Unread, pipeline.Skipped{Path: f.Path, Why: why})
}

// file puts one file where it belongs.
func (d *divider) file(f *File, content string, known bool) {
	switch {
	case f.Binary:
		d.unread(f, "binary file")
		return
	case f.size() > d.limits.Whole:
		text, why := f.summary(content, known)
		if why != "" {
			d.unread(f, why)
			return
		}
		if text != "" {
			d.add(f.Path, text)
			return
		}
	}
	if long := f.longest(); long > d.limits.Part/2 {
		d.unread(f, fmt.Sprintf("a line of %d KiB cannot be shown", long>>10))
		return
	}
	if known {
		narrow := append([]hunk{}, f.hunks...)
		if f.Widen(content); f.size() > d.limits.Part {
			f.hunks = narrow // what changed goes before what stands around it
		}
	}
	if f.size() <= d.limits.Part {
		d.add(f.Path, f.Text())
		return
	}
	d.pieces(f)
}

// add puts text about a file into the current part, or begins another.
func (d *divider) add(path, text string) {
	if d.text.Len() > 0 && d.text.Len()+len(text) > d.limits.Part {
		d.flush()
	}
	d.text.WriteString(text)
	d.files = append(d.files, path)
}

func (d *divider) flush() {
	if d.text.Len() > 0 {
		d.out.Parts = append(d.out.Parts, Part{Text: d.text.String(), Files: d.files})
		d.text.Reset()
		d.files = nil
	}
}

// pieces shows a file that is too big for a part in several.
func (d *divider) pieces(f *File) {
	room := d.limits.Part - 500 // for what stands above
	var list [][]hunk
	var piece []hunk
	size := 0
	for _, h := range f.hunks {
		for _, s := range h.cut(room) {
			if n := s.size(); size > 0 && size+n > room {
				list = append(list, piece)
				piece, size = nil, 0
			}
			piece = append(piece, s)
			size += s.size()
		}
	}
	list = append(list, piece)
	for i, p := range list {
		var b strings.Builder
		b.WriteString(strings.TrimSuffix(f.head(), "\n") + fmt.Sprintf(" — piece %d of %d\n", i+1, len(list)))
		for k := range p {
			p[k].write(&b)
		}
		d.flush()
		d.add(f.Path, b.String())
	}
}

// cut divides a hunk into such that fit into room.
func (h *hunk) cut(room int) []hunk {
	if h.size() <= room {
		return []hunk{*h}
	}
	var out []hunk
	next := hunk{old: h.old, new: h.new, heading: h.heading}
	size := 40 + len(h.heading)
	for _, l := range h.lines {
		if n := 7 + len(l.text); len(next.lines) > 0 && size+n > room {
			old, new := next.counts()
			out = append(out, next)
			next = hunk{old: next.old + old, new: next.new + new, heading: h.heading}
			size = 40 + len(h.heading)
		}
		next.lines = append(next.lines, l)
		size += 7 + len(l.text)
	}
	return append(out, next)
}

// giveUp keeps the first parts, and says of the files of the others that nobody reads
// them, or not to their end.
func (d *divider) giveUp(most int) {
	said := map[string]bool{}
	for _, p := range d.out.Parts[most:] {
		for _, f := range p.Files {
			if !said[f] {
				said[f] = true
				d.out.Unread = append(d.out.Unread, pipeline.Skipped{Path: f, Why: fmt.Sprintf("the change is over the %d parts of %d KiB in which it is read", most, d.limits.Part>>10)})
			}
		}
	}
	d.out.Parts = d.out.Parts[:most]
}

// longest is the length of the file's longest line in the patch.
func (f *File) longest() int {
	n := 0
	for _, h := range f.hunks {
		for _, l := range h.lines {
			n = max(n, len(l.text))
		}
	}
	return n
}
