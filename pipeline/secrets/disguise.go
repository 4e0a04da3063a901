package secrets

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"io"
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"

	"forge/pipeline/lazyregexp"
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
	return append(append(found, backwards(block)...), inPieces(block)...)
}

var (
	escaped  = lazyregexp.New(`\\u\{?([0-9a-fA-F]{2,6})\}?|\\x([0-9a-fA-F]{2})|%([0-9a-fA-F]{2})`)
	adjacent = lazyregexp.New(`["'` + "`" + `]\s*(?:\\\n|[+.&~,]|\.\.|<>)?\s*[frbu]?["'` + "`" + `]`)
)

// inPieces returns the credentials that a program or an address spells in escapes, or
// puts together from several strings.
func inPieces(block string) []match {
	var found []match
	for name, of := range map[string]*lazyregexp.Regexp{"escapes": escaped, "pieces": adjacent} {
		all := of.FindAllStringSubmatchIndex(block, -1)
		if len(all) == 0 {
			continue
		}
		var b strings.Builder
		var from []int // of what was taken out, where the text goes on
		var at []int
		last := 0
		for _, m := range all {
			b.WriteString(block[last:m[0]])
			for g := 2; g < len(m); g += 2 {
				if m[g] < 0 {
					continue
				}
				if n, err := strconv.ParseUint(block[m[g]:m[g+1]], 16, 32); err == nil && n >= ' ' && n < 0x7f {
					b.WriteByte(byte(n))
				} else {
					b.WriteByte(' ')
				}
			}
			last = m[1]
			from, at = append(from, b.Len()), append(at, last)
		}
		b.WriteString(block[last:])
		place := func(i int) int { // in the block
			k := sort.SearchInts(from, i+1)
			if k == 0 {
				return i
			}
			return at[k-1] + i - from[k-1]
		}
		for _, m := range shapes(b.String(), true) {
			if start, end := place(m.start), place(m.end-1)+1; end-start != m.end-m.start { // else it stands there as it is
				found = append(found, match{rule: m.rule + " in " + name, start: start, end: end})
			}
		}
	}
	return found
}

// mostInflated is how much of a compressed file is looked at.
const mostInflated = 8 << 20

// plain is a file's text where it is stored in another form: in UTF-16, or compressed.
func plain(content []byte) []byte {
	switch {
	case bytes.HasPrefix(content, []byte{0x1f, 0x8b}):
		if r, err := gzip.NewReader(bytes.NewReader(content)); err == nil {
			if text, _ := io.ReadAll(io.LimitReader(r, mostInflated)); len(text) > 0 {
				return text
			}
		}
	case len(content) >= 32 && bytes.Count(content[:32], []byte{0}) >= 12:
		big := bytes.HasPrefix(content, []byte{0xfe, 0xff}) || content[0] == 0
		units := make([]uint16, 0, len(content)/2)
		for i := 0; i+1 < len(content); i += 2 {
			u := uint16(content[i]) | uint16(content[i+1])<<8
			if big {
				u = u<<8 | u>>8
			}
			units = append(units, u)
		}
		return []byte(string(utf16.Decode(units)))
	}
	return content
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
