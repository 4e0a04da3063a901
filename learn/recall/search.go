package recall

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"strings"
)

// BM25's usual parameters.
const (
	k1 = 1.2
	b  = 0.75
)

const (
	worthFolder = 1 // as much as the best words
	worthFile   = 1 // on top of its folder
	worthKind   = 0.25
	worthGuess  = 0.5 // of a file that may be meant, or its folder, at its surest

	staleness = 0.2              // what freshness takes away at most
	halfLife  = 180 * 24 * 3600. // seconds in which half of that is taken
)

// shownWords is how many words a hit names as its reason.
const shownWords = 6

// Hit is a learning that matters for a query.
type Hit struct {
	ID    int64
	Score float64 // 0 to 3.5; comparable within one search only
	Why   Why
}

// Why says what of a learning matched.
type Why struct {
	File     string   `json:"file,omitempty"`   // the very file is named
	Folder   string   `json:"folder,omitempty"` // a folder that the change touches is named
	Words    []string `json:"words,omitempty"`  // those that say most first, at most six
	Category string   `json:"category,omitempty"`
	Tags     []string `json:"tags,omitempty"`
}

// String is the reason in a line: "folder server/events; words elector, resign".
func (w Why) String() string {
	var out []string
	add := func(name string, values ...string) {
		if len(values) > 0 && values[0] != "" {
			out = append(out, name+" "+strings.Join(values, ", "))
		}
	}
	add("file", w.File)
	if w.File == "" {
		add("folder", w.Folder)
	}
	add("words", w.Words...)
	add("category", w.Category)
	add("tags", w.Tags...)
	return strings.Join(out, "; ")
}

// Search returns the learnings that matter most for the query, best first; of
// equals the one with the higher ID, which is the newer. What matches in nothing
// is not returned.
func (ix *Index) Search(q Query) []Hit {
	terms, marks := q.terms(), q.marks()
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	c := ix.corpus(q.Scopes)
	if c.live == 0 {
		return nil
	}
	terms = c.weigh(terms)
	tallies := make([]*tally, len(c.scopes))
	best := float32(0)
	for i, s := range c.scopes {
		t := ix.pool.Get().(*tally)
		defer ix.pool.Put(t)
		defer t.clear()
		t.count(s, terms, marks, c.average)
		tallies[i] = t
		for _, slot := range t.met {
			best = max(best, t.words[slot])
		}
	}
	top := newRanking(&q)
	for i, s := range c.scopes {
		top.take(s, tallies[i], best)
	}
	return top.hits(terms, marks)
}

// corpus is what is searched: the scopes together, so that a word's rarity is the
// same for all of them.
type corpus struct {
	scopes  []*scope
	live    int
	average float32 // words in a learning
}

func (ix *Index) corpus(names []string) corpus {
	var c corpus
	length := int64(0)
	for i, name := range names {
		if s := ix.scopes[name]; s != nil && !slices.Contains(names[:i], name) {
			c.scopes = append(c.scopes, s)
			c.live += s.live
			length += s.length
		}
	}
	c.average = float32(length) / float32(max(c.live, 1))
	return c
}

// weigh multiplies the terms' weights by their rarity, drops those that no learning
// has, and keeps those that say most.
func (c *corpus) weigh(terms []wanted) []wanted {
	kept := terms[:0]
	for _, t := range terms {
		have := 0
		for _, s := range c.scopes {
			have += int(s.find(t.term).live)
		}
		if have > 0 {
			t.weight *= float32(math.Log(1 + (float64(c.live-have)+0.5)/(float64(have)+0.5)))
			kept = append(kept, t)
		}
	}
	return strongest(kept, maxTerms)
}

// tally is the working memory of one search in one scope, by slot.
type tally struct {
	words []float32 // BM25
	flags []flag
	near  []float32 // what guesses are worth, the best one
	met   []uint32  // slots with a score or a flag
}

// count adds up what the learnings of a scope have in common with the query.
func (t *tally) count(s *scope, terms []wanted, marks []marked, average float32) {
	if n := len(s.lens); cap(t.words) < n {
		t.words, t.flags, t.near = make([]float32, n), make([]flag, n), make([]float32, n)
	}
	words, flags, near, lens := t.words[:cap(t.words)], t.flags[:cap(t.words)], t.near[:cap(t.words)], s.lens
	t.words, t.flags, t.near = words, flags, near
	fixed, perWord := float32(k1*(1-b)), k1*b/average
	for _, term := range terms {
		weight := term.weight * (k1 + 1)
		for _, p := range s.find(term.term).posts {
			slot := p.slot()
			length := lens[slot]
			if length == 0 {
				continue
			}
			if words[slot] == 0 {
				t.met = append(t.met, slot)
			}
			n := float32(p & maxCount)
			words[slot] += weight * n / (n + fixed + perWord*float32(length))
		}
	}
	for _, m := range marks {
		for _, p := range s.find(m.term).posts {
			slot := p.slot()
			if lens[slot] == 0 {
				continue
			}
			if words[slot] == 0 && flags[slot] == 0 && near[slot] == 0 {
				t.met = append(t.met, slot)
			}
			flags[slot] |= m.flag
			near[slot] = max(near[slot], m.near)
		}
	}
}

