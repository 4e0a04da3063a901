package learn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// nearDuplicate is the share of common three-word shingles from which two
// learnings say the same, samePattern that of common key words, of sameWords at least.
const (
	nearDuplicate = 0.6
	samePattern   = 0.6
	sameWords     = 4
)

// A run that taught what another had taught confirms it, up to so many runs.
const (
	taughtDelta = 0.05
	mostTaught  = 4
	keyTaught   = "taught/"
)

// Merge is two or more learnings that say the same: From go into Into, with
// their evidence, and stay as sources. What several runs taught is surer than what one did.
type Merge struct {
	Into     pipeline.Learning // as it is after the merge: paths and tags of all
	From     []pipeline.Learning
	Evidence []pipeline.Evidence // for Into: which runs taught it, too
}

// saying is what a learning says, in the forms that are compared.
type saying struct {
	grams, words, marks []string   // marks are names and numbers, as they come: with others it is something else
	clauses             [][]string // key words, and noes
	stand               Stand
	noes                int
	choice              [2]string
}

func sayingOf(l *pipeline.Learning) saying {
	s := saying{grams: shingles(l.Content), words: text.KeyWords(l.Content), marks: mark.FindAllString(l.Content, -1), stand: Stands(l)}
	spelt := spelt.Replace(strings.ToLower(l.Content))
	for _, part := range clause.Split(spelt, -1) {
		words := text.KeyWords(part)
		for _, w := range text.Words(part) {
			if negative[w] {
				words = append(words, "\x00no")
				s.noes++
			}
		}
		if len(words) > 0 {
			s.clauses = append(s.clauses, words)
		}
	}
	for _, w := range sorted(text.Words(spelt)) {
		if relating[w] {
			s.marks = append(s.marks, w)
		}
	}
	_, _, s.choice = polarity(spelt)
	return s
}

// relating are words that are no key words, and turn what is said round.
var relating = set(`before after unless until off out up down only under more less`)

// mark finds what a text names: in backquotes, by a number or a path, or as code and short
// forms are spelt. clause ends a part of it that says one thing of another.
var (
	mark   = lazyregexp.New("`[^`\n]+`|" + `\w*[./][\w./]*\w/?|\w+/|\b\w*(?:[a-z\d][A-Z]|_)\w*\b|\b[A-Z][A-Z\d]+\b|\b\d+\b`)
	clause = lazyregexp.New(`[.,;:!?]\s|\b(?:and|or|but|before|after|when|while|if|until|unless|instead|rather)\b`)
)

// crossed reports whether the clauses of two texts join other words: what one says of one
// thing, the other says of another.
func (s *saying) crossed(o *saying) bool {
	if len(s.clauses) < 2 || len(o.clauses) < 2 {
		return false
	}
	in := func(list [][]string, w string) []int {
		var out []int
		for i, c := range list {
			if slices.Contains(c, w) {
				out = append(out, i)
			}
		}
		return out
	}
	for _, c := range s.clauses {
		for i, a := range c {
			for _, b := range c[:i] {
				x, y := in(o.clauses, a), in(o.clauses, b)
				if len(x) > 0 && len(y) > 0 && !slices.ContainsFunc(x, func(k int) bool { return slices.Contains(y, k) }) {
					return true
				}
			}
		}
	}
	return false
}

// same reports whether two texts say the same thing, the same way round.
func (s *saying) same(o *saying) bool {
	if s.stand != o.stand || s.noes != o.noes || s.choice != o.choice || !slices.Equal(s.marks, o.marks) || s.crossed(o) || o.crossed(s) {
		return false
	}
	return text.Jaccard(s.grams, o.grams) >= nearDuplicate ||
		text.Common(s.words, o.words) >= sameWords && text.Jaccard(s.words, o.words) >= samePattern
}

// Same reports whether two learnings say the same thing, the same way round.
func Same(a, b *pipeline.Learning) bool {
	x, y := sayingOf(a), sayingOf(b)
	return x.same(&y)
}

