package identify

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"forge/pipeline/identity"
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
		return said(p.A) == said(p.B) || l.over(models.of(p.repository()), i, size) > 0
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

// said is a message but for case and spaces.
func said(message string) string { return strings.ToLower(strings.Join(strings.Fields(message), " ")) }

// models are the shipped one or those that are fitted, by the repository left out.
type models struct {
	train   *library
	fitted  map[string]*identity.Model
	trained map[string]bool // repositories
}

func newModels(train []Pair) *models {
	m := &models{newLibrary(train), map[string]*identity.Model{}, map[string]bool{}}
	for i := range train {
		m.trained[train[i].repository()] = true
	}
	return m
}

func (m *models) of(repo string) *identity.Model {
	if len(m.trained) == 0 {
		return identity.Shipped()
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
	words map[string][]string           // of each message, in their order
	worth map[string]map[string]float64 // of each message, how much each counts
	norm  map[string]float64
	limit map[string]float64
	train []Pair
}

func newCosine(pairs, train []Pair) *cosine {
	c := &cosine{map[string][]string{}, map[string]map[string]float64{}, map[string]float64{}, map[string]float64{}, train}
	if len(train) == 0 {
		c.train = pairs
	}
	for _, list := range [][]Pair{train, pairs} {
		in := map[string]float64{} // how many messages have a word
		of := map[string][]string{}
		for i := range list {
			for _, m := range []string{list[i].A, list[i].B} {
				if _, ok := of[m]; ok {
					continue
				}
				of[m] = identity.Stems(m)
				slices.Sort(of[m])
				for _, w := range of[m] {
					in[w]++
				}
			}
		}
		for m, words := range of {
			var norm float64
			c.words[m], c.worth[m] = words, map[string]float64{}
			for _, w := range words {
				idf := math.Log(float64(len(of)) / in[w])
				c.worth[m][w] = idf * idf
				norm += idf * idf
			}
			c.norm[m] = math.Sqrt(norm)
		}
	}
	return c
}

func (c *cosine) of(p *Pair) float64 {
	var dot float64
	for _, w := range c.words[p.A] {
		if _, ok := c.worth[p.B][w]; ok {
			dot += c.worth[p.A][w]
		}
	}
	return ratio(dot, c.norm[p.A]*c.norm[p.B])
}

func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
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
