package change

import "strings"

// How many lines around a change are shown at most, towards the beginning and the
// end of the function that it is in, and how many beyond what git gives when that
// is further away.
const (
	maxContext = 25
	farContext = 5
)

// Widen shows more of the code around each change, from the file's content at the
// head: up to the beginning and the end of the function where they are near. A
// deleted or binary file stays as it is.
func (f *File) Widen(content string) {
	if f.Deleted || f.Binary || len(f.hunks) == 0 {
		return
	}
	lines := splitLines(content)
	for i := range f.hunks {
		if _, count := f.hunks[i].counts(); count == 0 || !f.hunks[i].fits(lines) {
			return // it is not the content that the patch is about
		}
	}
	shown := 0 // the last line that is shown so far
	for i := range f.hunks {
		h := &f.hunks[i]
		free := len(lines) // the last line that no later hunk shows
		if i+1 < len(f.hunks) {
			free = f.hunks[i+1].new - 1
		}
		first, end := h.changed()
		from, to := block(lines, first, end)
		if from < h.new-maxContext {
			if from > shown {
				h.heading = clipLine(strings.TrimSpace(lines[from-1]))
			}
			from = h.new - farContext
		}
		if last := h.last(); to > last+maxContext {
			to = last + farContext
		}
		h.grow(lines, max(from, shown+1), min(to, free))
		shown = h.last()
	}
	f.join()
}

// last is the last line of the head that the hunk shows.
func (h *hunk) last() int {
	_, count := h.counts()
	return h.new + count - 1
}

// fits reports whether the hunk's new lines stand in the file where it says.
func (h *hunk) fits(lines []string) bool {
	if h.new < 1 || h.last() > len(lines) {
		return false
	}
	n := h.new
	for _, l := range h.lines {
		if l.op == '-' {
			continue
		}
		if lines[n-1] != l.text {
			return false
		}
		n++
	}
	return true
}

// changed returns the first and last line at the head that the hunk changes, or
// that stand beside what it takes away.
func (h *hunk) changed() (first, last int) {
	n := h.new
	for _, l := range h.lines {
		switch l.op {
		case ' ':
			n++
			continue
		case '+':
			last = n
			n++
		default:
			last = max(last, n-1)
		}
		if first == 0 {
			first = max(1, min(n, last))
		}
	}
	return first, max(first, last)
}

// grow puts the lines of the file from and to around the hunk.
func (h *hunk) grow(lines []string, from, to int) {
	last := h.last()
	var before, after []line
	for n := from; n < h.new; n++ {
		before = append(before, line{' ', lines[n-1]})
	}
	for n := last + 1; n <= to; n++ {
		after = append(after, line{' ', lines[n-1]})
	}
	h.old -= len(before)
	h.new -= len(before)
	h.lines = append(append(before, h.lines...), after...)
}

// join makes one hunk of those that touch.
func (f *File) join() {
	out := f.hunks[:1]
	for _, h := range f.hunks[1:] {
		p := &out[len(out)-1]
		if p.last()+1 == h.new {
			p.lines = append(p.lines, h.lines...)
			continue
		}
		out = append(out, h)
	}
	f.hunks = out
}

func clipLine(s string) string {
	if len(s) > 120 {
		s = strings.ToValidUTF8(s[:120], "") + "…"
	}
	return s
}
