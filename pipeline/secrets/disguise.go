package secrets

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"sort"
	"strconv"
	"strings"

	"forge/pipeline/lazyregexp"
)

// shortestRun is how many characters in base64 or hexadecimal are looked at.
const shortestRun = 24

// disguised returns the credentials that a text holds in base64 (also twice, or packed
// before), in base32, in hexadecimal, as numbers or single characters, or backwards:
// those whose shape is so much their own that chance does not make it.
func disguised(block string) []match {
	found := encoded(block, 2)
	return append(append(found, backwards(block)...), inPieces(block)...)
}

// encoded looks at what can be decoded, so often within one another.
func encoded(block string, depth int) []match {
	var found []match
	var list spelled
	for at := 0; at < len(block); {
		if !inBase64(block[at]) {
			at++
			continue
		}
		start := at
		run, end := encodedRun(block, at)
		at = end
		if len(run) < shortestRun {
			found = list.add(block, run, start, end, found)
			continue
		}
		if name, rule := decoded(run, depth); rule != "" {
			found = append(found, match{rule: rule + " in " + name, start: start, end: end})
		}
	}
	return list.flush(block, found)
}

// decoded returns the first rule that finds something in what a run stands for, and the
// coding.
func decoded(run string, depth int) (coding, rule string) {
	name, text := "hexadecimal", ""
	if dashed := strings.ReplaceAll(run, "-", ""); len(run) > 5 && run[2] == '-' && run[5] == '-' {
		run = dashed
	} else if run[1] == '-' && run[3] == '-' {
		text, name = dashed, "pieces"
	}
	if text == "" {
		if raw, err := hex.DecodeString(run); err == nil {
			text = string(raw)
		} else if raw, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(run); err == nil && legible(string(raw)) {
			name, text = "base32", string(raw)
		} else {
			name, text = "base64", unbase64(run)
		}
	}
	if len(text) < 16 {
		return "", ""
	}
	if !legible(text) {
		u := unpacker{left: min(mostDecoded, mostRatio*len(text))}
		in := u.unpack([]byte(text), 2)
		if in == nil || !legible(string(in)) {
			return "", ""
		}
		name, text = "packed "+name, string(in)
	}
	if in := shapes(text, true); len(in) > 0 {
		return name, in[0].rule
	}
	if depth > 1 {
		if in := encoded(text, depth-1); len(in) > 0 {
			return name, in[0].rule
		}
	}
	return "", ""
}

// mostDecoded is how much is looked at of what is packed within a text.
const mostDecoded = 1 << 20

// spelled collects what spells a text one character at a time: numbers, pairs of
// hexadecimal digits, single letters.
type spelled struct {
	hex, decimal, single []byte
	start, end           int
}

const (
	widestGap   = 16 // between two of them
	leastSpelt  = 16
	mostOfThese = 3
)

// add takes a run; one that is no part of a list ends it.
func (s *spelled) add(block, run string, start, end int, found []match) []match {
	if len(run) > 4 || s.end > 0 && start-s.end > widestGap {
		found = s.flush(block, found)
	}
	if len(run) > 4 {
		return found
	}
	if s.end == 0 {
		s.start = start
	}
	s.end = end
	digits := strings.TrimPrefix(strings.TrimPrefix(run, "0x"), "0X")
	if n, err := strconv.ParseUint(digits, 16, 8); err == nil && len(digits) == 2 {
		s.hex = append(s.hex, byte(n))
	}
	if n, err := strconv.ParseUint(run, 10, 8); err == nil {
		s.decimal = append(s.decimal, byte(n))
	}
	if len(run) == 1 {
		s.single = append(s.single, run[0])
	}
	return found
}

func (s *spelled) flush(block string, found []match) []match {
	for i, text := range [mostOfThese][]byte{s.hex, s.decimal, s.single} {
		if len(text) < leastSpelt || !legible(string(text)) {
			continue
		}
		if in := shapes(string(text), true); len(in) > 0 {
			name := [mostOfThese]string{"hexadecimal", "numbers", "single characters"}[i]
			found = append(found, match{rule: in[0].rule + " in " + name, start: s.start, end: s.end})
			break
		}
	}
	s.hex, s.decimal, s.single, s.start, s.end = s.hex[:0], s.decimal[:0], s.single[:0], 0, 0
	return found
}

var (
	escaped = lazyregexp.New(`\\{1,2}u\{?([0-9a-fA-F]{2,6})\}?|\\{1,2}x([0-9a-fA-F]{2})|%([0-9a-fA-F]{2})|&#[xX]([0-9a-fA-F]{2});`)
	// Strings next to one another, also those of variables that follow one another, and
	// lines that go on.
	adjacent = lazyregexp.New(`["'` + "`" + `]\s*(?:\\\n|[+.&~,]|\.\.|<>|;?\s*(?:(?:const|let|var|val|static|String|string|my)\s+){0,2}\$?\w{1,30}\s*:?=)?\s*` +
		`[frbu]?["'` + "`" + `](?:\$\{\w{1,30}\})?|\\\r?\n[ \t]*`)
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

func inBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_'
}

// encodedRun returns the characters of base64 from a place on, and where they end.
// Long lines of them are one, and short ones that are equally long.
func encodedRun(block string, at int) (run string, end int) {
	first := at
	for at < len(block) && inBase64(block[at]) {
		at++
	}
	end = at
	width := end - first
	if width < shortestLine || end == len(block) || block[end] != '\n' && block[end] != '\r' {
		return block[first:end], end
	}
	var joined strings.Builder
	joined.WriteString(block[first:end])
	for lines := 1; ; lines++ {
		next := end
		for next < len(block) && strings.IndexByte("\r\n \t", block[next]) >= 0 {
			next++
		}
		at = next
		for at < len(block) && inBase64(block[at]) {
			at++
		}
		if at == next || width < longLines && (at-next > width || at-next < width && lines < 3) {
			break // the text goes on with something else
		}
		joined.WriteString(block[next:at])
		last := at-next < width && (width < longLines || at-next < longLines)
		end = at
		if last || end == len(block) || block[end] != '\n' && block[end] != '\r' {
			break
		}
	}
	return joined.String(), end
}

const (
	shortestLine = 8  // of base64 in lines
	longLines    = 60 // which can differ
)

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
