package identity

import "slices"

// over is how far over the limit two messages must be, in log-odds, to be one
// finding, by where they stand. Set on hand-written pairs: what was measured on
// real ones stands at the same code.
var over = map[place]float64{here: 0, edited: 0.75, beside: 1.5, elsewhere: 2.5}

// doubt is how much more it is with another category and rule, and for a dismissal,
// which would swallow what is new.
const doubt = 0.75

// equal is what two messages are over the limit that say the same word for word,
// however few they are.
const equal = 6

// What counts in an assignment beside the words: where they stand, and being open.
const (
	worthPlace = 1.5
	worthOpen  = 0.05
)

// judgeOf compares the messages of a run: what all of them are about is known from
// all of them.
func judgeOf(olds, news []*candidate) *judge {
	s := newSubject()
	for _, list := range [][]*candidate{olds, news} {
		for _, c := range list {
			s.add(c.text)
		}
	}
	for _, list := range [][]*candidate{olds, news} {
		for _, c := range list {
			c.words = s.weigh(c.text)
		}
	}
	return Shipped().judge(s)
}

// score is how good it is to take a new finding for a known one, above 0; ok is
// false when it is not sure enough.
func (j *judge) score(old, found *candidate) (s float64, ok bool) {
	a, b := old.finding, found.finding
	if a.Criterion != b.Criterion {
		return 0, false
	}
	at := relate(old, found)
	if at == apart {
		return 0, false
	}
	limit := over[at]
	if a.Category != b.Category && (a.Rule == "" || a.Rule != b.Rule) {
		limit += doubt
	}
	if old.dismissed {
		limit += doubt
	}
	switch {
	case old.said == found.said && at >= edited:
		s = equal
	case at < edited && least(old.words, found.words, vSense) > 0: // each names something that the other does not
		return 0, false
	default:
		s = j.surely(old.words, found.words, limit)
	}
	if s <= limit {
		return 0, false
	}
	s += worthPlace*float64(at) - old.distance(found)
	if !old.fixed {
		s += worthOpen
	}
	return s, true
}

// dice is Dice's coefficient of two sorted lists.
func dice(a, b []string) float64 {
	if len(a)+len(b) == 0 {
		return 0
	}
	both := 0
	for _, w := range a {
		if _, ok := slices.BinarySearch(b, w); ok {
			both++
		}
	}
	return 2 * float64(both) / float64(len(a)+len(b))
}
