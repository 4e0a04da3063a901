package change

import (
	"path"
	"slices"
	"strings"
)

// around is how many lines beside a place still belong to it.
const around = 3

// maxExcerpt caps what is shown of a change at a place, in bytes.
const maxExcerpt = 3 << 10

// Place is a place in the code at the older of two commits. The zero Line is the
// whole file.
type Place struct {
	File      string
	Line, End int    // End is 0 when it is Line alone
	Code      string // its lines, where they are known
	CodeAlone bool   // a change of comments is none, unless the place is of one
}

// Fate is what became of a place.
type Fate struct {
	Changed bool
	File    string // where the file is now; "" when it is gone
	Line    int    // where the place begins now; 0 when that cannot be told
	End     int    // its last line now, likewise
	Excerpt string // the change at the place
}

// Follow says what became of a place, by the patch from the older commit to the
// newer one. now returns a file of the newer commit.
//
// A place has changed when one of its lines has, a line of the function around it,
// or one of the three lines before and after it. White space does not count, and with
// CodeAlone neither do comments.
func (c Change) Follow(p Place, now func(file string) (content string, ok bool)) Fate {
	i := slices.IndexFunc(c.Files, func(f *File) bool { return f.From == p.File })
	if i < 0 {
		if n := slices.IndexFunc(c.Files, func(f *File) bool { return f.From == "" && f.Path == p.File }); n >= 0 {
			return Fate{Changed: true, File: p.File, Excerpt: clipText(c.Files[n].Text())} // it is there again
		}
		content, ok := now(p.File)
		if !ok {
			return Fate{Changed: true} // it was never there, or is not any more
		}
		p = p.locate(splitLines(content))
		return Fate{File: p.File, Line: p.Line, End: p.End}
	}
	f := c.Files[i]
	if f.Deleted {
		return Fate{Changed: true, Excerpt: clipText(f.Text())}
	}
	if p.Line == 0 || f.Binary {
		added, removed := f.Touched()
		return Fate{Changed: f.Binary || added+removed > 0, File: f.Path, Excerpt: clipText(f.Text())}
	}
	content, _ := now(f.Path)
	old := f.before(splitLines(content))
	p = p.locate(old)
	last := max(p.Line, p.End)
	if p.Line > len(old) {
		return Fate{Changed: len(f.hunks) > 0, File: f.Path, Excerpt: clipText(f.Text())}
	}
	from, to := surroundings(old, p)
	fate := Fate{File: f.Path}
	var of comments
	if c := commentsOf(f.Path); p.CodeAlone && !slices.ContainsFunc(old[p.Line-1:min(last, len(old))], c.in) {
		of = c
	}
	fate.Changed, fate.Excerpt = f.touches(from, to, of)
	fate.Line = f.moved(p.Line)
	if p.End > 0 && fate.Line > 0 {
		if end := f.moved(p.End); end == fate.Line+p.End-p.Line {
			fate.End = end
		}
	}
	return fate
}

// surroundings are the lines that belong to a place.
func surroundings(old []string, p Place) (from, to int) {
	last := max(p.Line, p.End)
	from, to = block(old, p.Line, min(last, len(old)))
	return max(1, min(from, p.Line-around)), max(to, last+around)
}

// locate finds a place by its code where its line does not hold it: a line number
// may have been taken at another commit.
func (p Place) locate(lines []string) Place {
	if p.Code == "" || p.Line == 0 {
		return p
	}
	want := splitLines(p.Code)
	at := func(n int) bool {
		if n < 1 || n+len(want)-1 > len(lines) {
			return false
		}
		for i, w := range want {
			if strings.TrimSpace(w) != strings.TrimSpace(lines[n-1+i]) {
				return false
			}
		}
		return true
	}
	if len(want) == 0 || at(p.Line) {
		return p
	}
	for d := 1; d < len(lines); d++ {
		for _, n := range []int{p.Line - d, p.Line + d} {
			if at(n) {
				p.Line, p.End = n, n+len(want)-1
				if p.End == p.Line {
					p.End = 0
				}
				return p
			}
		}
	}
	return p
}

