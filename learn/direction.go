package learn

import (
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/text"
)

// Stand is what a learning stands for, which says what a signal is evidence of.
type Stand string

// The stands.
const (
	StandAsk   Stand = "ask"   // reviews should ask for it
	StandAvoid Stand = "avoid" // reviews should not ask for it
	StandHow   Stand = "how"   // how something is done
	StandFact  Stand = "fact"  // how something is
)

// StandsTag begins the tag by which a learning says itself what it stands for.
const StandsTag = "stands:"

// Tag returns the tag that says it, "" for what is no stand.
func (s Stand) Tag() string {
	switch s {
	case StandAsk, StandAvoid, StandHow, StandFact:
		return StandsTag + string(s)
	}
	return ""
}

// Stands says what a learning stands for: what its tag says, else what follows from its
// source, else from its words. Of a tag that says to ask and words that say not to, or the
// other way round, the words count: a tag is one word of a model.
func Stands(l *pipeline.Learning) Stand {
	for _, t := range l.Tags {
		s := Stand(strings.TrimPrefix(t, StandsTag))
		if t != s.Tag() || t == "" {
			continue
		}
		if said := remarks(l.Content); s == StandAsk && said == StandAvoid || s == StandAvoid && said == StandAsk {
			return said
		}
		return s
	}
	switch l.Source {
	case pipeline.SourceDismissal:
		return StandAvoid
	case pipeline.SourceGap:
		return StandAsk
	case pipeline.SourceRewrite, pipeline.SourceEdit:
		return StandHow
	case pipeline.SourceRevert:
		return StandFact
	}
	switch said := remarks(l.Content); {
	case said != "":
		return said
	case l.Type == pipeline.LearningProcedural:
		return StandHow
	}
	return StandFact
}

// remarks is what the first sentence of a text that is about remarks says of them; "" when none is.
func remarks(content string) Stand {
	for s := range advices(content) {
		if said := remarksOn(s); said != "" {
			return said
		}
	}
	return ""
}

// obliges reports whether a text says how something has to be, not how it is.
func obliges(content string) bool {
	return slices.ContainsFunc(plainWords(content), func(w string) bool { return obliging[w] })
}

// Words by which advice speaks of remarks, not of code, and by which it says that
// something may stay as it is. The first are nouns, too: they count behind a word of
// introducing, or at the beginning.
var (
	remarking   = set(`ask flag report demand request suggest insist complain nag nitpick raise remind criticise criticize warn mention remark comment`)
	introducing = set(`not never always should must to please reviews reviewers review forge also dont lets people and or`)
	tolerating  = set(`fine ok okay acceptable permitted allowed intentional intentionally deliberate deliberately optional unnecessary needless wontfix tolerated
		dismiss dismissed dismisses unwanted ignore harmless noise noisy silent`)
	obliging   = set(`always never must should need needs require requires required ensure prefer every`)
	tolerances = phrases("by design", "on purpose", "no need", "not needed", "not necessary", "not required", "false positive",
		"false positives", "not matter", "not care",
		"not want", "as is", "not an issue", "not a problem", "be ignored", "not a bug")
)

func phrases(list ...string) (out [][]string) {
	for _, p := range list {
		out = append(out, strings.Fields(p))
	}
	return out
}

// says reports whether one of the phrases stands in the words.
func says(w []string, list [][]string) bool {
	for _, p := range list {
		for i := 0; i+len(p) <= len(w); i++ {
			if slices.Equal(w[i:i+len(p)], p) {
				return true
			}
		}
	}
	return false
}

// advices are the sentences of a text; what follows a semicolon is one, too.
func advices(content string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for s := range strings.FieldsFuncSeq(content, func(c rune) bool { return strings.ContainsRune(".;!?\n", c) }) {
			if strings.TrimSpace(s) != "" && !yield(s) {
				return
			}
		}
	}
}

// spelt takes contractions apart, so that a "not" is a word.
var spelt = strings.NewReplacer("’", "'", "won't", "will not", "can't", "can not", "cannot", "can not", "n't", " not")

func plainWords(s string) []string { return text.Words(spelt.Replace(strings.ToLower(s))) }

// remarksOn says whether a sentence is about what reviews should or should not ask for;
// "" when it is not.
func remarksOn(sentence string) Stand {
	w := plainWords(sentence)
	if says(w, tolerances) {
		return StandAvoid
	}
	negated := func(i int) bool {
		return slices.ContainsFunc(w[max(0, i-3):i], func(x string) bool { return negative[x] })
	}
	for i, x := range w {
		remark := remarking[x] && (i == 0 || introducing[w[i-1]])
		switch {
		case tolerating[x] && negated(i), remark && !negated(i):
			return StandAsk
		case tolerating[x], remark:
			return StandAvoid
		}
	}
	return ""
}

// Words by which a finding asks for less; else it asks for more, or says nothing of it.
var (
	lessening = set(`avoid remove removed drop unused unnecessary redundant duplicate duplicated needless leaks leak panics panic exposes shouldnt mustnt dont leftover dead superfluous excessive`)
	wanting   = set(`missing misses lacks lack lacking without no add needs need undocumented untested unchecked unhandled uncovered ignored never not require required use wrap prefer`)
	bans      = phrases("should not", "must not", "do not", "too many", "too long", "too much", "no longer", "not be", "not used", "never used", "not needed")
)

// demand says whether a finding asks for something (1), against it (-1), or does not tell.
func demand(message string) int {
	w := plainWords(message)
	if says(w, bans) {
		return -1
	}
	for _, x := range w {
		switch {
		case lessening[x]:
			return -1
		case wanting[x]:
			return 1
		}
	}
	return 0
}

// direction says whether a learning wants what a finding asks for (1), the opposite
// (-1), or whether that is not known. about are the finding's key words.
func direction(f *pipeline.Finding, about []string, l *pipeline.Learning) int {
	stand := Stands(l)
	switch {
	case stand == StandAvoid:
		return -1
	case stand == StandAsk, l.Source == pipeline.SourceRewrite, l.Source == pipeline.SourceEdit:
		return 1
	}
	advice, most := l.Content, 0
	for s := range advices(l.Content) {
		if n := text.Common(about, text.KeyWords(s)); n > most {
			advice, most = s, n
		}
	}
	asked := 0
	if f != nil {
		asked = demand(f.Message)
	}
	_, sign, _ := polarity(spelt.Replace(strings.ToLower(advice)))
	switch {
	case sign > 0 && asked >= 0, sign < 0 && asked < 0:
		return 1
	case sign < 0 && asked > 0:
		return -1
	}
	return 0
}
