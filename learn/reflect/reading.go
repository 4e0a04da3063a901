package reflect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"forge/learn"
	"forge/pipeline/record"
	"forge/pipeline/text"
)

// ReadingForm is what a model is told about the form in which it says what an answer means.
const ReadingForm = `Answer with one JSON object and nothing else:
{"meaning": "agrees|refuses|done elsewhere|postponed|question|unclear", "words": "..."}
words are the words of the answer that say so, copied exactly; empty when it is unclear.`

// Quotes say something, and are no essays.
const (
	leastQuote = 2   // characters
	mostQuote  = 400 // bytes
)

// ParseReading takes apart what a model says that some words mean. What is not of the form,
// not one of the meanings, or does not rest on words that stand there, is unclear: that the
// model was asked is kept all the same.
func ParseReading(answer, words string) record.Reading {
	r := record.Reading{Meaning: record.MeaningUnclear, Digest: record.TextDigest(words)}
	var doc struct {
		Meaning record.Meaning `json:"meaning"`
		Words   string         `json:"words"`
	}
	body := unfence(strings.TrimSpace(answer))
	switch err := json.Unmarshal([]byte(body), &doc); {
	case len(body) > maxAnswer:
		r.Why = fmt.Sprintf("an answer of %d bytes", len(body))
	case err != nil:
		r.Why = "not the JSON that was asked for"
	case !slices.Contains(record.Meanings(), doc.Meaning):
		r.Why = fmt.Sprintf("no meaning: %q", text.Clip(learn.Tidy(string(doc.Meaning), 60), 40))
	case doc.Meaning == record.MeaningUnclear:
	case !stands(doc.Words, words):
		r.Why = "its words do not stand in the answer"
	default:
		r.Meaning, r.Quote = doc.Meaning, text.OneLine(doc.Words)
	}
	return r
}

// stands reports whether a quote stands in a text, whatever the white space between its
// words is.
func stands(quote, in string) bool {
	quote = text.OneLine(quote)
	return len([]rune(quote)) >= leastQuote && len(quote) <= mostQuote && strings.Contains(text.OneLine(in), quote)
}
