package secrets

import (
	"math"
	"strings"
)

// madeUp are words that stand where a secret should be, in documentation and tests.
var madeUp = []string{
	"example", "sample", "placeholder", "changeme", "change_me", "change-me", "your", "dummy", "redacted", "insert", "replace", "fake", "mock",
	"notreal", "not-real", "not_real", "invalid", "foobar", "deadbeef", "secretsecret", "lorem", "****", "....", "…", "xxxx", "test",
	"supersecret", "mysecret", "hunter2", "correcthorse",
	"2YotnFZFEjr1zCsicMWpAA", "tGzv3JOkF0XG5Qx2TlKWIA", "gX1fBat3bV", "7Fjfp0ZBr1KtDRbnfVdmIw", // RFC 6749's
}

// plausible reports whether a value could be a secret that was made by chance, as
// those of providers are. least is the entropy that it must have, in bits a
// character.
func plausible(value string, least float64) bool {
	// In one case throughout, or as a name: chance does not keep to that.
	for _, w := range madeUp {
		if hasWord(value, w) || hasWord(value, strings.ToUpper(w)) || hasWord(value, strings.ToUpper(w[:1])+w[1:]) {
			return false
		}
	}
	return !monotonous(strings.ToLower(value)) && entropy(value) >= least
}

// hasWord reports whether a value contains a word. A short one must stand for
// itself: "test" is in every thousandth key of letters and digits, by chance.
func hasWord(value, word string) bool {
	for at := 0; ; {
		i := strings.Index(value[at:], word)
		if i < 0 {
			return false
		}
		at += i
		end := at + len(word)
		if len(word) > 4 || (at == 0 || !joins(value[at-1])) && (end == len(value) || !joins(value[end])) {
			return true
		}
		at++
	}
}

// joins reports whether a character next to a word makes it a part of another.
func joins(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// monotonous reports whether a value has a run of one character, of neighbours in
// the alphabet, or of a short pattern, that chance does not make.
func monotonous(s string) bool {
	const most = 7
	same, up, down, pair, three := 1, 1, 1, 1, 1
	count := func(n *int, goes bool) bool {
		if !goes {
			*n = 1
			return false
		}
		*n++
		return *n >= most
	}
	for i := 1; i < len(s); i++ {
		a, b := s[i-1], s[i]
		// 9 is followed by 0, as in 1234567890.
		next := b == a+1 || a == '9' && b == '0'
		if count(&same, a == b) || count(&up, next) || count(&down, a == b+1) {
			return true
		}
		if i >= 2 && count(&pair, s[i] == s[i-2]) || i >= 3 && count(&three, s[i] == s[i-3]) {
			return true
		}
	}
	return false
}

// entropy is Shannon's, in bits a character, over the bytes of a value.
func entropy(s string) float64 {
	if s == "" {
		return 0
	}
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	var bits float64
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// classes reports which kinds of characters a value has.
func classes(s string) (lower, upper, digit, other bool) {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z':
			lower = true
		case c >= 'A' && c <= 'Z':
			upper = true
		case c >= '0' && c <= '9':
			digit = true
		default:
			other = true
		}
	}
	return lower, upper, digit, other
}
