package githubtest

import (
	"cmp"
	"strconv"
	"strings"
)

// fileDiff is what a range of commits did to one file.
type fileDiff struct {
	path, oldPath        string
	status               string // "added", "removed", "modified", "renamed"
	patch                string // the hunks; empty for a binary file
	additions, deletions int
	hunks                []hunk
}

type hunk struct {
	header                                 string
	oldStart, oldCount, newStart, newCount int
	lines                                  []diffLine
}

type diffLine struct {
	kind     byte // '+', '-', ' '
	old, new int  // 0 where the line is not on that side
	position int  // lines below the file's first hunk header
	text     string
}

// pullFiles is the pull request's diff, from where it left its base.
func (s *Server) pullFiles(p *pull) ([]fileDiff, error) { return s.diffAt(p, p.headSHA) }

func (s *Server) diffAt(p *pull, head string) ([]fileDiff, error) {
	return s.diff(p.repo, cmp.Or(s.mergeBase(p.repo, p.baseSHA, head), p.baseSHA), head)
}

func (s *Server) diff(r *repository, from, to string, more ...string) ([]fileDiff, error) {
	args := []string{"-c", "core.quotePath=false", "diff", "--no-color", "--no-ext-diff", "--no-textconv", "-M", from, to}
	out, err := s.once(r, append(args, more...)...)
	if err != nil {
		return nil, err
	}
	return parseDiff(out), nil
}

// parseDiff reads the output of git diff.
func parseDiff(text string) []fileDiff {
	var files []fileDiff
	var f *fileDiff
	var h *hunk
	var patch []string
	position, oldAt, newAt := 0, 0, 0
	finish := func() {
		if f != nil {
			f.patch = strings.Join(patch, "\n")
		}
		patch, h, position = nil, nil, 0
	}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if rest, found := strings.CutPrefix(line, "diff --git "); found {
			finish()
			files = append(files, fileDiff{status: "modified"})
			f = &files[len(files)-1]
			if half := len(rest) / 2; len(rest) > 5 && half+3 <= len(rest) { // a/NAME b/NAME
				f.path = strings.TrimPrefix(rest[half+1:], "b/")
			}
			continue
		}
		if f == nil {
			continue
		}
		if nh, ok := parseHunk(line); ok {
			if len(patch) > 0 {
				position++
			}
			patch = append(patch, line)
			f.hunks = append(f.hunks, nh)
			h = &f.hunks[len(f.hunks)-1]
			oldAt, newAt = nh.oldStart, nh.newStart
			continue
		}
		if h == nil {
			f.head(line)
			continue
		}
		patch = append(patch, line)
		position++
		if line == "" || line[0] == '\\' {
			continue
		}
		d := diffLine{kind: line[0], position: position, text: line}
		if line[0] != '+' {
			d.old = oldAt
			oldAt++
		}
		if line[0] != '-' {
			d.new = newAt
			newAt++
		}
		switch line[0] {
		case '+':
			f.additions++
		case '-':
			f.deletions++
		}
		h.lines = append(h.lines, d)
	}
	finish()
	return files
}

// head reads a line before the first hunk.
func (f *fileDiff) head(line string) {
	for prefix, set := range map[string]func(string){
		"new file mode ":     func(string) { f.status = "added" },
		"deleted file mode ": func(string) { f.status = "removed" },
		"rename from ":       func(v string) { f.status, f.oldPath = "renamed", v },
		"rename to ":         func(v string) { f.path = v },
		"+++ b/":             func(v string) { f.path = strings.TrimSuffix(v, "\t") },
		"--- a/": func(v string) {
			if f.status == "removed" {
				f.path = strings.TrimSuffix(v, "\t")
			}
		},
	} {
		if v, ok := strings.CutPrefix(line, prefix); ok {
			set(v)
		}
	}
}

// parseHunk reads "@@ -1,2 +3,4 @@ text".
func parseHunk(line string) (hunk, bool) {
	rest, ok := strings.CutPrefix(line, "@@ -")
	if !ok {
		return hunk{}, false
	}
	ranges, _, ok := strings.Cut(rest, " @@")
	oldR, newR, ok2 := strings.Cut(ranges, " +")
	if !ok || !ok2 {
		return hunk{}, false
	}
	h := hunk{header: line}
	var e1, e2 error
	h.oldStart, h.oldCount, e1 = parseRange(oldR)
	h.newStart, h.newCount, e2 = parseRange(newR)
	return h, e1 == nil && e2 == nil
}

