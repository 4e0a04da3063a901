package stream

import (
	"hash/fnv"
	"math"
	"slices"

	"forge/learn"
	"forge/learn/nearest"
	"forge/pipeline"
	"forge/pipeline/text"
)

// neighbours are what findings were decided on, as texts: the simplest prediction that
// there is, which any other has to beat.
type neighbours struct {
	list []neighbour
	idf  map[string]float64
	rate float64 // of dismissals
}

type neighbour struct {
	words     []string
	norm      float64
	dismissed bool
}

const (
	nearestCount = 5
	nearestFrom  = 20  // decisions
	nearestAlike = 0.2 // the cosine under which a text is not near
	nearestHold  = 0.6 // share of the nearest, weighed by how near they are, from which a finding is held back
)

func newNeighbours(list []nearest.Decision) *neighbours {
	n := &neighbours{idf: map[string]float64{}}
	for _, d := range list {
		if d.Finding.Severity.Blocks() {
			continue
		}
		x := neighbour{words: text.KeyWords(d.Finding.Message + " " + d.Finding.Code), dismissed: d.Dismissed}
		for _, w := range x.words {
			n.idf[w]++
		}
		if n.list = append(n.list, x); d.Dismissed {
			n.rate++
		}
	}
	for w, df := range n.idf {
		n.idf[w] = math.Log(1 + float64(len(n.list))/df)
	}
	for i := range n.list {
		n.list[i].norm = n.norm(n.list[i].words)
	}
	n.rate /= math.Max(1, float64(len(n.list)))
	return n
}

func (n *neighbours) norm(words []string) (sum float64) {
	for _, w := range words {
		sum += n.idf[w] * n.idf[w]
	}
	return math.Sqrt(sum)
}

// holds reports whether most of the nearest texts were dismissed.
func (n *neighbours) holds(f *pipeline.Finding) bool {
	if n == nil || len(n.list) < nearestFrom || f.Severity.Blocks() {
		return false
	}
	words := text.KeyWords(f.Message + " " + f.Code)
	norm := n.norm(words)
	type near struct {
		alike     float64
		dismissed bool
	}
	var found []near
	for _, x := range n.list {
		dot := 0.0
		for _, w := range words {
			if _, in := slices.BinarySearch(x.words, w); in {
				dot += n.idf[w] * n.idf[w]
			}
		}
		if c := dot / math.Max(1e-9, norm*x.norm); c >= nearestAlike {
			found = append(found, near{c, x.dismissed})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int {
		switch {
		case a.alike > b.alike:
			return -1
		case a.alike < b.alike:
			return 1
		}
		return 0
	})
	var yes, all float64
	for _, x := range found[:min(nearestCount, len(found))] {
		if all += x.alike; x.dismissed {
			yes += x.alike
		}
	}
	return len(found) >= nearestCount && yes >= nearestHold*all
}

// baselines holds back what the simple policies would.
func (g *player) baselines(kept []pipeline.Finding, held []learn.Suppressed) ([]pipeline.Finding, []learn.Suppressed) {
	if !g.policy.Nearest && !g.policy.Base {
		return kept, held
	}
	var out []pipeline.Finding
	for _, f := range kept {
		hold := g.policy.Nearest && g.texts.holds(&f)
		if g.policy.Base && g.texts != nil && !f.Severity.Blocks() {
			h := fnv.New64a()
			h.Write([]byte(f.Fingerprint + f.ID))
			hold = float64(h.Sum64()>>11)/(1<<53) < g.texts.rate
		}
		if hold {
			held = append(held, learn.Suppressed{Finding: f, Why: "baseline"})
		} else {
			out = append(out, f)
		}
	}
	return out, held
}
