package recall

import (
	"cmp"
	"forge/pipeline"
	"math"
	"path"
	"slices"
	"strings"
	"time"
)

// Query is a change, or a task that will become one. Every field but Scopes may be
// empty.
type Query struct {
	Scopes    []string          // "repo:OWNER/NAME", "org:OWNER"; others are not looked at
	Text      string            // what is asked for: an issue's title and body, a finding's message
	Paths     []string          // files that are or will be changed, from the top of the repository
	Functions []string          // names of the functions that are changed
	Words     []string          // identifiers of the changed lines
	Guesses   []Guess           // files that may be changed, where Paths are not known yet; see [Guesses]
	Category  pipeline.Category // of a finding
	Tags      []string          //
	Limit     int               // most hits; 0 is 10
	Now       time.Time         // what freshness is measured from; zero: nothing has aged
}

const (
	defaultLimit = 10
	// maxTerms bounds the time of a search: of a long text only the words that say
	// most are looked up. Some 40 come of a changed file.
	maxTerms = 64
)

// What a word of the query weighs by where it stands. See the package comment for
// where the figures come from.
const (
	weightFile     = 3
	weightFunction = 2
	weightWord     = 0.5 // of the text and the changed lines
	weightFolder   = 0.25
	weightGuess    = 0.2 // of the name of a file that may be meant
)

// wanted is a term of a query.
type wanted struct {
	term, shown string
	weight      float32
}

// terms gathers the query's words, in the order of their first appearance. A word
// that comes up again counts by the square root of its weights' sum: the third
// mention says less than the first.
func (q *Query) terms() []wanted {
	var out []wanted
	seen := map[string]int{}
	add := func(s string, weight float32) {
		eachTerm(s, func(term, shown string) {
			i, ok := seen[term]
			if !ok {
				i = len(out)
				seen[term] = i
				out = append(out, wanted{term: term, shown: shown})
			}
			out[i].weight += weight
		})
	}
	for _, p := range q.Paths {
		p = path.Clean(p)
		add(strings.TrimSuffix(path.Base(p), path.Ext(p)), weightFile)
		add(path.Dir(p), weightFolder)
	}
	for _, g := range q.Guesses {
		add(strings.TrimSuffix(path.Base(g.Path), path.Ext(g.Path)), float32(weightGuess*g.Sure))
	}
	for _, f := range q.Functions {
		add(f, weightFunction)
	}
	for _, w := range q.Words {
		add(w, weightWord)
	}
	add(q.Text, weightWord)
	for i := range out {
		out[i].weight = float32(math.Sqrt(float64(out[i].weight)))
	}
	return out
}

// strongest keeps the n terms of the greatest weight, in their order.
func strongest(terms []wanted, n int) []wanted {
	if len(terms) <= n {
		return terms
	}
	order := make([]int, len(terms))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(terms[b].weight, terms[a].weight) })
	order = order[:n]
	slices.Sort(order)
	out := make([]wanted, n)
	for i, t := range order {
		out[i] = terms[t]
	}
	return out
}

// A flag says what of a learning matched beside words.
type flag uint8

const (
	inFolder flag = 1 << iota
	onFile
	sameCategory
	sameTag
)

// marked is a term that is looked up as a whole, and what it means to match.
type marked struct {
	term string
	flag flag
	near float32 // what it is worth where it is a guess
}

// marks are the query's files, folders, category and tags.
func (q *Query) marks() []marked {
	var out []marked
	add := func(kind, value string, f flag) {
		if m := (marked{term: kind + value, flag: f}); !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	for _, p := range q.Paths {
		p = path.Clean(p)
		add(markFile, p, onFile)
		add(markFolder, path.Dir(p), inFolder)
	}
	for _, g := range q.Guesses {
		p, near := path.Clean(g.Path), float32(worthGuess*g.Sure)
		out = append(out, marked{term: markFile + p, near: near}, marked{term: markFolder + path.Dir(p), near: near})
	}
	if q.Category != "" {
		add(markCategory, strings.ToLower(string(q.Category)), sameCategory)
	}
	for _, t := range q.Tags {
		add(markTag, strings.ToLower(t), sameTag)
	}
	return out
}
