package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"forge/pipeline"
)

// What the planner has read of the files that are to change, the implementer need not read
// again.

// maxExcerpts is what all excerpts may take in a prompt, in bytes.
const maxExcerpts = 16 << 10

// noteRead notes what a call of read has shown.
func (p *phase) noteRead(args json.RawMessage) {
	var in struct {
		Path     string
		From, To int
	}
	if decode(args, &in) == nil {
		p.read = append(p.read, pipeline.Excerpt{File: path.Clean(in.Path), From: in.From, To: in.To})
	}
}

// excerpts are what was read of some files, each part once; of those that overlap the longest.
func (p *phase) excerpts(files []string) (out []pipeline.Excerpt) {
	holds := func(a, b pipeline.Excerpt) bool {
		return a.File == b.File && a.From <= max(1, b.From) && (a.To == 0 || b.To > 0 && b.To <= a.To)
	}
	for _, e := range p.read {
		named := slices.ContainsFunc(files, func(f string) bool { return path.Clean(f) == e.File })
		if !named || slices.ContainsFunc(out, func(o pipeline.Excerpt) bool { return holds(o, e) }) {
			continue
		}
		out = append(slices.DeleteFunc(out, func(o pipeline.Excerpt) bool { return holds(e, o) }), e)
	}
	return out
}

// excerpts appends what the planner has read, as it stands in the work tree.
func (w *prompt) excerpts(ctx context.Context) *prompt {
	run, left := w.p.job.Run, maxExcerpts
	if run.Plan == nil {
		return w
	}
	now, _ := w.p.head(ctx)
	var b strings.Builder
	for _, e := range run.Plan.Excerpts {
		content, ok := now(e.File)
		lines := splitLines(content)
		from, to := max(1, e.From), e.To
		if to <= 0 || to > len(lines) {
			to = len(lines)
		}
		if !ok || from > to {
			continue
		}
		if part := fmt.Sprintf("=== %s ===\n%s", e.File, numbered(lines, from, to)); len(part) <= left {
			b.WriteString(part)
			left -= len(part)
		}
	}
	return w.data("What the planner read of the files that are to change; you need not read it again before you edit", b.String())
}
