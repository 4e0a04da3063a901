package learn

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"
	"unicode"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

func set(words string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
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
	return text.Within(strings.TrimSpace(text.Scrub(s)), limit)
}

// Tidy makes a text fit to be remembered: without what looks like a secret and
// without what people do not see, at most limit bytes.
func Tidy(s string, limit int) string { return tidy(s, limit) }

var (
	hyphen = lazyregexp.New(`(\pL)[-‐‑](\pL)`)
	stops  = lazyregexp.New(`[.,;:!。、！]+(\s|$)`)
)

// Worded is a text as its words tell it, whatever their case and punctuation.
func Worded(content string) string {
	content = stops.ReplaceAllString(hyphen.ReplaceAllString(strings.ToLower(content), "$1 $2"), " ")
	return strings.Join(strings.Fields(content), " ")
}
