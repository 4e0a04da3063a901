package feedback

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
)

// beforeMerge is how shortly before a merge a conversation is resolved because the branch
// asks for resolved conversations, not because of what it says.
const beforeMerge = 10 * time.Minute

// manySilent is from how many conversations on that somebody who resolves them without a
// word tidies up.
const manySilent = 3

// otherReason reports whether a conversation that was resolved without a word may have
// been resolved for another reason than that its finding is not wanted: somebody agreed or
// put it off, it is one of many, the merge asked for it, or the work was done elsewhere.
// Then it is not known what the click means. timed says that the click's moment is known.
func (g *collector) otherReason(ctx context.Context, t *Thread, v outcome, r reason, timed bool) (bool, error) {
	for i := range t.Comments[1:] {
		if g.agreed(&t.Comments[1+i]) {
			return true, nil
		}
	}
	if g.tidied(r.by) {
		return true, nil
	}
	if g.st.State == "MERGED" && (!timed || g.st.Ended.Sub(r.at) < beforeMerge && r.at.Before(g.st.Ended.Add(time.Minute))) {
		return true, nil
	}
	return g.doneElsewhere(ctx, t, v)
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

// beside is how many lines from a finding a change may have been made because of it.
const beside = 3

// doneElsewhere reports whether a commit after a comment may have done what it asks for
// in another place: right next to its lines, in a test of its file, or where the same
// things are named.
func (g *collector) doneElsewhere(ctx context.Context, t *Thread, v outcome) (bool, error) {
	steps, err := g.history.since(ctx, t.first().Commit)
	if err != nil {
		return false, err
	}
	names := identifiers(append(slices.Clone(v.old), spokenNames(t.first().Body)...))
	looked := 0
	for i := range steps {
		s := &steps[i]
		if !s.person() || looked >= maxPeopleCommits {
			continue
		}
		looked++
		list, err := g.history.patch(ctx, s.sha)
		if err != nil {
			return false, err
		}
		for _, c := range list {
			near := c.path == t.Path && c.line >= t.first().Start-beside && c.line <= t.first().Line+beside+len(c.after)
			if near || testOf(c.path, t.Path) || shares(names, identifiers(slices.Concat(c.before, c.after))) {
				return true, nil
			}
		}
	}
	return false, nil
}

var (
	identifier = lazyregexp.New(`[A-Za-z_][A-Za-z0-9_]{3,}`)
	quotedCode = lazyregexp.New("`([^`\n]+)`")
	shownCode  = lazyregexp.New("(?s)```.*?```")
)

// everyday are names that code of all kinds has.
var everyday = func() map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(`return func function error errors string strings self this true false null nil none else elif case switch break continue const type
		struct class interface import from package public private static void bool int32 int64 float double byte char list dict array append value values name data item items
		index length size test tests context print println format range while with async await export default require module final override throw catch`) {
		out[w] = true
	}
	return out
}()

// identifiers are the names in lines of code that tell one thing from another.
func identifiers(lines []string) map[string]bool {
	out := map[string]bool{}
	for _, l := range lines {
		for _, w := range identifier.FindAllString(l, -1) {
			if !everyday[strings.ToLower(w)] && (len(w) >= 6 || strings.ToLower(w) != w) {
				out[w] = true
			}
		}
	}
	return out
}

// spokenNames are the names that a comment quotes.
func spokenNames(body string) (out []string) {
	for _, m := range quotedCode.FindAllStringSubmatch(shownCode.ReplaceAllString(body, ""), -1) {
		out = append(out, m[1])
	}
	return out
}

func shares(a, b map[string]bool) bool {
	for w := range a {
		if b[w] {
			return true
		}
	}
	return false
}

var (
	testMarks = lazyregexp.New(`(?i)^test_|[._-](?:test|tests|spec)$|Tests?$`)
	testPlace = lazyregexp.New(`(?i)(?:^|[/_.-])(?:tests?|spec|specs|__tests__)(?:[/_.-]|$)|Tests?\.\w+$`)
)

// testOf reports whether a file is the test of another, as languages name them.
func testOf(file, of string) bool {
	stem := func(p string) string {
		base, _, _ := strings.Cut(path.Base(p), ".")
		if strings.Contains(path.Base(p), ".test.") || strings.Contains(path.Base(p), ".spec.") {
			return base
		}
		return testMarks.ReplaceAllString(base, "")
	}
	return file != of && testPlace.MatchString(file) && stem(file) == stem(of)
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
