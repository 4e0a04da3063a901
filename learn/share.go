package learn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
)

// What is asked of a learning before it is shared, and what another repository that has
// learnt the same adds to it.
const (
	shareFrom  = 0.5 // its confidence
	shareDelta = 0.05
	keyShared  = "shared:"
)

// Share is a learning of an organisation that two or more of its repositories have made,
// each by itself.
type Share struct {
	Learning pipeline.Learning
	Evidence []pipeline.Evidence // a piece of each repository but the first
}

// Shared reports whether a learning is of an organisation because its repositories
// confirmed it.
func Shared(l *pipeline.Learning) bool { return strings.HasPrefix(l.Key, keyShared) }

// Sharing finds what two or more scopes have learnt from their own runs, in
// words that say the same ([Consolidate]): facts and ways of doing things, surer than not,
// with no more against them than for them. What is bound to a finding, its code or
// somebody's word stays where it is, with the place that it names. The oldest one is told, without its places. What is
// among the organisation's known learnings keeps their key, whichever scope has it still.
func Sharing(learnings, known []pipeline.Learning, org string) (out []Share) {
	var list []pipeline.Learning
	for _, l := range learnings {
		if l.Source == pipeline.SourceReflection && l.State == pipeline.LearningActive && l.Weight > 0 && l.Type != pipeline.LearningEpisodic &&
			l.Confidence >= shareFrom && l.Against <= l.For && l.Finding == "" && l.Code == "" && l.Scope != org {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b pipeline.Learning) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key))
	})
	for _, g := range groups(list, func(a, b *pipeline.Learning) bool { return a.Type == b.Type }) {
		if s := shareOf(g, known, org); len(s.Evidence) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// shareOf is what learnings that say the same have in common, as a learning of the
// organisation; without evidence where they are all of one scope.
func shareOf(g, known []pipeline.Learning, org string) Share {
	first := &g[0]
	s := Share{Learning: pipeline.Learning{Key: keyShared + first.Scope + "/" + first.Key, Scope: org, Type: first.Type, Category: first.Category,
		Content: first.Content, Source: first.Source, Weight: first.Weight, Base: first.Confidence, State: pipeline.LearningActive}}
	if i := slices.IndexFunc(known, func(l pipeline.Learning) bool { return Shared(&l) && l.Type == first.Type && Same(&l, first) }); i >= 0 {
		s.Learning.Key = known[i].Key
	}
	if t := Stands(first).Tag(); t != "" {
		s.Learning.Tags = []string{t}
	}
	seen := []string{first.Scope}
	for _, o := range g[1:] {
		if slices.Contains(seen, o.Scope) {
			continue
		}
		seen = append(seen, o.Scope)
		s.Learning.Base = min(s.Learning.Base, o.Confidence)
		s.Evidence = append(s.Evidence, pipeline.Evidence{Of: s.Learning.Key, Key: "shared/" + o.Scope, Delta: shareDelta,
			Why: fmt.Sprintf("%s has learnt the same", strings.TrimPrefix(o.Scope, "repo:")), Run: o.Run, At: o.Created})
	}
	s.Learning.Confidence = s.Learning.Base
	return s
}