// Holds reports whether a file has these lines, one after the other, whatever their
// indentation.
func Holds(content, code string) bool {
	p := Place{Line: 1, Code: code}
	lines := splitLines(content)
	found := p.locate(append([]string{"\x00"}, lines...))
	return found.Line > 1
}

// before returns the file's lines at the older commit, from those at the newer one.
func (f *File) before(now []string) []string {
	var out []string
	next := 1
	for _, h := range f.hunks {
		for ; next < h.new && next <= len(now); next++ {
			out = append(out, now[next-1])
		}
		for _, l := range h.lines {
			if l.op != '+' {
				out = append(out, l.text)
			}
			if l.op != '-' {
				next++
			}
		}
	}
	if next <= len(now) {
		out = append(out, now[next-1:]...)
	}
	return out
}

// touches reports whether any of the old lines from and to has changed, or anything
// was put between them, and shows where. White space does not count, nor do comments of some
// form.
func (f *File) touches(from, to int, of comments) (changed bool, excerpt string) {
	var b strings.Builder
	for i := range f.hunks {
		h := &f.hunks[i]
		hit := false
		for _, e := range h.edits(of, indented(f.Path)) {
			hit = hit || !e.blank && (e.count == 0 && e.old > from-1 && e.old <= to+1 || e.count > 0 && e.old <= to && e.old+e.count-1 >= from)
		}
		if hit {
			h.write(&b)
			changed = true
		}
	}
	return changed, clipText(b.String())
}

// edit is a run of lines that was replaced.
type edit struct {
	old, count int  // first old line, and how many; of none: the line before which others were put
	new, added int  // likewise at the newer commit
	blank      bool // only white space differs, or comments that do not count
}

// indented reports whether how far a line is indented means something in a file.
func indented(file string) bool {
	switch strings.ToLower(path.Ext(file)) {
	case ".py", ".pyi", ".yml", ".yaml", ".mk", ".pug", ".haml", ".sass", ".coffee", ".nim", ".fs", ".hs":
		return true
	}
	return strings.EqualFold(path.Base(file), "makefile")
}

func (h *hunk) edits(without comments, indented bool) []edit {
	plain := func(s string) string {
		if s = without.toEnd(s); !indented || strings.TrimSpace(s) == "" {
			return s + "\n"
		}
		n, _ := indent(s)
		return strings.Repeat("\x01", n) + s + "\n"
	}
	var out []edit
	old, new := h.old, h.new
	var gone, put strings.Builder
	var e *edit
	flush := func() {
		if e != nil {
			e.blank = squeezed(without.blocks(gone.String())) == squeezed(without.blocks(put.String()))
			out = append(out, *e)
			gone.Reset()
			put.Reset()
			e = nil
		}
	}
	for _, l := range h.lines {
		if l.op == ' ' {
			flush()
			old, new = old+1, new+1
			continue
		}
		if e == nil {
			e = &edit{old: old, new: new}
		}
		if l.op == '-' {
			gone.WriteString(plain(l.text))
			old, e.count = old+1, e.count+1
		} else {
			put.WriteString(plain(l.text))
			new, e.added = new+1, e.added+1
		}
	}
	flush()
	return out
}

// moved returns where an old line is now: of one that was replaced, where what took
// its place begins; 0 when nothing did.
func (f *File) moved(n int) int {
	shift := 0
	for i := range f.hunks {
		for _, e := range f.hunks[i].edits(comments{}, false) {
			switch {
			case n < e.old:
				return n + shift
			case n < e.old+e.count && e.added == 0:
				return 0
			case n < e.old+e.count:
				return e.new + min(n-e.old, e.added-1)
			}
			shift += e.added - e.count
		}
	}
	return n + shift
}

// splitLines splits text into lines without their ends.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return lines
}

func clipText(s string) string {
	if len(s) <= maxExcerpt {
		return s
	}
	cut := strings.LastIndexByte(s[:maxExcerpt], '\n') + 1
	if cut == 0 {
		cut = maxExcerpt
	}
	return strings.ToValidUTF8(s[:cut], "") + "… (more changed here than is shown)\n"
}
