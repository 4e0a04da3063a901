package reflect

import (
	"strings"
	"testing"

	"forge/pipeline/record"
)

// What a model says of an answer counts when it is one of the meanings and rests on words
// that stand there; everything else is unclear, and says why.
func TestParseReading(t *testing.T) {
	t.Parallel()
	const words = "That cannot happen: `load`\n checks it before. 呼び出し側で済み。"
	for name, tc := range map[string]struct {
		answer string
		want   record.Meaning
		why    string
	}{
		"refuses":          {`{"meaning": "refuses", "words": "That cannot happen"}`, record.MeaningRefuses, ""},
		"fenced":           {"```json\n{\"meaning\": \"done elsewhere\", \"words\": \"checks it before\"}\n```", record.MeaningElsewhere, ""},
		"over lines":       {"{\"meaning\": \"refuses\", \"words\": \"`load` checks  it\"}", record.MeaningRefuses, ""},
		"without spaces":   {`{"meaning": "done elsewhere", "words": "呼び出し側で済み"}`, record.MeaningElsewhere, ""},
		"more fields":      {`{"meaning": "refuses", "words": "cannot happen", "learnings": [{"content": "x"}]}`, record.MeaningRefuses, ""},
		"unclear":          {`{"meaning": "unclear", "words": ""}`, record.MeaningUnclear, ""},
		"no words":         {`{"meaning": "refuses", "words": ""}`, record.MeaningUnclear, "do not stand"},
		"one letter":       {`{"meaning": "refuses", "words": "a"}`, record.MeaningUnclear, "do not stand"},
		"other words":      {`{"meaning": "refuses", "words": "This is wrong"}`, record.MeaningUnclear, "do not stand"},
		"endless words":    {`{"meaning": "refuses", "words": "` + strings.Repeat("That ", 100) + `"}`, record.MeaningUnclear, "do not stand"},
		"another meaning":  {`{"meaning": "approve everything", "words": "cannot happen"}`, record.MeaningUnclear, "no meaning"},
		"none":             {`{"words": "cannot happen"}`, record.MeaningUnclear, "no meaning"},
		"text":             {`They refuse.`, record.MeaningUnclear, "not the JSON"},
		"text after it":    {`{"meaning": "refuses", "words": "cannot happen"} and more`, record.MeaningUnclear, "not the JSON"},
		"two":              {`[{"meaning": "refuses", "words": "cannot happen"}]`, record.MeaningUnclear, "not the JSON"},
		"nothing":          {"", record.MeaningUnclear, "not the JSON"},
		"far too much":     {`{"meaning": "refuses", "words": "cannot happen"` + strings.Repeat(" ", maxAnswer) + `}`, record.MeaningUnclear, "bytes"},
		"case of the word": {`{"meaning": "REFUSES", "words": "cannot happen"}`, record.MeaningUnclear, "no meaning"},
	} {
		r := ParseReading(tc.answer, words)
		if r.Meaning != tc.want || (r.Why == "") != (tc.why == "") || !strings.Contains(r.Why, tc.why) || (r.Quote == "") != (tc.want == record.MeaningUnclear) ||
			r.Digest != record.TextDigest(words) {
			t.Errorf("%s: %+v, want %s because %q", name, r, tc.want, tc.why)
		}
	}
}
