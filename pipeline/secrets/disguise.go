package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// shortestRun is how many characters in base64 or hexadecimal are looked at.
const shortestRun = 24

// disguised returns the credentials that a text holds in base64, in hexadecimal, or
// backwards: those whose shape is so much their own that chance does not make it.
func disguised(block string) []match {
	var found []match
	for at := 0; at < len(block); {
		if !inBase64(block[at]) {
			at++
			continue
		}
		start := at
		run, end := encodedRun(block, at)
		at = end
		if len(run) < shortestRun {
			continue
		}
		name, text := "hexadecimal", ""
		if raw, err := hex.DecodeString(run); err == nil {
			text = string(raw)
		} else {
			name, text = "base64", unbase64(run)
		}
		if len(text) < 16 || !legible(text) {
			continue
		}
		if in := shapes(text, true); len(in) > 0 {
			found = append(found, match{rule: in[0].rule + " in " + name, start: start, end: end})
		}
	}
	return append(found, backwards(block)...)
}

func inBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_'
}

// encodedRun returns the characters of base64 from a place on, and where they end.
// Long lines of them are one.
func encodedRun(block string, at int) (run string, end int) {
	var joined strings.Builder
	for {
		start := at
		for at < len(block) && inBase64(block[at]) {
			at++
		}
		end = at
		joined.WriteString(block[start:end])
		if end-start < 60 {
			break
		}
		for at < len(block) && strings.IndexByte("\r\n \t", block[at]) >= 0 {
			at++
		}
		if at == end || at >= len(block) || !inBase64(block[at]) || !strings.Contains(block[end:at], "\n") {
			break
		}
	}
	return joined.String(), end
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

// turnedKeys are the rules' keys backwards, where they are long enough to be rare.
var turnedKeys = func() [][]string {
	all := make([][]string, len(rules))
	for i, r := range rules {
		for _, k := range r.keys {
			if len(k) >= 3 && !r.weak {
				all[i] = append(all[i], reversed(k))
			}
		}
	}
	return all
}()

// backwards looks for credentials that were turned around.
func backwards(block string) []match {
	var turned string
	var found []match
	for i := range rules {
		if !containsAny(block, turnedKeys[i]) {
			continue
		}
		if turned == "" {
			turned = reversed(block)
		}
		for _, m := range rules[i].match(turned) {
			found = append(found, match{rule: m.rule + " backwards", start: len(block) - m.end, end: len(block) - m.start})
		}
	}
	return found
}
