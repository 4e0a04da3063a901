// Package evaluate measures recall on labelled sets: how good its ranking is, and
// how fast.
//
// A set is made from a project's history. A learning is a commit: its message, and
// the folders that it touched. A query is a later change to one file; relevant to
// it are the earlier commits that changed the same file (grade 1) or the same
// function of it (grade 2). A ranking sees the learnings in order of time, and for
// each query only those that were there before it.
package ranking

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"forge/learn/recall"
	"forge/pipeline"
)

// Set is one project's learnings, by rising ID, and queries, by rising At.
type Set struct {
	Name      string
	Learnings []Learning
	Queries   []Query
}

// Learning is a commit.
type Learning struct {
	ID      int64
	Repo    string
	Date    time.Time
	Text    string
	Context []string // folders, "." for the top
}

// Query is a later change to one file.
type Query struct {
	At        int64 // learnings with a lower ID were there
	Path      string
	Functions []string
	Words     []string      // identifiers of the changed lines
	Relevant  map[int64]int // learning → grade

	// Of a task, which has no path yet: what is asked for, the repository's files, and by
	// name in the text how many lines of which files have it.
	Text string
	Tree []string
	Hits map[string]map[string]int
}

// Ranking is what is measured. Rank returns learnings' IDs, best first.
type Ranking interface {
	Put(l Learning) error
	Rank(q Query, now time.Time) []int64
}

// Figures are the quality of a ranking: means over queries, 0 to 1.
type Figures struct {
	NDCG float64 // at 5: gain 2^grade − 1, the ideal from all that is relevant
	P    float64 // at 5: share of relevant ones
	MRR  float64 // one by the rank of the first relevant one
}

const cut = 5

// Each runs a set's queries in order of time.
func (s *Set) Each(r Ranking) (out []Figures, err error) {
	known := 0
	for _, q := range s.Queries {
		for known < len(s.Learnings) && s.Learnings[known].ID < q.At {
			if err := r.Put(s.Learnings[known]); err != nil {
				return nil, err
			}
			known++
		}
		now := time.Time{}
		if known > 0 { // of the change itself nothing may be known, not even when it was
			now = s.Learnings[known-1].Date
		}
		out = append(out, judge(r.Rank(q, now), q.Relevant))
	}
	return out, nil
}

// Gain is how much better one ranking's nDCG is than another's over the same queries, and
// the interval in which it is in 95 of 100 sets of as many queries, drawn from these anew
// (the bootstrap; rng draws).
func Gain(better, than []Figures, rng *rand.Rand) (mean, low, high float64) {
	const draws = 2000
	n := len(better)
	means := make([]float64, draws)
	for i := range means {
		for range n {
			k := rng.IntN(n)
			means[i] += (better[k].NDCG - than[k].NDCG) / float64(n)
		}
	}
	slices.Sort(means)
	return Mean(better).NDCG - Mean(than).NDCG, means[draws/40], means[draws-draws/40]
}

func judge(ranked []int64, relevant map[int64]int) Figures {
	var f Figures
	var ideal []int
	for _, grade := range relevant {
		ideal = append(ideal, grade)
	}
	slices.SortFunc(ideal, func(a, b int) int { return cmp.Compare(b, a) })
	best := 0.0
	for rank, grade := range ideal[:min(cut, len(ideal))] {
		best += gain(rank, grade)
	}
	for rank, id := range ranked {
		grade := relevant[id]
		if grade > 0 && f.MRR == 0 {
			f.MRR = 1 / float64(rank+1)
		}
		if grade > 0 && rank < cut {
			f.NDCG += gain(rank, grade) / best
			f.P += 1.0 / cut
		}
	}
	return f
}

func gain(rank, grade int) float64 {
	return (math.Exp2(float64(grade)) - 1) / math.Log2(float64(rank+2))
}

// Mean is the mean over queries, or over sets, each of which counts the same.
func Mean(all []Figures) Figures {
	var m Figures
	for _, f := range all {
		n := float64(len(all))
		m.NDCG += f.NDCG / n
		m.P += f.P / n
		m.MRR += f.MRR / n
	}
	return m
}

// Product is the product's recall as a [Ranking].
type Product struct{ index *recall.Index }

// NewProduct returns the product's recall, empty.
func NewProduct() *Product { return &Product{recall.New()} }

// Put implements [Ranking].
func (p *Product) Put(l Learning) error { return p.index.Put(l.Learning("set")) }

// Rank implements [Ranking]. A hundred hits are enough to find the first relevant one.
func (p *Product) Rank(q Query, now time.Time) []int64 {
	var ids []int64
	for _, h := range p.index.Search(q.Query("set", 100, now)) {
		ids = append(ids, h.ID)
	}
	return ids
}

// Learning is a set's learning as the program knows one. Nothing tells them apart
// in confidence.
func (l Learning) Learning(scope string) pipeline.Learning {
	return pipeline.Learning{
		ID: l.ID, Scope: scope, Type: pipeline.LearningEpisodic, Content: l.Text, Context: strings.Join(l.Context, ", "),
		Source: "import", Base: 1, Confidence: 1, Created: l.Date, Touched: l.Date, State: "active",
	}
}

// Query is a set's query as a planner or reviewer asks it.
func (q Query) Query(scope string, limit int, now time.Time) recall.Query {
	if q.Path == "" {
		return recall.Query{Scopes: []string{scope}, Text: q.Text, Guesses: recall.Guesses(q.Text, q.Tree, q.Hits), Limit: limit, Now: now}
	}
	return recall.Query{Scopes: []string{scope}, Paths: []string{q.Path}, Functions: q.Functions, Words: q.Words, Limit: limit, Now: now}
}

// Load reads the sets of a directory: its files NAME.jsonl.gz and NAME.jsonl.
func Load(dir string) ([]*Set, error) {
	var files []string
	for _, pattern := range []string{"*.jsonl.gz", "*.jsonl"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, fmt.Errorf("load labelled sets of %s: %w", dir, err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("load labelled sets of %s: there is no file *.jsonl.gz or *.jsonl: name the directory that holds them", dir)
	}
	slices.Sort(files)
	var sets []*Set
	for _, file := range files {
		s, err := read(file)
		if err != nil {
			return nil, fmt.Errorf("load labelled set %s: %w", file, err)
		}
		sets = append(sets, s)
	}
	return sets, nil
}

func read(file string) (s *Set, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var in io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, err
		}
	}
	name := filepath.Base(file)
	return parse(name[:strings.Index(name, ".jsonl")], in)
}

// parse reads a set: a JSON object a line.
func parse(name string, in io.Reader) (*Set, error) {
	s := &Set{Name: name}
	d := json.NewDecoder(in)
	for n := 1; ; n++ {
		var line struct {
			Kind string
			Text string // of either
			Learning
			Query
		}
		if err := d.Decode(&line); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		line.Learning.Text, line.Query.Text = line.Text, line.Text
		switch line.Kind {
		case "learning":
			s.Learnings = append(s.Learnings, line.Learning)
		case "query", "task":
			for id := range line.Relevant {
				if id >= line.At {
					return nil, fmt.Errorf("line %d: learning %d is relevant to a change before it, at %d", n, id, line.At)
				}
			}
			s.Queries = append(s.Queries, line.Query)
		default:
			return nil, fmt.Errorf("line %d: kind %q is neither learning nor query", n, line.Kind)
		}
	}
	if len(s.Queries) == 0 {
		return nil, errors.New("it has no queries")
	}
	slices.SortStableFunc(s.Learnings, func(a, b Learning) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(s.Queries, func(a, b Query) int { return cmp.Compare(a.At, b.At) })
	return s, nil
}
