package identity

import (
	"math"
	"strings"
)

// place says how two findings' places are related.
type place int

const (
	apart     place = iota // another file, or another of several equal lines
	elsewhere              // the same file, other code
	near                   // a few lines away, or code that was edited since
	here                   // the same code
)

// nearby is how many lines from each other two places may be for an edit, or a
// reviewer's imprecision, to lie between them.
const nearby = 8

// alikeCode is how much of their words two pieces of code share (Dice) when one is
// the other, edited.
const alikeCode = 0.6

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
		return near
	}
	same := sameCode(old.code, found.code)
	if old.place.Line > 0 { // the line stands unchanged, and where is known
		switch d := old.gap(found); {
		case d == 0:
			return here
		case same && d > 1: // an equal line at another place is another finding
			return apart
		case d <= nearby:
			return near
		}
		return elsewhere
	}
	switch {
	case same:
		return here
	case old.gap(found) <= nearby, dice(old.codeWords, found.codeWords) >= alikeCode:
		return near
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
	from = c.place.Line
	if from == 0 {
		from = c.finding.Line
	}
	return from, from + max(0, c.finding.EndLine-c.finding.Line)
}

func sameCode(a, b string) bool {
	return a != "" && b != "" && (a == b || strings.Contains(a, b) || strings.Contains(b, a))
}

// distance grows faster than the lines between two findings: of several equal
// findings in a file that moved together, the first is the first.
func (c *candidate) distance(o *candidate) float64 {
	const most = 5000
	a, _ := c.lines()
	b, _ := o.lines()
	return math.Pow(math.Min(math.Abs(float64(a-b)), most)/most, 1.5)
}
