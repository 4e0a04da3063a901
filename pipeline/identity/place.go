package identity

import (
	"math"
	"strings"

	wording "forge/pipeline/text"
)

// place says how two findings' places are related.
type place int

const (
	apart     place = iota // another file, another of several equal lines, or far from code that has not changed
	elsewhere              // the same file, far from code that has changed since
	beside                 // a few lines away
	edited                 // at or like code that has changed since
	here                   // the same code
)

// nearby is how many lines from each other two places may be for an edit, or a
// reviewer's imprecision, to lie between them.
const nearby = 8

// editedCode is how much of their words two pieces of code share (Dice) when one is
// the other, edited.
const editedCode = 0.6

// relate compares the place of a known finding, as it is now, with that of a new one.
func relate(old, found *candidate) place {
	a, b := old.finding, found.finding
	switch {
	case a.File == "" && b.File == "":
		return here
	case a.File == "" || b.File == "":
		return apart
	case old.place.File == "": // the file is gone; the same code elsewhere is where it went
		if old.code != "" && old.code == found.code {
			return here
		}
		return apart
	case old.place.File != b.File:
		return apart
	case a.Line == 0 && b.Line == 0:
		return here
	case a.Line == 0 || b.Line == 0:
		return edited
	}
	same, gap := sameCode(old.code, found.code), old.gap(found)
	switch unchanged := old.place.Line > 0; {
	case unchanged && gap == 0:
		return here
	case unchanged && (gap > nearby || same && gap > 1):
		return apart
	case unchanged:
		return beside
	case same, gap == 0 && old.code == "" && found.code == "":
		return here
	case gap == 0, old.place.Line == 0 && gap <= nearby, alikeCode(old, found):
		return edited
	case gap <= nearby:
		return beside
	}
	return elsewhere
}

// gap is how many lines lie between two findings; 0 when they share one.
func (c *candidate) gap(o *candidate) int {
	from, to := c.lines()
	from2, to2 := o.lines()
	return max(0, from2-to, from-to2)
}

// lines returns the first and last line, as far as they are known.
func (c *candidate) lines() (from, to int) {
	switch {
	case c.place.Line > 0:
		from = c.place.Line
	case c.place.Near > 0:
		from = c.place.Near
	default:
		from = c.finding.Line
	}
	return from, from + max(0, c.finding.EndLine-c.finding.Line)
}

// tiny is how many bytes code has at most that stands in other code by chance.
const tiny = 5

// sameCode reports that one is the other, or a part of it.
func sameCode(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a != "" && a == b || len(a) > tiny && strings.Contains(b, a)
}

func alikeCode(a, b *candidate) bool {
	for _, c := range []*candidate{a, b} {
		if c.codeWords == nil {
			c.codeWords = append([]string{}, wording.KeyWords(c.code)...)
		}
	}
	return dice(a.codeWords, b.codeWords) >= editedCode
}

// distance grows faster than the lines between two findings: of several equal
// findings in a file that moved together, the first is the first.
func (c *candidate) distance(o *candidate) float64 {
	const most = 5000
	a, _ := c.lines()
	b, _ := o.lines()
	return math.Pow(math.Min(math.Abs(float64(a-b)), most)/most, 1.5)
}
