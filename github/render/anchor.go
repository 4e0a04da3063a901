package render

import (
	"fmt"
	"strings"

	"forge/pipeline"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// Patch knows which lines of the new files a review may comment on: GitHub
// refuses a whole review when one comment lies outside the diff's hunks.
type Patch map[string][]hunk

// hunk is one contiguous range of a new file, with its lines.
type hunk struct {
	first int // line number, from 1
	lines []string
}

// ParsePatch reads a unified diff.
func ParsePatch(text string) (Patch, error) {
	files, _, err := gitdiff.Parse(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the diff: %w", err)
	}
	p := Patch{}
	for _, f := range files {
		if f.IsDelete || f.IsBinary {
			continue
		}
		for _, t := range f.TextFragments {
			h := hunk{first: int(t.NewPosition)}
			for _, l := range t.Lines {
				if l.Op != gitdiff.OpDelete {
					h.lines = append(h.lines, strings.TrimSuffix(l.Line, "\n"))
				}
			}
			p[f.NewName] = append(p[f.NewName], h)
		}
	}
	return p, nil
}

// anchor is where a comment goes: a line, or the lines from start to line.
type anchor struct {
	path        string
	start, line int // start is 0 for a single line
	text        []string
}

// anchor finds the place of a finding. ok is false when its first line is not in the
// diff; a range that reaches out of its hunk shrinks to the first line.
func (p Patch) anchor(f *pipeline.Finding) (a anchor, ok bool) {
	if f.File == "" || f.Line < 1 {
		return a, false
	}
	end := max(f.Line, f.EndLine)
	for _, h := range p[f.File] {
		last := h.first + len(h.lines) - 1
		if f.Line < h.first || f.Line > last {
			continue
		}
		if end > last {
			end = f.Line
		}
		a = anchor{path: f.File, line: end, text: h.lines[f.Line-h.first : end-h.first+1]}
		if end > f.Line {
			a.start = f.Line
		}
		return a, true
	}
	return a, false
}

// suggestion returns the text of a suggestion block when the fix replaces exactly
// the lines that the comment is about, as they stand in the diff.
func (a anchor) suggestion(f *pipeline.Finding) (string, bool) {
	if f.Fix == nil || f.Fix.Replacement == nil || len(a.text) != max(f.Line, f.EndLine)-f.Line+1 {
		return "", false
	}
	with, now := *f.Fix.Replacement, strings.Join(a.text, "\n")
	if f.Code != "" && strings.TrimSuffix(f.Code, "\n") != now {
		return "", false // the lines are not the ones that the fix was made for
	}
	if strings.Contains(now, "\r") || Visible(with) != with || strings.TrimSuffix(with, "\n") == now {
		return "", false
	}
	return with, true
}
