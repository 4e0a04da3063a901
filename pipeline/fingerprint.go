package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
)

// Fingerprint returns the identity of a finding across iterations: 16 hex digits
// over category, rule, normalised message and the code it is about. Line numbers
// do not count, so a finding survives code that moved; where no code is known,
// the file stands in for it (lessons 2).
func Fingerprint(f *Finding) string {
	about := squash(f.Code)
	if about == "" {
		about = f.File
	}
	return digest("finding", f.Category, f.Rule, f.Criterion, normalise(f.Message), about)
}

// FailureFingerprint returns the identity of a test failure across iterations:
// 16 hex digits over the test's name and the first line of its error, numbers
// left out, so that "got 3" and "got 4" are the same failure.
func FailureFingerprint(f *Failure) string {
	first, _, _ := strings.Cut(strings.TrimSpace(f.Error), "\n")
	return digest("failure", f.Test, normalise(first))
}

// digest hashes parts with their lengths, so that no two lists of parts collide
// by concatenation.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		for i := range n {
			n[i] = byte(len(p) >> (8 * i))
		}
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// normalise lowers a message, turns each run of digits into '#', and each run of
// anything that is neither letter nor digit into one space.
func normalise(s string) string {
	var b strings.Builder
	last := ' '
	for _, c := range strings.ToLower(s) {
		switch {
		case unicode.IsDigit(c):
			c = '#'
		case !unicode.IsLetter(c):
			c = ' '
		}
		if (c == ' ' || c == '#') && c == last {
			continue
		}
		b.WriteRune(c)
		last = c
	}
	return strings.TrimSpace(b.String())
}

// squash drops indentation, trailing space and empty lines: a reindented line is
// the same code.
func squash(code string) string {
	var lines []string
	for l := range strings.SplitSeq(code, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "\n")
}
