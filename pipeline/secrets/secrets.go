package secrets

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"forge/pipeline/text"
)

// Hit is a place where something looks like a secret.
type Hit = text.Leak

// maxHits is how many hits one scan returns.
const maxHits = 100

// Mask stands in a text for a secret that was taken out.
const Mask = "[secret]"

// Scanner finds secrets. It is safe for concurrent use.
type Scanner struct{ own *own }

// New returns a scanner that knows the shapes of credentials, and these secrets
// exactly. What is shorter than eight characters cannot be looked for and is left
// out; of a URL, its password counts.
func New(own ...string) *Scanner { return &Scanner{own: newOwn(own)} }

// Scan looks through a whole file, or any other text.
func (s *Scanner) Scan(file string, content []byte) []Hit { return s.Added(file, content, nil) }

// Added looks through the lines of a file that it did not have before.
func (s *Scanner) Added(file string, content, before []byte) []Hit {
	content, before = inUTF8(content), inUTF8(before)
	known := map[string]bool{}
	for line := range bytes.SplitSeq(before, []byte("\n")) {
		known[string(bytes.TrimRight(line, "\r"))] = true
	}
	if len(before) == 0 {
		return s.hits(file, string(content), 1, nil)
	}
	// Lines that follow one another are looked at together: a key has many.
	var hits []Hit
	var block strings.Builder
	first := 0
	flush := func() {
		if block.Len() > 0 {
			hits = s.hits(file, block.String(), first, hits)
			block.Reset()
		}
	}
	n := 0
	for line := range bytes.SplitSeq(content, []byte("\n")) {
		n++
		if known[string(bytes.TrimRight(line, "\r"))] {
			flush()
			continue
		}
		if block.Len() == 0 {
			first = n
		}
		block.Write(line)
		block.WriteByte('\n')
	}
	flush()
	return hits
}

// Text takes the secrets out of a text that is to be posted, and says where they
// were: also those that people read, although marks without width or backslashes are in
// between. A text without any is returned as it is.
func (s *Scanner) Text(name, content string) (string, []Hit) {
	found := s.find(content)
	if shown, at := asRead(content); shown != content {
		for _, m := range s.find(shown) {
			found = append(found, match{rule: m.rule, shown: m.shown, start: at[m.start], end: at[m.end-1] + 1})
		}
		sortMatches(found)
	}
	if len(found) == 0 {
		return content, nil
	}
	var b strings.Builder
	at := 0
	for _, m := range found {
		if m.start < at { // within one that was taken out already, in part at least
			at = max(at, m.end)
			continue
		}
		b.WriteString(content[at:m.start])
		b.WriteString(Mask)
		at = m.end
	}
	b.WriteString(content[min(at, len(content)):])
	return b.String(), hitsOf(found, name, content, 1, nil)
}

// match is a secret in a text.
type match struct {
	rule       string
	shown      string // how it begins, where that is no secret
	start, end int
}

// hits adds what is found in a block that begins at a line.
func (s *Scanner) hits(file, block string, first int, hits []Hit) []Hit {
	return hitsOf(s.find(block), file, block, first, hits)
}

func hitsOf(found []match, file, block string, first int, hits []Hit) []Hit {
	line, at, end := first, 0, 0
	for _, m := range found {
		if m.start < end { // the same, found by another rule
			continue
		}
		end = m.end
		line += strings.Count(block[at:m.start], "\n")
		at = m.start
		h := Hit{File: file, Line: line, Rule: m.rule, Redacted: fmt.Sprintf("%s… (%d characters)", m.shown, m.end-m.start)}
		if m.rule != ownRule {
			h.Name = nameOf(file, m.rule, block[m.start:m.end])
		}
		if len(hits) < maxHits && !slices.Contains(hits, h) {
			hits = append(hits, h)
		}
	}
	if len(hits) == maxHits { // there may be more, which nobody was shown
		for i := range hits {
			hits[i].Name = ""
		}
	}
	return hits
}

// nameOf names a hit, wherever in its file it is. Of the value it holds two bytes of a
// hash: enough to tell it from another one, and too little to guess it by.
func nameOf(file, rule, value string) string {
	sum := sha256.Sum256([]byte(file + "\x00" + rule + "\x00" + value))
	return fmt.Sprintf("%s (%s) %x", file, rule, sum[:2])
}

// find returns the secrets in a text, by where they begin.
func (s *Scanner) find(block string) []match {
	found := s.own.find(block)
	found = append(found, shapes(block, false)...)
	found = append(found, encoded(block)...)
	sortMatches(found)
	return found
}

// sortMatches sorts by place. What a shape tells comes before what a name does, since its
// provider is told.
func sortMatches(found []match) {
	rank := func(m match) int {
		if m.rule == assignedRule {
			return 1
		}
		return 0
	}
	slices.SortFunc(found, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(rank(a), rank(b)), cmp.Compare(b.end, a.end), cmp.Compare(a.rule, b.rule))
	})
}

// asRead returns a text as GitHub shows it, and where in the text each of its bytes is:
// without what has no width (by which texts are neutralised before they are posted) and
// without the backslashes of Markdown.
func asRead(s string) (string, []int) {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == '\\' || unicode.Is(unicode.Cf, r) }) {
		return s, nil
	}
	var b strings.Builder
	var at []int
	for i, size := 0, 0; i < len(s); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(s[i:])
		if unicode.Is(unicode.Cf, r) || r == '\\' && i+1 < len(s) && strings.IndexByte("_-.~*#|:@/+=", s[i+1]) >= 0 {
			continue
		}
		b.WriteString(s[i : i+size])
		for k := range size {
			at = append(at, i+k)
		}
	}
	return b.String(), at
}
