package learn

import (
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

// Stands says what a learning stands for: what its tag says, which a model gave it, else what
// follows from its source, else from its type.
func Stands(l *pipeline.Learning) Stand {
	for _, t := range l.Tags {
		if s := Stand(strings.TrimPrefix(t, StandsTag)); t != "" && t == s.Tag() {
			return s
		}
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
	if l.Type == pipeline.LearningProcedural {
		return StandHow
	}
	return StandFact
}

// direction says whether a learning wants what a related finding asks for (1), the opposite
// (-1), or whether that is not known: a fact wants nothing.
func direction(l *pipeline.Learning) int {
	switch Stands(l) {
	case StandAvoid:
		return -1
	case StandAsk, StandHow:
		return 1
	}
	return 0
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
