package identity

import (
	"fmt"
	"math"
	"slices"

	"forge/pipeline"
)

// Figures are how well pairs of one kind are told: of those taken for one problem,
// how many are; and of those that are, how many are taken for one.
type Figures struct {
	Kind      string  `json:"kind"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	Pairs     int     `json:"pairs"`
}

// Row is a method with its figures, one for each kind.
type Row struct {
	Method string    `json:"method"`
	Sets   []Figures `json:"sets"`
}

// Measure measures on pairs what Resolve makes of two findings at the same code, and
// simpler methods beside it. The first row is Resolve's, with the other comments on
// the pull request as what the run knows besides; in the second it knows nothing.
//
// With train, a repository's pairs are judged by a model that is fitted on those
// pairs of train that are of other repositories; without, by the one that is shipped.
func Measure(pairs, train []Pair) ([]Row, error) {
	l, models := newLibrary(pairs), newModels(train)
	if len(models.trained) == 1 {
		for i := range pairs {
			if repo := pairs[i].repository(); models.trained[repo] {
				return nil, fmt.Errorf("the pairs to fit on are all of %s, which is to be measured: nothing is left when it is left out", repo)
			}
		}
	}
	same := func(i, size int) bool {
		p := &pairs[i]
		s := l.subject(p.Pull, size)
		old, found := newCandidate(l.lexicon, anywhere(p.A)), newCandidate(l.lexicon, anywhere(p.B))
		old.words, found.words = s.weigh(old.text), s.weigh(found.text)
		_, ok := models.of(p.repository()).judge(s).score(old, found)
		return ok
	}
	cosine := newCosine(pairs, train)
	var out []Row
	for _, m := range []struct {
		name string
		same func(i int) bool
	}{
		{"Forge", func(i int) bool { return same(i, -1) }},
		{"Forge, of the pair alone", func(i int) bool { return same(i, 0) }},
		{"cosine of idf-weighted words", func(i int) bool { return cosine.same(&pairs[i]) }},
	} {
		out = append(out, Row{m.name, figures(pairs, m.same)})
	}
	return out, nil
}

// anywhere makes a finding of a comment whose place is not known: all of them have
// the same.
func anywhere(message string) *pipeline.Finding {
	return &pipeline.Finding{File: "file", Line: 1, Code: "the same code", Message: message}
}

// models are the shipped one or those that are fitted, by the repository left out.
type models struct {
	train   *library
	fitted  map[string]*Model
	trained map[string]bool // repositories
}

func newModels(train []Pair) *models {
	m := &models{newLibrary(train), map[string]*Model{}, map[string]bool{}}
	for i := range train {
		m.trained[train[i].repository()] = true
	}
	return m
}

func (m *models) of(repo string) *Model {
	if len(m.trained) == 0 {
		return Shipped()
	}
	if !m.trained[repo] {
		repo = "" // nothing is left out
	}
	if m.fitted[repo] == nil {
		m.fitted[repo] = m.train.fit(func(p *Pair) bool { return p.repository() != repo })
	}
	return m.fitted[repo]
}

// figures counts, kinds in the order in which they come.
func figures(pairs []Pair, same func(i int) bool) []Figures {
	var out []Figures
	var taken, right, real []float64
	for i := range pairs {
		p := &pairs[i]
		k := slices.IndexFunc(out, func(f Figures) bool { return f.Kind == p.Kind })
		if k < 0 {
			k = len(out)
			out = append(out, Figures{Kind: p.Kind})
			taken, right, real = append(taken, 0), append(right, 0), append(real, 0)
		}
		out[k].Pairs++
		if p.Same {
			real[k]++
		}
		if same(i) {
			taken[k]++
			if p.Same {
				right[k]++
			}
		}
	}
	for k := range out {
		out[k].Precision, out[k].Recall = round(ratio(right[k], taken[k])), round(ratio(right[k], real[k]))
	}
	return out
}

// cosine compares messages by the cosine of their words, weighted by how few of all
// messages have them. Its limit is set as Forge's is, on other repositories' pairs.
type cosine struct {
	text  map[string][]weight
	norm  map[string]float64
	limit map[string]float64
	train []Pair
}

func newCosine(pairs, train []Pair) *cosine {
	c := &cosine{map[string][]weight{}, map[string]float64{}, map[string]float64{}, train}
	if len(train) == 0 {
		c.train = pairs
	}
	for _, list := range [][]Pair{train, pairs} {
		s, texts, lex := newSubject(), map[string]*text{}, lexicon{}
		for i := range list {
			for _, m := range []string{list[i].A, list[i].B} {
				if texts[m] == nil {
					texts[m] = lex.read(m)
					s.add(texts[m])
				}
			}
		}
		for m, t := range texts {
			var norm float64
			c.text[m] = nil
			for _, it := range t[vStem] {
				idf := math.Log(float64(s.messages) / float64(s.in[it.id]))
				c.text[m] = append(c.text[m], weight{it.id, idf, idf * idf})
				norm += idf * idf
			}
			c.norm[m] = math.Sqrt(norm)
		}
	}
	return c
}

func (c *cosine) of(p *Pair) float64 {
	_, dot := shared(c.text[p.A], c.text[p.B])
	return ratio(dot, c.norm[p.A]*c.norm[p.B])
}

func (c *cosine) same(p *Pair) bool {
	repo := p.repository()
	if _, ok := c.limit[repo]; !ok {
		byKind := map[string][]float64{}
		for i := range c.train {
			if o := &c.train[i]; o.Same && o.repository() != repo {
				byKind[o.Kind] = append(byKind[o.Kind], c.of(o))
			}
		}
		c.limit[repo] = strictest(byKind)
	}
	return c.of(p) >= c.limit[repo]
}
