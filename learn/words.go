package learn

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"
	"unicode"

	"forge/pipeline"
)

// stop are words that say nothing about a subject.
var stop = set(`a about after all also an and any are as at be because been before being but by can code could did do does each else for from
	had has have here how i if in into is it its just like line lines made make may might more most no not of off on one only or other our out over
	people please should so some such than that the their them then there these they this those to too up us was we were what when where which
	while who why will with would you your file files forge finding`)

func set(words string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
}

// words splits a text into lower-case words; identifiers are split where their
// case changes, so that "parseURL" and "parse the url" have words in common.
func words(s string) []string {
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
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '\'' || unicode.IsUpper(c) && unicode.IsLower(prev) {
			flush()
		}
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			b.WriteRune(c)
		}
		prev = c
	}
	flush()
	return out
}

// keyWords returns the words of a text that say what it is about, each once,
// sorted, with the commonest endings of English taken off.
func keyWords(s string) []string {
	var out []string
	for _, w := range words(s) {
		if len(w) > 1 && !stop[w] {
			out = append(out, stem(w))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func stem(w string) string {
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

// shared counts what two sorted lists have in common.
func shared(a, b []string) (n int) {
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

// jaccard is the share of what two sorted lists have in common, 0 to 1.
func jaccard(a, b []string) float64 {
	n := shared(a, b)
	if n == 0 {
		return 0
	}
	return float64(n) / float64(len(a)+len(b)-n)
}

// alike reports whether two messages say the same in other words: at least half
// of their key words, and two of them, are common.
func alike(a, b string) bool { return alikeWords(keyWords(a), keyWords(b)) }

func alikeWords(x, y []string) bool {
	return slices.Equal(x, y) && len(x) > 0 || shared(x, y) >= 2 && jaccard(x, y) >= 0.5
}

// covers reports whether a learning about paths is about a file: it names the
// file, a folder above it, or a pattern that matches it.
func covers(paths []string, file string) bool {
	for _, p := range paths {
		p = strings.TrimSuffix(strings.TrimSuffix(p, "**"), "/")
		if p == "" {
			continue
		}
		if p == file || strings.HasPrefix(file, p+"/") {
			return true
		}
		if ok, err := path.Match(p, file); err == nil && ok {
			return true
		}
	}
	return false
}

// CodeDigest returns the identity of lines of code, 16 hex digits: indentation,
// trailing space and empty lines do not count. It is empty for no code.
func CodeDigest(code string) string {
	var lines []string
	for l := range strings.SplitSeq(code, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	h := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(h[:8])
}

// Limits of what is remembered, in bytes: a prompt holds several learnings.
const (
	maxContent = 2000
	maxCode    = 800
	maxField   = 300
)

// tidy makes a text fit to be remembered: no secret, nothing that people do not
// see (HTML comments, characters without a width), at most limit bytes.
func tidy(s string, limit int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	for {
		from := strings.Index(s, "<!--")
		if from < 0 {
			break
		}
		to := strings.Index(s[from:], "-->")
		if to < 0 {
			s = s[:from]
			break
		}
		s = s[:from] + s[from+to+len("-->"):]
	}
	s = strings.Map(func(c rune) rune {
		if c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || unicode.Is(unicode.Variation_Selector, c)) {
			return -1
		}
		return c
	}, s)
	return clip(strings.TrimSpace(pipeline.Scrub(s)), limit)
}

// clip shortens s to at most n bytes, on a rune's boundary.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return strings.TrimSpace(s[:n]) + "…"
}

// Tidy makes a text fit to be remembered: without what looks like a secret and
// without what people do not see, at most limit bytes.
func Tidy(s string, limit int) string { return tidy(s, limit) }
