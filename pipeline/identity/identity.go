// Package identity recognises a run's findings in a new review. A reviewer words
// a finding anew each time, the code it is about moves and is edited, files are
// renamed; counts, dismissals and threads hang on a finding's fingerprint. So each
// new finding gets the fingerprint under which the run knows it, or one that
// nothing in the run has.
//
// Taking two findings for one loses one of them; taking one for two asks twice.
// The first is worse: place is part of identity, and what is in doubt is new.
//
// The package is pure: no I/O, no clock, nothing kept between calls.
package identity

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline"
)

// Known is what a run knows when a phase completes.
type Known struct {
	Issues []pipeline.Issue // all findings of the run, of every phase: no new fingerprint is one of theirs
	Phase  pipeline.Phase   // the phase that completes: only its own findings are recognised
	// Now returns where the code of an issue stands at the head that was just looked
	// at; see Moves. Nil: files are where they were, and of lines nothing is known.
	Now func(*pipeline.Issue) Place
}

// Place is where code stands now.
type Place struct {
	File string // "" when the file is gone and nothing says where to
	Line int    // its first line, when that is unchanged; 0 when it was changed or removed, -1 when nothing is known
	Near int    // where about the line was that is not there any more; 0 when that is not known
}

// Resolve returns the findings with the fingerprints under which the run knows
// them; no two get the same. The list itself is not changed. The order of neither
// list matters.
func (k Known) Resolve(found []pipeline.Finding) []pipeline.Finding {
	out := slices.Clone(found)
	lex := lexicon{}
	news := canonical(lex, out)
	var olds []*candidate
	taken := map[string]bool{}
	for i := range k.Issues {
		is := &k.Issues[i]
		if is.Finding == nil {
			continue
		}
		taken[is.Fingerprint()] = true
		if is.Phase == k.Phase {
			olds = append(olds, k.candidate(lex, is))
		}
	}
	slices.SortStableFunc(olds, func(a, b *candidate) int {
		return cmp.Or(compare(a.finding, b.finding), cmp.Compare(a.finding.Fingerprint, b.finding.Fingerprint))
	})
	pairs := match(judgeOf(olds, news), olds, news)
	for i, n := range news {
		if o := pairs[i]; o >= 0 {
			n.finding.Fingerprint = olds[o].finding.Fingerprint
		}
	}
	for i, n := range news {
		if pairs[i] < 0 {
			n.finding.Fingerprint = fresh(n.finding, taken)
			taken[n.finding.Fingerprint] = true
		}
	}
	return out
}

// candidate is a finding, known or new, made ready to be compared.
type candidate struct {
	finding   *pipeline.Finding
	place     Place // where a known one stands now
	dismissed bool
	fixed     bool
	text      *text
	words     *weighed
	said      string   // the message, but for case and spaces
	code      string   // without indentation and empty lines
	codeWords []string // once they are asked for
}

func newCandidate(lex lexicon, f *pipeline.Finding) *candidate {
	return &candidate{finding: f, place: Place{File: f.File, Line: f.Line}, text: lex.read(f.Message),
		said: strings.ToLower(strings.Join(strings.Fields(f.Message), " ")), code: squash(f.Code)}
}

func (k Known) candidate(lex lexicon, is *pipeline.Issue) *candidate {
	c := newCandidate(lex, is.Finding)
	c.place.Line = -1
	if k.Now != nil && is.Finding.File != "" {
		c.place = k.Now(is)
	}
	c.dismissed, c.fixed = is.State == pipeline.IssueDismissed, is.State == pipeline.IssueFixed
	return c
}

// canonical returns the findings in an order that does not depend on the list's.
func canonical(lex lexicon, list []pipeline.Finding) []*candidate {
	out := make([]*candidate, len(list))
	for i := range list {
		out[i] = newCandidate(lex, &list[i])
	}
	slices.SortStableFunc(out, func(a, b *candidate) int { return compare(a.finding, b.finding) })
	return out
}

func compare(a, b *pipeline.Finding) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.EndLine, b.EndLine), cmp.Compare(a.Criterion, b.Criterion),
		cmp.Compare(a.Category, b.Category), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Code, b.Code))
}

// fresh returns a fingerprint for a finding that the run does not know: that of
// [pipeline.Fingerprint], or, where the same words about the same code stand
// elsewhere too, one with the file and a number.
func fresh(f *pipeline.Finding, taken map[string]bool) string {
	base := f.Digest()
	for n, fp := 1, base; ; n++ {
		if !taken[fp] {
			return fp
		}
		sum := sha256.Sum256([]byte(base + "\x00" + strconv.Itoa(n) + "\x00" + f.File))
		fp = hex.EncodeToString(sum[:8])
	}
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