// Consolidate finds active learnings that say the same: same scope, type and
// category, shared by repositories or not, bound to no different code, standing for the same, the same way round, with the
// same names and numbers in the same order, and at least 60 % of the three-word shingles of their normalised
// texts in common, or of their key words. What a person said is in these words alone what they
// said: it goes with nothing else; and what came of a stranger's task goes with its like. The one
// with the highest confidence stays, then the oldest.
func Consolidate(learnings []pipeline.Learning) []Merge {
	var list []pipeline.Learning
	for _, l := range learnings {
		if l.State == pipeline.LearningActive {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b pipeline.Learning) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), a.Created.Compare(b.Created), cmp.Compare(a.Key, b.Key))
	})
	var out []Merge
	for _, g := range groups(list, func(a, b *pipeline.Learning) bool {
		if (a.Source == pipeline.SourceHuman || b.Source == pipeline.SourceHuman) && Worded(a.Content) != Worded(b.Content) {
			return false
		}
		return a.Scope == b.Scope && a.Type == b.Type && a.Category == b.Category && a.Finding == b.Finding && a.Code == b.Code &&
			Shared(a) == Shared(b) && (a.Weight > 0) == (b.Weight > 0)
	}) {
		m := Merge{Into: g[0], From: g[1:]}
		for _, l := range m.From {
			m.Into.Paths, m.Into.Tags = union(m.Into.Paths, l.Paths), union(m.Into.Tags, l.Tags)
		}
		if slices.ContainsFunc(g, func(l pipeline.Learning) bool { return !slices.Contains(l.Tags, TagUnchecked) }) {
			m.Into.Tags = slices.DeleteFunc(m.Into.Tags, func(t string) bool { return t == TagUnchecked })
		}
		m.Evidence = taught(&m)
		out = append(out, m)
	}
	return out
}

// groups are the learnings that say the same as an earlier one of the list that they may go
// with, behind that one; in the order of the list. One that stands alone is in none.
func groups(list []pipeline.Learning, with func(first, other *pipeline.Learning) bool) (out [][]pipeline.Learning) {
	says := make([]saying, len(list))
	for i := range list {
		says[i] = sayingOf(&list[i])
	}
	gone := make([]bool, len(list))
	for i := range list {
		if gone[i] {
			continue
		}
		g := []pipeline.Learning{list[i]}
		for k := i + 1; k < len(list); k++ {
			if !gone[k] && with(&list[i], &list[k]) && says[i].same(&says[k]) {
				gone[k] = true
				g = append(g, list[k])
			}
		}
		if len(g) > 1 {
			out = append(out, g)
		}
	}
	return out
}

// taught is the evidence that other runs give for what a run taught.
func taught(m *Merge) (out []pipeline.Evidence) {
	seen := []int64{m.Into.Run}
	for _, l := range m.From {
		if l.Source != pipeline.SourceReflection || l.Run == 0 || !(l.Weight > 0) || slices.Contains(seen, l.Run) {
			continue
		}
		seen = append(seen, l.Run)
		out = append(out, pipeline.Evidence{Learning: m.Into.ID, Of: m.Into.Key, Key: fmt.Sprint(keyTaught, l.Run), Delta: taughtDelta,
			Why: fmt.Sprintf("run %d taught the same", l.Run), Run: l.Run, At: l.Created})
	}
	return out
}

// Fresh are the pieces of evidence that a learning does not have yet. Of runs that taught the
// same it takes no more than count, those of earlier merges included.
func Fresh(past, more []pipeline.Evidence) (out []pipeline.Evidence) {
	taught := 0
	for _, e := range past {
		if strings.HasPrefix(e.Key, keyTaught) {
			taught++
		}
	}
	for _, e := range more {
		if slices.ContainsFunc(past, func(p pipeline.Evidence) bool { return p.Key == e.Key }) {
			continue
		}
		if strings.HasPrefix(e.Key, keyTaught) {
			if taught == mostTaught {
				continue
			}
			taught++
		}
		out = append(out, e)
	}
	return out
}

