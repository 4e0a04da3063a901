package learn

import (
	"slices"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// topic is what a signal is about, in the forms that learnings are compared with.
type topic struct {
	words []string   // key words
	plain []string   // those that are in no name
	names [][]string // the words of each name
}

// name is a word of code: it is one thing, however many words it is made of.
var name = lazyregexp.New("`[^`\n]+`|[A-Za-z_]*(?:[a-z][A-Z]|[A-Za-z]_|_[A-Za-z])\\w*")

func topicOf(s pipeline.Signal) topic {
	if s.About == nil {
		return topic{}
	}
	said := s.About.Message + " " + s.About.Rule
	t := topic{words: text.KeyWords(said)}
	for _, n := range name.FindAllString(s.About.Message, -1) {
		if w := text.KeyWords(n); len(w) > 0 {
			t.names = append(t.names, w)
		}
	}
	slices.SortFunc(t.names, slices.Compare)
	t.names = slices.CompactFunc(t.names, slices.Equal)
	t.plain = text.KeyWords(name.ReplaceAllString(s.About.Message, " ") + " " + s.About.Rule)
	return t
}

// related reports whether a signal about a finding says something about what a learning
// says: it is about the same finding; or of the same category (as far as both have one) and
// of the same rule in the learning's files, or about the same thing in other words. That it
// is of the same file and category is not enough: most of a file has nothing to do with it.
func related(s pipeline.Signal, about *topic, l *pipeline.Learning) bool {
	if s.Finding != "" && s.Finding == l.Finding {
		return true
	}
	category := categoryOf(s)
	if category != "" && l.Category != "" && category != l.Category {
		return false
	}
	if category != "" && category == l.Category && ruled(s.About, l) && s.File != "" && covers(l.Paths, s.File) {
		return true
	}
	return about.in(text.KeyWords(l.Content + " " + l.Context))
}

// in reports whether the topic is that of a text, by its key words: two things, and 40 % of
// the shorter of both, are common. A learning is longer than a finding's message. A name is
// one thing, and that both tell of one function says nothing of what they want of it.
func (t *topic) in(has []string) bool {
	enough := func(n, of int) bool { return float64(n) >= 0.4*float64(min(of, len(has))) }
	if n := text.Common(t.words, has); n < 2 || !enough(n, len(t.words)) {
		return false
	}
	plain, names := text.Common(t.plain, has), 0
	for _, n := range t.names {
		if text.Common(n, has) == len(n) {
			names++
		}
	}
	return max(plain, names) >= 2 && enough(plain+names, len(t.plain)+len(t.names))
}
