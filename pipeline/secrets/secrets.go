package secrets

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

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
// were. A text without any is returned as it is.
func (s *Scanner) Text(name, content string) (string, []Hit) {
	found := s.find(content)
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
	return b.String(), s.hits(name, content, 1, nil)
}

// match is a secret in a text.
type match struct {
	rule       string
	shown      string // how it begins, where that is no secret
	start, end int
}

// hits adds what is found in a block that begins at a line.
func (s *Scanner) hits(file, block string, first int, hits []Hit) []Hit {
	line, at, end := first, 0, 0
	for _, m := range s.find(block) {
		if m.start < end { // the same, found by another rule
			continue
		}
		end = m.end
		line += strings.Count(block[at:m.start], "\n")
		at = m.start
		h := Hit{File: file, Line: line, Rule: m.rule, Redacted: fmt.Sprintf("%s… (%d characters)", m.shown, m.end-m.start)}
		if len(hits) < maxHits && !slices.ContainsFunc(hits, func(o Hit) bool { return o.Line == h.Line && o.Rule == h.Rule }) {
			hits = append(hits, h)
		}
	}
	return hits
}

// find returns the secrets in a text, by where they begin.
func (s *Scanner) find(block string) []match {
	found := s.own.find(block)
	found = append(found, shapes(block, false)...)
	found = append(found, disguised(block)...)
	slices.SortFunc(found, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(a.rule, b.rule))
	})
	return found
}
