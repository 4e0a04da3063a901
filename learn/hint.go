package learn

import (
	"fmt"
	"strings"

	"forge/pipeline"
)

// keyWord begins the key of the evidence that is a person's word for a learning.
const keyWord = "remember/"

// WordKey makes a person's word for a learning one piece of evidence.
func WordKey(a pipeline.Actor) string { return fmt.Sprint(keyWord, a.ID) }

// IsWord reports whether a piece of evidence is a person's word, and holds.
func IsWord(e pipeline.Evidence) bool { return !e.Off && strings.HasPrefix(e.Key, keyWord) }

// Borne reports whether a person with write access said that what a run taught itself holds: it
// is their word since.
func Borne(l *pipeline.Learning) bool {
	return l.Source == pipeline.SourceReflection && l.Author.ID != 0
}

// Told reports whether whoever plans, makes or judges a change is told a learning. What a run
// says of itself is a model's reading of texts that may be anybody's, in whatever words: those
// who judge are told it only when a person with write access has said so, however many runs
// say the same, and of a run whose task nobody with write access wrote, nobody is told before.
func Told(l *pipeline.Learning, judges bool) bool {
	return l.Source != pipeline.SourceReflection || l.Weight > 0 && !judges || Borne(l)
}
