package ranking

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"forge/learn/recall"
)

// Plain is bm25 without more (k1 1.2, b 0.75), which recall must beat: lower-cased
// words of a learning's text and folders against those of a query's path,
// functions and words.
type Plain struct {
	ids    []int64
	counts []map[string]int
	lens   []int
	have   map[string][]int // word → learnings, as indexes of ids
	total  int
}

// NewPlain returns plain bm25, empty.
func NewPlain() *Plain { return &Plain{have: map[string][]int{}} }

func plainWords(parts ...string) []string {
	return strings.FieldsFunc(strings.ToLower(strings.Join(parts, " ")), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
	})
}

// Put implements [Ranking].
func (p *Plain) Put(l Learning) error {
	words := plainWords(append([]string{l.Text}, l.Context...)...)
	counts := map[string]int{}
	for _, w := range words {
		if counts[w]++; counts[w] == 1 {
			p.have[w] = append(p.have[w], len(p.ids))
		}
	}
	p.ids = append(p.ids, l.ID)
	p.counts = append(p.counts, counts)
	p.lens = append(p.lens, len(words))
	p.total += len(words)
	return nil
}

// Rank implements [Ranking].
func (p *Plain) Rank(q Query, _ time.Time) []int64 {
	const k1, b = 1.2, 0.75
	words := plainWords(append(append([]string{q.Path, q.Text}, q.Functions...), q.Words...)...)
	slices.Sort(words)
	n := float64(len(p.ids))
	average := float64(p.total) / n
	scores := map[int]float64{}
	for _, w := range slices.Compact(words) {
		have := float64(len(p.have[w]))
		rarity := math.Log(1 + (n-have+0.5)/(have+0.5))
		for _, i := range p.have[w] {
			count := float64(p.counts[i][w])
			scores[i] += rarity * count * (k1 + 1) / (count + k1*(1-b+b*float64(p.lens[i])/average))
		}
	}
	var order []int
	for i := range scores {
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b)) })
	ids := make([]int64, len(order))
	for i, o := range order {
		ids[i] = p.ids[o]
	}
	return ids
}

// FolderFirst ranks what is about the folder of the change first, and the rest behind it,
// both as plain bm25 does. A task has no folder yet: that of the surest guess.
type FolderFirst struct {
	*Plain
	folders map[int64][]string
}

// NewFolderFirst returns it, empty.
func NewFolderFirst() *FolderFirst { return &FolderFirst{NewPlain(), map[int64][]string{}} }

// Put implements [Ranking].
func (p *FolderFirst) Put(l Learning) error {
	p.folders[l.ID] = l.Context
	return p.Plain.Put(l)
}

// Rank implements [Ranking].
func (p *FolderFirst) Rank(q Query, now time.Time) []int64 {
	folder := path.Dir(q.Path)
	if q.Path == "" {
		folder = ""
		if g := recall.Guesses(q.Text, q.Tree, q.Hits); len(g) > 0 {
			folder = path.Dir(g[0].Path)
		}
	}
	var first, rest []int64
	for _, id := range p.Plain.Rank(q, now) {
		if slices.Contains(p.folders[id], folder) {
			first = append(first, id)
		} else {
			rest = append(rest, id)
		}
	}
	return append(first, rest...)
}