func parseRange(text string) (start, count int, err error) {
	a, b, ok := strings.Cut(text, ",")
	count = 1
	if start, err = strconv.Atoi(a); err == nil && ok {
		count, err = strconv.Atoi(b)
	}
	return start, count, err
}

func findFile(files []fileDiff, path string) *fileDiff {
	for i := range files {
		if files[i].path == path {
			return &files[i]
		}
	}
	return nil
}

// find looks a line up. It returns the hunk's index and the line's, or -1.
func (f *fileDiff) find(side string, line int) (int, int) {
	for i, h := range f.hunks {
		for j, l := range h.lines {
			if side == "LEFT" && l.old == line && l.kind != '+' || side != "LEFT" && l.new == line && l.kind != '-' {
				return i, j
			}
		}
	}
	return -1, -1
}

// anchor is where a review comment wants to be.
type anchor struct {
	Path        string `json:"path"`
	Body        string `json:"body"`
	Line        int    `json:"line"`
	Side        string `json:"side"`
	StartLine   int    `json:"start_line"`
	StartSide   string `json:"start_side"`
	Position    int    `json:"position"`
	SubjectType string `json:"subject_type"`
}

// The texts with which GitHub refuses an anchor.
const (
	anchorPath  = "Path could not be resolved"
	anchorLine  = "Pull request review thread line must be part of the diff and Pull request review thread diff hunk can't be blank"
	anchorStart = "Pull request review thread start line must be part of the same hunk as the line."
	anchorOrder = "Pull request review thread start line must precede the end line."
)

// place checks an anchor against the diff and makes a thread of it, without its
// comment. The error is GitHub's text.
func place(files []fileDiff, a anchor) (*thread, error) {
	f := findFile(files, a.Path)
	if f == nil {
		return nil, refusal(anchorPath)
	}
	t := &thread{path: a.Path, subject: "line", side: a.Side, startSide: a.StartSide, line: a.Line, startLine: a.StartLine}
	if a.SubjectType == "file" {
		t.subject, t.line, t.startLine, t.position, t.side = "file", 0, 0, 1, "RIGHT"
		return t, nil
	}
	if t.side == "" {
		t.side = "RIGHT"
	}
	if a.Line == 0 && a.Position > 0 {
		t.byPosition(f, a.Position)
	}
	hi, li := f.find(t.side, t.line)
	if hi < 0 || t.line == 0 {
		return nil, refusal(anchorLine)
	}
	if t.startLine > 0 {
		if t.startSide == "" {
			t.startSide = t.side
		}
		if t.startLine >= t.line && t.startSide == t.side {
			return nil, refusal(anchorOrder)
		}
		if si, _ := f.find(t.startSide, t.startLine); si != hi {
			return nil, refusal(anchorStart)
		}
	}
	h := f.hunks[hi]
	t.position, t.origLine, t.origStart = h.lines[li].position, t.line, t.startLine
	text := []string{h.header}
	for _, l := range h.lines[:li+1] {
		text = append(text, l.text)
	}
	t.hunk = strings.Join(text, "\n")
	return t, nil
}

func (t *thread) byPosition(f *fileDiff, position int) {
	for _, h := range f.hunks {
		for _, l := range h.lines {
			if l.position == position {
				t.line, t.side = l.new, "RIGHT"
				if l.kind == '-' {
					t.line, t.side = l.old, "LEFT"
				}
			}
		}
	}
}

// move follows the thread's lines through a change of its file. A thread whose
// lines were touched is outdated.
func (t *thread) move(files []fileDiff, head string) {
	if t.outdated || t.side == "LEFT" {
		return
	}
	for _, f := range files {
		if f.path != t.path && f.oldPath != t.path {
			continue
		}
		if f.status == "removed" || f.path != t.path {
			t.expire()
			return
		}
		if t.subject == "file" {
			break
		}
		first, shift := t.line, 0
		if t.startLine > 0 && t.startSide != "LEFT" {
			first = t.startLine
		}
		for _, h := range f.hunks {
			switch {
			case h.oldCount == 0 && h.oldStart < first, h.oldCount > 0 && h.oldStart+h.oldCount-1 < first:
				shift += h.newCount - h.oldCount
			case h.oldCount == 0 && h.oldStart < t.line, h.oldCount > 0 && h.oldStart <= t.line:
				t.expire()
				return
			}
		}
		t.line += shift
		if t.startLine > 0 {
			t.startLine += shift
		}
	}
	t.commit = head
}

func (t *thread) expire() { t.outdated, t.line, t.startLine = true, 0, 0 }
