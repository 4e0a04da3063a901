package feedback

import (
	"context"
	"slices"
	"time"

	"forge/pipeline"
)

// beforeMerge is how shortly before a merge a conversation is resolved because the branch
// asks for resolved conversations, not because of what it says.
const beforeMerge = 10 * time.Minute

// manySilent is from how many conversations on that somebody who resolves them without a
// word tidies up.
const manySilent = 3

// otherReason reports whether a conversation that was resolved without a word may have
// been resolved for another reason than that its finding is not wanted: somebody agreed, put it
// off, or said what nobody has read; it is one of many, the merge asked for it, or a person has
// committed something since. Then it is not known what the click means. timed says that the
// click's moment is known.
func (g *collector) otherReason(ctx context.Context, t *Thread, r reason, timed bool) (bool, error) {
	for i := range t.Comments[1:] {
		if c := &t.Comments[1+i]; g.agreed(c) || g.unread(c) {
			return true, nil
		}
	}
	if g.tidied(r.by) {
		return true, nil
	}
	if g.st.State == "MERGED" && (!timed || g.st.Ended.Sub(r.at) < beforeMerge && r.at.Before(g.st.Ended.Add(time.Minute))) {
		return true, nil
	}
	return g.history.people(ctx, t.first().Commit)
}

// tidied reports whether somebody resolved many of Forge's conversations without a word,
// or all of them before a merge.
func (g *collector) tidied(who pipeline.Actor) bool {
	silent, all := 0, 0
	for i := range g.st.Threads {
		t := &g.st.Threads[i]
		if g.finding(t.first()) == "" {
			continue
		}
		all++
		spoken := slices.ContainsFunc(t.Comments[1:], func(c Comment) bool { return g.human(c.Author) })
		if t.Resolved && t.Resolver.ID == who.ID && !spoken {
			silent++
		}
	}
	return silent >= manySilent || g.st.State == "MERGED" && silent >= 2 && silent == all
}

// carried reports whether a person's commit only carried commented lines along: it renamed
// something everywhere, moved them to another file, or took away all that was around them.
func (g *collector) carried(ctx context.Context, v *outcome, s *step, file string, cur, next []string, at, to place) (bool, error) {
	if wiped(cur, next, at, to) {
		v.stands, v.people, v.ever, v.closed, v.kind, v.by = false, true, true, true, "", step{}
		return true, nil
	}
	list, err := g.history.patch(ctx, s.sha)
	if err != nil {
		return false, err
	}
	if telling(v.old) && slices.ContainsFunc(list, func(c change) bool { return c.path != file && index(c.after, v.old) >= 0 }) {
		v.stands, v.closed = true, true
		return true, nil
	}
	names := renaming(at.of(cur), to.of(next))
	if names == nil {
		return false, nil
	}
	alike := 0
	for _, c := range list {
		if reformatted(rename(c.before, names), c.after) && len(c.before) > 0 && !slices.Equal(c.before, c.after) {
			alike++
		}
	}
	if alike < manyRenamed {
		return false, nil
	}
	v.old, v.suggest = rename(v.old, names), rename(v.suggest, names)
	return true, nil
}
