package ranking

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"forge/learn/recall"
	"forge/pipeline"
)

// Synthetic makes up any number of learnings and queries that have the vocabulary
// of real ones: words as frequent, texts as long, and the folders, files and
// identifiers that people really touched. The same seed gives the same ones.
type Synthetic struct {
	rand    *rand.Rand
	scopes  int
	words   []string // every word of every text, as often as it is there
	lengths []int
	folders [][]string
	queries []Query
	next    int64
}

// queryWords is the number of words of a query, as many as the sets have at most.
const queryWords = 15

// NewSynthetic returns a source of learnings spread evenly over a number of scopes.
func NewSynthetic(sets []*Set, scopes int, seed uint64) (*Synthetic, error) {
	s := &Synthetic{rand: rand.New(rand.NewPCG(seed, seed)), scopes: scopes}
	for _, set := range sets {
		for _, l := range set.Learnings {
			words := strings.Fields(l.Text)
			s.words = append(s.words, words...)
			s.lengths = append(s.lengths, len(words))
			s.folders = append(s.folders, l.Context)
		}
		for _, q := range set.Queries {
			if len(q.Words) == queryWords {
				s.queries = append(s.queries, q)
			}
		}
	}
	if len(s.words) == 0 || len(s.queries) == 0 || scopes < 1 {
		return nil, fmt.Errorf("make up learnings in %d scopes: the sets have %d words and %d queries of %d words; at least one of each is needed", scopes, len(s.words), len(s.queries), queryWords)
	}
	return s, nil
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (s *Synthetic) scope() string {
	return fmt.Sprintf("repo:synthetic/%d", s.rand.IntN(s.scopes))
}

// Learning makes up the next learning.
func (s *Synthetic) Learning() pipeline.Learning {
	s.next++
	words := make([]string, s.lengths[s.rand.IntN(len(s.lengths))])
	for i := range words {
		words[i] = s.words[s.rand.IntN(len(s.words))]
	}
	at := epoch.Add(-time.Duration(s.rand.Int64N(int64(2 * 365 * 24 * time.Hour))))
	return pipeline.Learning{
		ID: s.next, Scope: s.scope(), Content: strings.Join(words, " "), Context: strings.Join(s.folders[s.rand.IntN(len(s.folders))], ", "),
		Confidence: 0.3 + 0.7*s.rand.Float64(), Created: at, Touched: at, State: "active",
	}
}

// Query picks a real change, to be asked of one of the scopes.
func (s *Synthetic) Query(limit int) recall.Query {
	return s.queries[s.rand.IntN(len(s.queries))].Query(s.scope(), limit, epoch)
}
