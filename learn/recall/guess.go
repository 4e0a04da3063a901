package recall

import (
	"cmp"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
)

// Guess is a file that a task may be about, and how sure that is beside the surest: over 0, to 1.
type Guess struct {
	Path string
	Sure float64
}

const (
	mostGuesses = 8
	leastName   = 5   // bytes of a file name that is not a word of every text
	guessNamed  = 3   // a file that the text names, in words of the usual rarity
	guessBase   = 1.5 // a word of the file's own name, against one of a folder's
	guessHit    = 1.5 // a name of the text that stands in the file and nowhere else
)

// Guesses says which files a task may be about, for those who have no change yet: those
// that its text names, whose paths say what it says, or in which names of it stand. tree
// are the repository's files; hits, by name, how many lines of which files have it.
func Guesses(text string, tree []string, hits map[string]map[string]int) []Guess {
	said := map[string]bool{}
	eachTerm(text, func(term, _ string) { said[term] = true })
	rarity := func(n int) float64 { return math.Log(1 + float64(len(tree))/float64(max(1, n))) }
	parts, have := make([][]part, len(tree)), map[string]int{}
	for i, p := range tree {
		parts[i] = partsOf(p)
		for _, t := range parts[i] {
			have[t.term]++
		}
	}
	scores := map[string]float64{}
	for i, p := range tree {
		s, size := 0.0, 0.0
		for _, t := range parts[i] {
			r := t.weight * rarity(have[t.term])
			if size += r; said[t.term] {
				s += r
			}
		}
		if s > 0 {
			scores[p] = s * s / size // the share of the path that is said counts, too
		}
		if b := path.Base(p); len(b) > leastName && strings.Contains(b, ".") && strings.Contains(text, b) || strings.Contains(p, "/") && strings.Contains(text, p) {
			scores[p] += guessNamed * math.Log(1+float64(len(tree)))
		}
	}
	for _, n := range slices.Sorted(maps.Keys(hits)) { // sums of floats depend on their order
		files := hits[n]
		for p, lines := range files {
			scores[p] += guessHit * rarity(len(files)) * float64(lines) / float64(lines+2) * 2 / float64(1+len(files))
		}
	}
	out := make([]Guess, 0, len(scores))
	for p, s := range scores {
		out = append(out, Guess{p, s})
	}
	slices.SortFunc(out, func(a, b Guess) int { return cmp.Or(cmp.Compare(b.Sure, a.Sure), cmp.Compare(a.Path, b.Path)) })
	out = out[:min(mostGuesses, len(out))]
	for i := len(out) - 1; i >= 0; i-- {
		out[i].Sure /= out[0].Sure
	}
	return out
}

// part is a term of a path, and what it weighs.
type part struct {
	term   string
	weight float64
}

// partsOf are the terms of a path, each once.
func partsOf(p string) (out []part) {
	add := func(weight float64) func(term, shown string) {
		return func(term, _ string) {
			if i := slices.IndexFunc(out, func(x part) bool { return x.term == term }); i >= 0 {
				out[i].weight = max(out[i].weight, weight)
			} else {
				out = append(out, part{term, weight})
			}
		}
	}
	eachTerm(path.Dir(p), add(1))
	eachTerm(strings.TrimSuffix(path.Base(p), path.Ext(p)), add(guessBase))
	return out
}
