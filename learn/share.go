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

// Sharing finds what two or more scopes have learnt from their own runs and people, in
// words that say the same ([Consolidate]): facts and ways of doing things, surer than not,
// with no more against them than for them. What is bound to a finding, its code or
// somebody's word stays where it is. The oldest one is told, without its places.
func Sharing(learnings []pipeline.Learning, org string) (out []Share) {
	var list []pipeline.Learning
	for _, l := range learnings {
		if l.State == pipeline.LearningActive && (l.Source == pipeline.SourceReflection || l.Source == pipeline.SourceGap) && l.Type != pipeline.LearningEpisodic &&
			l.Confidence >= shareFrom && l.Against <= l.For && l.Finding == "" && l.Code == "" && l.Scope != org {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b pipeline.Learning) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key))
	})
	says := make([]saying, len(list))
	for i := range list {
		says[i] = sayingOf(&list[i])
	}
	gone := make([]bool, len(list))
	for i := range list {
		if gone[i] {
			continue
		}
		first := &list[i]
		s := Share{Learning: pipeline.Learning{Key: keyShared + first.Scope + "/" + first.Key, Scope: org, Type: first.Type, Category: first.Category, Content: first.Content,
			Source: first.Source, Weight: first.Weight, Base: first.Confidence, State: pipeline.LearningActive}}
		if t := Stands(first).Tag(); t != "" {
			s.Learning.Tags = []string{t}
		}
		seen := []string{first.Scope}
		for k := i + 1; k < len(list); k++ {
			o := &list[k]
			if gone[k] || o.Type != first.Type || !says[i].same(&says[k]) {
				continue
			}
			gone[k] = true
			if slices.Contains(seen, o.Scope) {
				continue
			}
			seen = append(seen, o.Scope)
			s.Learning.Base = min(s.Learning.Base, o.Confidence)
			s.Evidence = append(s.Evidence, pipeline.Evidence{Of: s.Learning.Key, Key: "shared/" + o.Scope, Delta: shareDelta,
				Why: fmt.Sprintf("%s has learnt the same", strings.TrimPrefix(o.Scope, "repo:")), Run: o.Run, At: o.Created})
		}
		if s.Learning.Confidence = s.Learning.Base; len(seen) > 1 {
			out = append(out, s)
		}
	}
	return out
}
