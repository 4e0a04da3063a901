package identity

import (
	"math"
	"slices"

	"forge/pipeline"
)

// How alike two messages must be to be one finding, by where they stand.
const (
	alikeHere      = 0.55
	alikeNear      = 0.75
	alikeElsewhere = 0.9
	doubt          = 0.1 // more of it: another category, another rule, a dismissal that would swallow what is new
)

// score is how sure it is that a new finding is a known one; ok is false when it
// is not sure enough.
func score(old, found *candidate) (s float64, ok bool) {
	a, b := old.finding, found.finding
	if a.Criterion != b.Criterion {
		return 0, false
	}
	var limit float64
	at := relate(old, found)
	switch at {
	case here:
		limit = alikeHere
	case near:
		limit = alikeNear
	case elsewhere:
		limit = alikeElsewhere
	default:
		return 0, false
	}
	if a.Category != b.Category && (a.Rule == "" || a.Rule != b.Rule) {
		limit += doubt
	}
	if old.dismissed {
		limit += doubt
	}
	s = alike(old.text, found.text)
	if s < math.Min(limit, 1) {
		return 0, false
	}
	s += 0.2*float64(at) - old.distance(found)
	if old.fixed {
		s -= 0.01
	}
	return math.Max(s, 0.001), true
}

// text is a message, made ready to be compared.
type text struct {
	words []string // stems of those that say something, sorted, each once
}

func read(s string) *text { return &text{words: words(s)} }

func words(s string) []string { return pipeline.KeyWords(s) }

// alike is how much two messages share, 0 to 1.
func alike(a, b *text) float64 { return dice(a.words, b.words) }

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
