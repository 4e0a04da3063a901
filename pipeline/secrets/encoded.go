package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// shortestRun is how many characters in base64 or hexadecimal are looked at.
const shortestRun = 24

// encoded returns the credentials that a text holds in base64 or in hexadecimal: those
// whose shape is so much their own that chance does not make it.
func encoded(block string) []match {
	var found []match
	for at := 0; at < len(block); {
		if !inBase64(block[at]) {
			at++
			continue
		}
		start := at
		run, end := encodedRun(block, at)
		if at = end; len(run) < shortestRun {
			continue
		}
		if name, rule := decoded(run); rule != "" {
			found = append(found, match{rule: rule + " in " + name, start: start, end: end})
		}
	}
	return found
}

// decoded returns the first rule that finds something in what a run stands for, and the
// coding.
func decoded(run string) (coding, rule string) {
	name, text := "base64", ""
	if raw, err := hex.DecodeString(run); err == nil {
		name, text = "hexadecimal", string(raw)
	} else {
		text = unbase64(run)
	}
	if len(text) < 16 || !legible(text) {
		return "", ""
	}
	if in := shapes(text, true); len(in) > 0 {
		return name, in[0].rule
	}
	return "", ""
}

func inBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_'
}

// foldedLine is how long lines are at least that base64 is broken into.
const foldedLine = 60

// encodedRun returns the characters of base64 from a place on, and where they end. Long
// lines of them are one, with the shorter one that ends them.
func encodedRun(block string, at int) (run string, end int) {
	var joined strings.Builder
	for {
		first := at
		for at < len(block) && inBase64(block[at]) {
			at++
		}
		joined.WriteString(block[first:at])
		end = at
		if at-first < foldedLine || end == len(block) || block[end] != '\n' && block[end] != '\r' {
			return joined.String(), end
		}
		for at < len(block) && strings.IndexByte("\r\n \t", block[at]) >= 0 {
			at++
		}
	}
}

func unbase64(s string) string {
	s = strings.NewReplacer("-", "+", "_", "/").Replace(s)
	if len(s)%4 == 1 {
		s = s[:len(s)-1]
	}
	raw, _ := base64.RawStdEncoding.DecodeString(s)
	return string(raw)
}

// legible reports whether bytes are text in ASCII.
func legible(s string) bool {
	bad := 0
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\r' && c != '\t' || c >= 0x7f {
			bad++
		}
	}
	return bad*50 <= len(s)
}
