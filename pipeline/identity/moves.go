package identity

import (
	"fmt"
	"strconv"
	"strings"
)

// Moves says where the lines of one commit stand in another.
type Moves map[string]*move // by the old path

type move struct {
	to    string // "" when the file was deleted
	hunks []hunk
}

// hunk is a run of lines that was replaced, without the lines around it.
type hunk struct {
	old, count int // first old line, and how many; of none: the line after which others were put
	grown      int // lines that are more (or fewer) after it
}

// At returns where a line of the old commit stands in the new one.
func (m Moves) At(file string, line int) Place {
	line = max(line, 0)
	mv := m[file]
	switch {
	case mv == nil:
		return Place{File: file, Line: line}
	case mv.to == "":
		return Place{}
	}
	grown := 0 // by the hunks before the line
	for _, h := range mv.hunks {
		if line < h.old || line == h.old && h.count == 0 {
			break
		}
		if line < h.old+h.count {
			return Place{File: mv.to, Near: max(line+grown, 1)}
		}
		grown = h.grown
	}
	if line == 0 {
		grown = 0
	}
	return Place{File: mv.to, Line: max(line+grown, 0)}
}

// ReadMoves reads a unified patch as git diff-tree -p -M makes it, with a/ and b/
// before the paths. What it does not understand counts as unchanged.
func ReadMoves(patch string) Moves {
	r := reader{moves: Moves{}}
	for line := range strings.SplitSeq(patch, "\n") {
		r.line(line)
	}
	r.flush()
	return r.moves
}

type reader struct {
	moves     Moves
	at        *move
	from      string
	old, new  int // lines of the hunk that are still to come
	next      int // the old line that comes next
	grown     int
	replacing *hunk
}

func (r *reader) line(s string) {
	if r.at != nil && (r.old > 0 || r.new > 0) {
		r.body(s)
		return
	}
	r.replace(nil)
	switch {
	case strings.HasPrefix(s, "diff --git "):
		r.flush()
		from, to, ok := paths(strings.TrimPrefix(s, "diff --git "))
		if r.at, r.grown = nil, 0; ok {
			r.at, r.from = &move{to: to}, from
		}
	case r.at == nil:
	case strings.HasPrefix(s, "rename from "):
		r.from = unquote(strings.TrimPrefix(s, "rename from "))
	case strings.HasPrefix(s, "rename to "):
		r.at.to = unquote(strings.TrimPrefix(s, "rename to "))
	case strings.HasPrefix(s, "deleted file "):
		r.at.to = ""
	case strings.HasPrefix(s, "new file "), strings.HasPrefix(s, "copy from "):
		r.at = nil // the old path, if there is one, is where it was
	case strings.HasPrefix(s, "@@ "):
		r.header(s)
	}
}

func (r *reader) header(s string) {
	var old, new string
	if n, _ := fmt.Sscanf(s, "@@ -%s +%s @@", &old, &new); n != 2 {
		return
	}
	from, count, ok := span(old)
	_, added, ok2 := span(new)
	if !ok || !ok2 {
		return
	}
	if r.next, r.old, r.new = from, count, added; count == 0 {
		r.next++ // "-3,0": after line 3
	}
}

func (r *reader) body(s string) {
	switch {
	case strings.HasPrefix(s, "-"):
		h := r.open()
		h.count++
		r.grown--
		h.grown = r.grown
		r.next, r.old = r.next+1, r.old-1
	case strings.HasPrefix(s, "+"):
		h := r.open()
		r.grown++
		h.grown = r.grown
		r.new--
	case strings.HasPrefix(s, `\`): // no newline at the end of the file
	default:
		r.replace(nil)
		r.next, r.old, r.new = r.next+1, r.old-1, r.new-1
	}
}

// open returns the run of replaced lines that is being read.
func (r *reader) open() *hunk {
	if r.replacing == nil {
		r.replace(&hunk{old: r.next})
	}
	return r.replacing
}

// replace ends the run of replaced lines and begins another, or none.
func (r *reader) replace(h *hunk) {
	if p := r.replacing; p != nil && r.at != nil {
		if p.count == 0 {
			p.old-- // put after the line before
		}
		r.at.hunks = append(r.at.hunks, *p)
	}
	r.replacing = h
}

func (r *reader) flush() {
	r.replace(nil)
	if r.at != nil && r.from != "" {
		r.moves[r.from] = r.at
	}
	r.old, r.new = 0, 0
}

// paths splits `a/x b/x`, or its quoted form. Names that are not the same on both
// sides follow in lines of their own.
func paths(s string) (from, to string, ok bool) {
	if strings.HasPrefix(s, `"`) {
		q, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", "", false
		}
		from, to = unquote(q), unquote(strings.TrimSpace(s[len(q):]))
	} else if half := len(s) / 2; len(s)%2 == 1 && s[half] == ' ' && strings.TrimPrefix(s[:half], "a/") == strings.TrimPrefix(s[half+1:], "b/") {
		from, to = s[:half], s[half+1:]
	} else if from, to, ok = strings.Cut(s, " b/"); ok {
		to = "b/" + to
	} else if from, to, ok = strings.Cut(s, ` "b/`); ok {
		to = unquote(`"b/` + to)
	}
	from, ok = strings.CutPrefix(from, "a/")
	if !ok {
		return "", "", false
	}
	to, ok = strings.CutPrefix(to, "b/")
	return from, to, ok
}

// unquote reads a path as git quotes it: C's escapes within double quotes.
func unquote(s string) string {
	if out, err := strconv.Unquote(s); err == nil && strings.HasPrefix(s, `"`) {
		return out
	}
	return s
}

func span(s string) (from, count int, ok bool) {
	a, b, more := strings.Cut(s, ",")
	from, err := strconv.Atoi(a)
	if err != nil || from < 0 {
		return 0, 0, false
	}
	if count = 1; more {
		if count, err = strconv.Atoi(b); err != nil || count < 0 {
			return 0, 0, false
		}
	}
	return from, count, true
}
