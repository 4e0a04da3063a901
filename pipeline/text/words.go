package text

import (
	"slices"
	"strings"
	"unicode"
)

// stop are words that say nothing about a subject.
var stop = wordSet(`a about after all also an and any are as at be because been before being but by can code could did do does each else for from
	had has have here how i if in into is it its just like line lines made make may might more most no not of off on one only or other our out over
	people please should so some such than that the their them then there these they this those to too up us was we were what when where which
	while who why will with would you your file files forge finding`)

func wordSet(words string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
}

// maxWord is where a word is cut, in bytes: longer ones are digests and encoded data.
const maxWord = 60

// Words splits a text into lower-case words of letters and digits; identifiers are
// split where their case changes, so that "parseURL" and "parse the url" have
// words in common, and an apostrophe joins.
func Words(s string) []string {
	var out []string
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			out = append(out, strings.ToLower(b.String()))
			b.Reset()
		}
	}
	prev := ' '
	for _, c := range s {
		word := unicode.IsLetter(c) || unicode.IsDigit(c)
		if !word && c != '\'' || unicode.IsUpper(c) && unicode.IsLower(prev) || b.Len() > maxWord {
			flush()
		}
		if word {
			b.WriteRune(c)
		}
		prev = c
	}
	flush()
	return out
}

// KeyWords returns the words of a text that say what it is about, each once,
// sorted, as their stems.
func KeyWords(s string) []string {
	var out []string
	for _, w := range Words(s) {
		if len(w) > 1 && !stop[w] {
			out = append(out, Stem(w))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Stem takes the commonest endings of English off a word.
func Stem(w string) string {
	for _, end := range []string{"ings", "ing", "ies", "ed", "es", "s"} {
		if cut, ok := strings.CutSuffix(w, end); ok && len(cut) >= 3 && !strings.HasSuffix(w, "ss") {
			return strings.TrimSuffix(cut, "e")
		}
	}
	if len(w) > 3 {
		return strings.TrimSuffix(w, "e")
	}
	return w
}

// Common counts what two sorted lists have in common.
func Common(a, b []string) (n int) {
	for i, k := 0, 0; i < len(a) && k < len(b); {
		switch {
		case a[i] < b[k]:
			i++
		case a[i] > b[k]:
			k++
		default:
			n, i, k = n+1, i+1, k+1
		}
	}
	return n
}

// Jaccard is the share of what two sorted lists have in common, 0 to 1.
func Jaccard(a, b []string) float64 {
	n := Common(a, b)
	if n == 0 {
		return 0
	}
	return float64(n) / float64(len(a)+len(b)-n)
}

// Alike reports whether two lists of key words ([KeyWords]) say the same in other
// words: at least half of them, and two of them, are common.
func Alike(a, b []string) bool {
	return slices.Equal(a, b) && len(a) > 0 || Common(a, b) >= 2 && Jaccard(a, b) >= 0.5
}
