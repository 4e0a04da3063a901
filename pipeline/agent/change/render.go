package change

import (
	"fmt"
	"strings"
)

// head is what stands above a file's hunks.
func (f *File) head() string {
	added, removed := f.Touched()
	notes := append([]string{}, f.notes...)
	if added+removed > 0 {
		notes = append(notes, fmt.Sprintf("+%d −%d", added, removed))
	}
	if len(notes) == 0 {
		return fmt.Sprintf("=== %s\n", f.Path)
	}
	return fmt.Sprintf("=== %s (%s)\n", f.Path, strings.Join(notes, ", "))
}

// Text shows the whole file: each line with its number at the head; a line that is
// gone has none.
func (f *File) Text() string {
	var b strings.Builder
	b.WriteString(f.head())
	for i := range f.hunks {
		f.hunks[i].write(&b)
	}
	return b.String()
}

func (h *hunk) write(b *strings.Builder) {
	old, new := h.counts()
	fmt.Fprintf(b, "@@ -%s +%s @@", span(h.old, old), span(h.new, new))
	if h.heading != "" {
		b.WriteString(" " + h.heading)
	}
	b.WriteByte('\n')
	n := h.new
	for _, l := range h.lines {
		if l.op == '-' {
			fmt.Fprintf(b, "     -%s\n", l.text)
			continue
		}
		fmt.Fprintf(b, "%5d%c%s\n", n, l.op, l.text)
		n++
	}
}

func span(from, count int) string {
	if count == 0 {
		from--
	}
	if count == 1 {
		return fmt.Sprint(from)
	}
	return fmt.Sprintf("%d,%d", from, count)
}

// size is how many bytes the hunk takes when it is shown.
func (h *hunk) size() int {
	n := 40 + len(h.heading)
	for _, l := range h.lines {
		n += 7 + len(l.text)
	}
	return n
}

func (f *File) size() int {
	n := len(f.head())
	for i := range f.hunks {
		n += f.hunks[i].size()
	}
	return n
}