// shingles returns the runs of three words of a text, sorted, each once; a
// shorter text is one shingle.
func shingles(s string) []string {
	w := text.Words(s)
	if len(w) <= 3 {
		return []string{strings.Join(w, " ")}
	}
	out := make([]string, 0, len(w)-2)
	for i := range len(w) - 2 {
		out = append(out, w[i]+" "+w[i+1]+" "+w[i+2])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// Conflict is two learnings that give opposite advice about the same thing. The
// weaker one is held back, and both are shown to people.
type Conflict struct {
	Stronger, Weaker pipeline.Learning
	Why              string
}

// Contradictions finds pairs of active learnings of a scope that speak of the same thing
// in the same words and files, and point to opposite sides: "always" and "never", "do" and "do not",
// or a choice made the other way round ("A over B", "B over A"). What differs in more than
// that may hold for another thing. It is a heuristic: it flags, and
// leaves the decision to people. The weaker is the one with less effective
// confidence, then the older one.
func Contradictions(learnings []pipeline.Learning, now time.Time) []Conflict {
	type side struct {
		about  []string
		sign   int
		choice [2]string
	}
	var list []pipeline.Learning
	var sides []side
	for _, l := range learnings {
		if l.State == pipeline.LearningActive && l.Source != pipeline.SourceDismissal {
			a, sign, choice := polarity(spelt.Replace(strings.ToLower(l.Content)))
			list, sides = append(list, l), append(sides, side{a, sign, choice})
		}
	}
	var out []Conflict
	for i := range list {
		for k := i + 1; k < len(list); k++ {
			a, b := sides[i], sides[k]
			if list[i].Scope != list[k].Scope || !sameFiles(&list[i], &list[k]) {
				continue
			}
			why := ""
			switch {
			case !slices.Equal(sorted(a.about), sorted(b.about)):
				continue
			case a.choice[0] != "" && a.choice[0] == b.choice[1] && a.choice[1] == b.choice[0]:
				why = fmt.Sprintf("one prefers %s, the other %s", a.choice[0], b.choice[0])
			case a.choice[0] == "" && b.choice[0] == "" && a.sign*b.sign < 0 && slices.Equal(a.about, b.about):
				why = "one says to do it, the other not to"
			default:
				continue
			}
			c := Conflict{Stronger: list[i], Weaker: list[k], Why: why}
			if weaker(list[i], list[k], now) {
				c.Stronger, c.Weaker = list[k], list[i]
			}
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Conflict) int {
		return cmp.Or(cmp.Compare(a.Stronger.Key, b.Stronger.Key), cmp.Compare(a.Weaker.Key, b.Weaker.Key))
	})
	return out
}

// sameFiles reports whether what two learnings say may be of one file.
func sameFiles(a, b *pipeline.Learning) bool {
	return len(a.Paths) == 0 || len(b.Paths) == 0 || slices.ContainsFunc(a.Paths, func(p string) bool {
		return covers(b.Paths, p) || slices.ContainsFunc(b.Paths, func(o string) bool { return covers(a.Paths, o) })
	})
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

func weaker(a, b pipeline.Learning, now time.Time) bool {
	return cmp.Or(cmp.Compare(Effective(a, now), Effective(b, now)), a.Touched.Compare(b.Touched), cmp.Compare(a.Key, b.Key)) < 0
}

var (
	negative = set(`not never no dont don't doesnt shouldnt mustnt cannot cant avoid without forbid forbidden stop refrain instead`)
	positive = set(`always do must should use prefer require required ensure`)
	choices  = map[string]bool{"over": true, "than": true}
	bare     = set(`a an the does did be is are to please rather`) // they say nothing of what an advice is about
)

// polarity splits an advice into what it is about, word by word, whether it says to do it (1)
// or not (-1), and, when it is a choice, what is preferred over what.
func polarity(advice string) (about []string, sign int, choice [2]string) {
	sign = 1
	list := text.Words(advice)
	for i, w := range list {
		switch {
		case negative[w]:
			sign = -sign
		case choices[w] && i > 0 && i+1 < len(list):
			if w == "than" && i > 1 && list[i-1] == "rather" {
				choice = [2]string{text.Stem(list[i-2]), text.Stem(list[i+1])}
			} else if w == "over" {
				choice = [2]string{text.Stem(list[i-1]), text.Stem(list[i+1])}
			}
			fallthrough
		default:
			if !positive[w] && !bare[w] {
				about = append(about, text.Stem(w))
			}
		}
	}
	return about, sign, choice
}

// Retirement is a learning that goes out of use, and why.
type Retirement struct {
	Learning pipeline.Learning
	Why      string
}

// said reports whether a learning is what a person said or did: it is theirs to end.
func said(l *pipeline.Learning) bool {
	return l.Source == pipeline.SourceHuman || l.Author.ID != 0 || l.Author.Login != ""
}

func worse(low, high float64) string {
	return fmt.Sprintf("runs that were given it did worse: %+.2f to %+.2f approved at first", low, high)
}

// questionedFrom is how often findings that a person's learning asks for must have been
// dismissed for that to be a question to them.
const questionedFrom = 3

// Questioned says which of the learnings that are people's word have a negative measured
// effect, or ask for what others dismiss again and again: they are never retired for it, but
// whoever said it should know.
func Questioned(learnings []pipeline.Learning, effects Effects) []Retirement {
	var out []Retirement
	for i := range learnings {
		l := &learnings[i]
		if l.State != pipeline.LearningActive || l.Source == pipeline.SourceDismissal || !said(l) {
			continue
		}
		if e, ok := effects[l.ID]; ok && e.High < 0 {
			out = append(out, Retirement{*l, worse(e.Low, e.High)})
		} else if l.Against >= questionedFrom && l.Against > l.For && l.Confidence < l.Base {
			out = append(out, Retirement{*l, fmt.Sprintf("what it asks for was dismissed %d times, and is at %.2f for that", l.Against, l.Confidence)})
		}
	}
	return out
}

// Effects are what learnings were measured to be worth, by id: the bounds of the
// interval of what they add to the share of reviews approved at first (worth.Anytime).
type Effects map[int64]struct{ Low, High float64 }

// Retire says which learnings go: those whose measured effect is negative — its
// whole interval is under zero; but for people's word, see [Questioned] — and, in a scope that holds more than limit,
// those of the least worth (lessons 20). Worth is effective confidence, weighed by
// how often what was recalled was of use, and by the middle of the measured
// effect. What people asked for in words goes last, and dismissals never: they
// bind to code, not to a prompt.
func Retire(learnings []pipeline.Learning, effects Effects, limit int, now time.Time) []Retirement {
	var out []Retirement
	scopes := map[string][]pipeline.Learning{}
	for _, l := range learnings {
		if l.State != pipeline.LearningActive || l.Source == pipeline.SourceDismissal {
			continue
		}
		if e, ok := effects[l.ID]; ok && e.High < 0 && !said(&l) {
			out = append(out, Retirement{l, worse(e.Low, e.High)})
			continue
		}
		scopes[l.Scope] = append(scopes[l.Scope], l)
	}
	for scope, list := range scopes {
		if len(list) <= limit {
			continue
		}
		slices.SortFunc(list, func(a, b pipeline.Learning) int {
			human := func(l pipeline.Learning) int {
				if l.Source == pipeline.SourceHuman {
					return 1
				}
				return 0
			}
			return cmp.Or(human(b)-human(a), cmp.Compare(worth(b, effects, now), worth(a, effects, now)), cmp.Compare(a.Key, b.Key))
		})
		for _, l := range list[limit:] {
			out = append(out, Retirement{l, fmt.Sprintf("%s holds more than %d, and this one is worth %.3f", scope, limit, worth(l, effects, now))})
		}
	}
	slices.SortFunc(out, func(a, b Retirement) int {
		return cmp.Or(cmp.Compare(a.Learning.Scope, b.Learning.Scope), cmp.Compare(a.Learning.Key, b.Learning.Key))
	})
	return out
}

// worth is effective confidence × the share of uses (with one use in two as what
// is assumed before there is any) × the effect.
func worth(l pipeline.Learning, effects Effects, now time.Time) float64 {
	use := float64(l.Used+1) / float64(l.Recalled+2)
	e := effects[l.ID]
	return Effective(l, now) * (0.5 + use) * (1 + (e.Low+e.High)/2)
}
