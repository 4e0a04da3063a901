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

func set(words string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
}

// keyWords returns the words of a text that say what it is about, each once,
// sorted. The store's index has the same: see [pipeline.KeyWords].
func keyWords(s string) []string { return pipeline.KeyWords(s) }

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
