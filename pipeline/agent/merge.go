package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/agent/change"
	"forge/pipeline/lazyregexp"
)

// merge lets the implementer finish a merge in the workspace. It may not leave a
// marker behind.
func (p *phase) merge(ctx context.Context, w *prompt) (pipeline.Implementation, error) {
	c := p.job.Conflict
	theirs := change.Read(c.Theirs)
	theirs.Files = slices.DeleteFunc(theirs.Files, func(f *change.File) bool {
		return !slices.Contains(c.Paths, f.Path) && !slices.Contains(c.Paths, f.From)
	})
	w.own().lastFault()
	w.data("What "+c.Branch+" has changed in the same files", inShort(theirs))
	w.data("What git could not merge", strings.Join(slices.Concat(c.Paths, c.Why), "\n"))
	var impl pipeline.Implementation
	s := w.say("%s", promptText("implementer_conflict")).spec("merge", roleImplementer, system("implementer"))
	s.tools, s.result = p.working(), object(implementParts...)
	s.accept = func(args json.RawMessage) []string {
		var problems []string
		if impl, problems = (feedback{}).check(args); impl.Unable == "" {
			problems = slices.Concat(problems, p.markers(ctx), p.refused(ctx))
		}
		return problems
	}
	if err := p.converse(ctx, s); err != nil {
		return pipeline.Implementation{}, err
	}
	return impl, nil
}

var marker = lazyregexp.New(`(?m)^(?:<{7} |>{7} |\|{7} )`)

// markers says where both sides of a conflict still stand.
func (p *phase) markers(ctx context.Context) []string {
	var left []string
	for _, path := range p.job.Conflict.Paths {
		content, err := p.job.Workspace.Read(ctx, path)
		if err != nil { // it was removed
			continue
		}
		if at := marker.FindIndex(content); at != nil {
			left = append(left, fmt.Sprintf("%s has a conflict marker in line %d: decide what stands there, and remove the marker", path, 1+strings.Count(string(content[:at[0]]), "\n")))
		}
	}
	return left
}