// clear makes the tally ready for the next search.
func (t *tally) clear() {
	for _, slot := range t.met {
		t.words[slot], t.flags[slot], t.near[slot] = 0, 0, 0
	}
	t.met = t.met[:0]
}

// worth is the part of a score that a flag stands for.
func (f flag) worth() float64 {
	if f == 0 {
		return 0
	}
	w := 0.0
	if f&inFolder != 0 {
		w += worthFolder
	}
	if f&onFile != 0 {
		w += worthFile
	}
	if f&sameCategory != 0 {
		w += worthKind
	}
	if f&sameTag != 0 {
		w += worthKind
	}
	return w
}

// freshness is 1 for what was touched now and falls to 1 − staleness.
func freshness(now, touched int64) float64 {
	return 1 - staleness + staleness*math.Exp2(-float64(max(now-touched, 0))/halfLife)
}

// candidate is a learning on its way into the ranking.
type candidate struct {
	score float64
	id    int64
	scope *scope
	slot  uint32
	flags flag
}

func (c candidate) compare(o candidate) int {
	return cmp.Or(cmp.Compare(c.score, o.score), cmp.Compare(c.id, o.id))
}

// ranking keeps the best candidates: a heap with the worst of them on top.
type ranking struct {
	limit int
	now   int64
	list  []candidate
}

func newRanking(q *Query) *ranking {
	r := &ranking{limit: q.Limit, now: math.MinInt64}
	if r.limit <= 0 {
		r.limit = defaultLimit
	}
	if !q.Now.IsZero() {
		r.now = q.Now.Unix()
	}
	return r
}

func (r *ranking) Len() int           { return len(r.list) }
func (r *ranking) Less(i, j int) bool { return r.list[i].compare(r.list[j]) < 0 }
func (r *ranking) Swap(i, j int)      { r.list[i], r.list[j] = r.list[j], r.list[i] }
func (r *ranking) Push(x any)         { r.list = append(r.list, x.(candidate)) }
func (r *ranking) Pop() any           { panic("recall: nothing is taken off the ranking") }

// take ranks what a tally met.
func (r *ranking) take(s *scope, t *tally, best float32) {
	scale := 0.0
	if best > 0 {
		scale = 1 / float64(best)
	}
	for _, slot := range t.met {
		n, flags := &s.notes[slot], t.flags[slot]
		score := (float64(t.words[slot])*scale + flags.worth() + float64(t.near[slot])) * float64(n.confidence)
		full := len(r.list) == r.limit
		if full && score < r.list[0].score {
			continue // freshness would only lower it
		}
		if r.now != math.MinInt64 {
			score *= freshness(r.now, n.touched)
		}
		c := candidate{score: score, id: n.id, scope: s, slot: slot, flags: flags}
		switch {
		case !full:
			heap.Push(r, c)
		case c.compare(r.list[0]) > 0:
			r.list[0] = c
			heap.Fix(r, 0)
		}
	}
}

// hits are the ranked learnings, best first, with their reasons.
func (r *ranking) hits(terms []wanted, marks []marked) []Hit {
	slices.SortFunc(r.list, func(a, b candidate) int { return b.compare(a) })
	terms = slices.Clone(terms)
	slices.SortStableFunc(terms, func(a, b wanted) int { return cmp.Compare(b.weight, a.weight) })
	out := make([]Hit, len(r.list))
	for i, c := range r.list {
		out[i] = Hit{ID: c.id, Score: c.score, Why: c.why(terms, marks)}
	}
	return out
}

func (c candidate) why(terms []wanted, marks []marked) Why {
	var w Why
	for _, t := range terms {
		if len(w.Words) == shownWords {
			break
		}
		if !slices.Contains(w.Words, t.shown) && c.scope.has(t.term, c.slot) {
			w.Words = append(w.Words, t.shown)
		}
	}
	for _, m := range marks {
		if m.near > 0 || c.flags&m.flag == 0 || !c.scope.has(m.term, c.slot) {
			continue
		}
		_, value, _ := strings.Cut(m.term, ":")
		switch m.flag {
		case onFile:
			w.File = cmp.Or(w.File, value)
		case inFolder:
			w.Folder = cmp.Or(w.Folder, value)
		case sameCategory:
			w.Category = value
		case sameTag:
			w.Tags = append(w.Tags, value)
		}
	}
	return w
}
