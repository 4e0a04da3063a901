package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// Digest returns the identity of a finding across iterations: 16 hex digits
// over category, rule, normalised message and the code it is about. Line numbers
// do not count, so a finding survives code that moved; where no code is known,
// the file stands in for it (lessons 2).
func (f *Finding) Digest() string {
	about := squash(f.Code)
	if about == "" {
		about = f.File
	}
	return digest("finding", string(f.Category), f.Rule, f.Criterion, normalise(f.Message), about)
}

// Digest returns the identity of a test failure across iterations:
// 16 hex digits over the test's name and the first line of its error, numbers
// left out, so that "got 3" and "got 4" are the same failure.
func (f *Failure) Digest() string {
	first := text.FirstLine(f.Error)
	return digest("failure", f.Test, normalise(first))
}

// ErrorKey returns what a failure's error is known by: 16 hex digits over all of it, but
// for what differs between two honest runs of one test (line numbers, addresses, times,
// ports, temporary paths). Unlike a fingerprint it tells "got 3" from "got 4": what a
// person lets pass is the one error that they were shown.
func (f *Failure) ErrorKey() string {
	s := strings.ToLower(f.Error)
	for _, v := range varying {
		s = v.find.ReplaceAllString(s, v.by)
	}
	return digest("error", strings.Join(strings.Fields(s), " "))
}

// varying is what differs between two runs of a test that fails in one way.
var varying = []struct {
	find *lazyregexp.Regexp
	by   string
}{
	{lazyregexp.New(`(/private)?/(tmp|var/tmp|var/folders|dev/shm)/[^\s'":,)\]]*`), "/tmp/#"},
	{lazyregexp.New(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "#uuid"},
	{lazyregexp.New(`\b0x[0-9a-f]+\b`), "0x#"},
	{lazyregexp.New(`\b\d{4}-\d\d-\d\d[t ]\d\d:\d\d(:\d\d([.,]\d+)?)?(z|[+-]\d\d:?\d\d)?`), "#time"},
	{lazyregexp.New(`\b\d\d:\d\d:\d\d([.,]\d+)?\b`), "#time"},
	{lazyregexp.New(`\b(\d+h)?(\d+m)?\d+(\.\d+)? ?(ns|µs|us|ms|s|secs?|seconds?|milliseconds?|minutes?)\b`), "#s"},
	{lazyregexp.New(`\b(localhost|127\.0\.0\.1|\[::1?\]|0\.0\.0\.0):\d+`), "$1:#"},
	{lazyregexp.New(`(\.[a-z]{1,6}):\d+(:\d+)?`), "$1:#"},
	{lazyregexp.New(`\b(line|lines|pid|process|goroutine) \d+`), "$1 #"},
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
