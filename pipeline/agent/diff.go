package agent

import (
	"fmt"
	"path"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"forge/pipeline"
)

// What of a patch is put before a reviewer, in bytes: more than that is listed
// as not reviewed, never left out silently (lessons 9).
const (
	maxDiffFile  = 48 << 10
	maxDiffTotal = 192 << 10
)

// patch is a change as a reviewer sees it.
type patch struct {
	text     string
	files    map[string]bool // paths at head and, of removed files, at base
	reviewed []string
	skipped  []pipeline.Skipped
}

// splitDiff divides a patch into what a reviewer is shown and what not.
func splitDiff(diff string) patch {
	p := patch{files: map[string]bool{}}
	var shown strings.Builder
	parts := diffParts(diff)
	if len(parts) == 0 && strings.TrimSpace(diff) != "" {
		p.skipped = append(p.skipped, pipeline.Skipped{Path: clip(firstLine(strings.TrimSpace(diff)), 200), Why: "the patch cannot be read"})
	}
	for _, part := range parts {
		name, binary := partName(part)
		if name == "" {
			p.skipped = append(p.skipped, pipeline.Skipped{Path: clip(firstLine(part), 200), Why: "this part of the patch cannot be read"})
			continue
		}
		p.files[name] = true
		switch {
		case binary:
			p.skipped = append(p.skipped, pipeline.Skipped{Path: name, Why: "binary file"})
		case len(part) > maxDiffFile:
			p.skipped = append(p.skipped, pipeline.Skipped{Path: name, Why: fmt.Sprintf("its patch of %d KiB is over the %d KiB that a reviewer is shown of one file", len(part)>>10, maxDiffFile>>10)})
		case shown.Len()+len(part) > maxDiffTotal:
			p.skipped = append(p.skipped, pipeline.Skipped{Path: name, Why: fmt.Sprintf("the patch is over the %d KiB that a reviewer is shown", maxDiffTotal>>10)})
		default:
			shown.WriteString(part)
			p.reviewed = append(p.reviewed, name)
		}
	}
	p.text = shown.String()
	return p
}

// diffParts cuts a patch at its file headers. Lines of content begin with a
// space, a sign or a backslash, so none is taken for a header.
func diffParts(diff string) []string {
	var parts []string
	start := -1
	for off := 0; off < len(diff); {
		end := strings.IndexByte(diff[off:], '\n')
		if end < 0 {
			end = len(diff) - off
		} else {
			end++
		}
		if strings.HasPrefix(diff[off:], "diff --git ") {
			if start >= 0 {
				parts = append(parts, diff[start:off])
			}
			start = off
		}
		off += end
	}
	if start >= 0 {
		parts = append(parts, diff[start:])
	}
	return parts
}

func partName(part string) (name string, binary bool) {
	files, _, err := gitdiff.Parse(strings.NewReader(part))
	if err != nil || len(files) != 1 {
		return "", false
	}
	f := files[0]
	name = f.NewName
	if f.IsDelete || name == "" {
		name = f.OldName
	}
	return path.Clean(name), f.IsBinary
}

// skippedList tells a reviewer what it is not shown.
func (p patch) skippedList() string {
	var b strings.Builder
	for _, s := range p.skipped {
		fmt.Fprintf(&b, "%s: %s\n", s.Path, s.Why)
	}
	return b.String()
}
