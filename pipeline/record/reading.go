package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Meaning is what an answer to a finding says about it.
type Meaning string

// The meanings: there are no others.
const (
	MeaningAgrees    Meaning = "agrees"
	MeaningRefuses   Meaning = "refuses"
	MeaningElsewhere Meaning = "done elsewhere"
	MeaningPostponed Meaning = "postponed"
	MeaningQuestion  Meaning = "question"
	MeaningUnclear   Meaning = "unclear"
)

// Meanings are all of them.
func Meanings() []Meaning {
	return []Meaning{MeaningAgrees, MeaningRefuses, MeaningElsewhere, MeaningPostponed, MeaningQuestion, MeaningUnclear}
}

// Reading is what a model read in a person's answer.
type Reading struct {
	Meaning Meaning `json:"meaning"`
	Quote   string  `json:"quote,omitempty"` // the words that it rests on, as they stand in the answer; "" for unclear
	Digest  string  `json:"digest"`          // of the text that was read: another text is read anew
	Why     string  `json:"why,omitempty"`   // of unclear: why the model's answer was not taken
}

// ReadKey is the key of the signal that holds what was read in an answer, by its comment.
func ReadKey(reply int64) string { return fmt.Sprintf("read/%d", reply) }

// TextDigest identifies a text that is read.
func TextDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
