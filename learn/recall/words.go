package recall

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Longer words are digests, encoded data or mistakes; no one asks for them.
const (
	maxPart  = 40 // bytes
	maxWhole = 80
)

// eachTerm calls f with the terms of a text, in order: the stems of the parts of
// each word or identifier, and for an identifier of several parts also the whole,
// marked by a "=" in front, which says more than its parts. shown is the term as a
// person would write it.
//
//	parseHTTPRequest2 → pars(parse) http(http) request(request) =parsehttprequest2
func eachTerm(s string, f func(term, shown string)) {
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool { return !isWord(r) }) {
		identifier(w, f)
	}
}

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// identifier calls f with the parts of one identifier, then with the whole.
func identifier(w string, f func(term, shown string)) {
	parts, start := 0, 0
	cut := func(end int) {
		if part := w[start:end]; part != "" {
			parts++
			if utf8.RuneCountInString(part) > 1 && len(part) <= maxPart {
				part = strings.ToLower(part)
				f(stem(part), part)
			}
		}
		start = end
	}
	var before rune // the rune before the one at i
	at := 0         // where it stands
	for i, r := range w {
		switch {
		case r == '_':
			cut(i)
			start = i + 1
		case i == start:
		case unicode.IsUpper(r) && !unicode.IsUpper(before): // camel|Case
			cut(i)
		case unicode.IsLower(r) && unicode.IsUpper(before) && at > start: // HTTP|Request
			cut(at)
		case unicode.IsDigit(r) != unicode.IsDigit(before): // v|2
			cut(i)
		}
		before, at = r, i
	}
	cut(len(w))
	if parts > 1 && len(w) <= maxWhole {
		f("="+strings.ToLower(strings.ReplaceAll(w, "_", "")), w)
	}
}

// stem takes the commonest English endings off, so that "retries", "retried" and
// "retry" meet. It need not be right, only the same for words that belong together.
func stem(w string) string {
	if n := len(w); n > 4 && strings.HasSuffix(w, "ies") {
		return w[:n-3] + "y"
	} else if n > 4 && strings.HasSuffix(w, "ied") {
		return w[:n-3] + "y"
	}
	if n := len(w); n > 3 && w[n-1] == 's' && !strings.ContainsRune("sui", rune(w[n-2])) {
		w = w[:n-1]
	}
	switch n := len(w); {
	case n > 5 && strings.HasSuffix(w, "ing"):
		w = w[:n-3]
	case n > 4 && strings.HasSuffix(w, "ed"):
		w = w[:n-2]
	}
	if n := len(w); n > 3 && w[n-1] == 'e' {
		w = w[:n-1]
	}
	if n := len(w); n > 3 && w[n-1] == w[n-2] && w[n-1] < utf8.RuneSelf {
		w = w[:n-1]
	}
	return w
}
