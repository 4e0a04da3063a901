package stream

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
)

// Options say how much is played.
type Options struct {
	Pulls int    // in each stream
	Seeds int    // streams of each model
	Seed  uint64 // of the first
}

// Spread is a figure over the seeds.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

func spread(list []float64) Spread {
	if len(list) == 0 {
		return Spread{}
	}
	list = slices.Sorted(slices.Values(list))
	n := len(list)
	return Spread{list[0], (list[(n-1)/2] + list[n/2]) / 2, list[n-1]}
}

// Summary is what became of a model's streams under one policy.
type Summary struct {
	Policy           Policy   `json:"policy"`
	Second           Spread   `json:"second"`      // share of posted findings that was dismissed, in pull requests 26 to 50
	Rates            []Spread `json:"rates"`       // share of posted findings that was dismissed, by 50 pull requests
	Last             Block    `json:"last"`        // the last 50 pull requests of all seeds
	Posted           Spread   `json:"posted"`      // findings, in the whole stream
	Dismissed        Spread   `json:"dismissed"`   // of them
	UsefulSuppressed Spread   `json:"useful_held"` // share of what was right and wanted and blocks nothing that was held back
	Plays            []Play   `json:"plays"`       // by seed
}

// ModelResult is what became of a model's streams.
type ModelResult struct {
	Model     Model     `json:"model"`
	Summaries []Summary `json:"policies"` // the first is memory off
	Verdicts  []Verdict `json:"verdicts"` // of the policies but the first, on this model
}

// Verdict is what a policy reached, over all seeds of some models.
type Verdict struct {
	Policy           string  `json:"policy"`
	Streams          int     `json:"streams"`
	Soon             int     `json:"soon"`        // streams whose dismissal rate in pull requests 26 to 50 was at most half of that without memory
	Halved           int     `json:"halved"`      // streams whose dismissal rate in pull requests 51 to 100 was at most half of that without memory
	Under10          int     `json:"under_10"`    // streams whose dismissal rate in the last 50 pull requests was under 10 %
	UsefulSuppressed float64 `json:"useful_held"` // share of what was right and wanted and blocks nothing that was held back
	Repeated         int     `json:"repeated"`    // findings posted although dismissed before, for the same code
	Planted          int     `json:"planted"`     // true errors and criticals
	Lost             int     `json:"lost"`        // of them
	Secure           int     `json:"secure"`      // critical findings about security that were held back
}

// Result is a comparison.
type Result struct {
	Repo     string        `json:"repo"`
	Files    int           `json:"files"`
	Lines    int           `json:"lines"`
	Pulls    int           `json:"pulls"`
	Seeds    int           `json:"seeds"`
	Seed     uint64        `json:"seed"`
	Models   []ModelResult `json:"models"`
	Verdicts []Verdict     `json:"verdicts"` // of the policies but the first
}

// Compare plays every model's streams under all policies.
func Compare(ctx context.Context, c *Code, models []Model, o Options) (*Result, error) {
	if o.Pulls < 2*blockSize || o.Seeds < 1 || len(models) == 0 {
		return nil, errors.New("a comparison needs at least 100 pull requests, one seed and one model")
	}
	all := Policies()
	r := &Result{Repo: c.Name, Files: len(c.Files), Lines: c.LineCount(), Pulls: o.Pulls, Seeds: o.Seeds, Seed: o.Seed}
	var jobs sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, m := range models {
		mr := ModelResult{Model: m}
		for _, p := range all {
			mr.Summaries = append(mr.Summaries, Summary{Policy: p, Plays: make([]Play, o.Seeds)})
		}
		for seed := range o.Seeds {
			jobs.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				if ctx.Err() != nil {
					return
				}
				s := generate(c, m, o.Pulls, o.Seed+uint64(seed))
				for k := range mr.Summaries {
					mr.Summaries[k].Plays[seed] = play(s, mr.Summaries[k].Policy)
				}
			})
		}
		r.Models = append(r.Models, mr)
	}
	jobs.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i := range r.Models {
		for k := range r.Models[i].Summaries {
			r.Models[i].Summaries[k].sum()
		}
	}
	for _, p := range all[1:] {
		r.Verdicts = append(r.Verdicts, verdict(r.Models, p.Name))
		for i := range r.Models {
			m := &r.Models[i]
			m.Verdicts = append(m.Verdicts, verdict(r.Models[i:i+1], p.Name))
		}
	}
	return r, nil
}

func (s *Summary) sum() {
	over := func(f func(*Play) float64) Spread {
		var list []float64
		for i := range s.Plays {
			list = append(list, f(&s.Plays[i]))
		}
		return spread(list)
	}
	s.Second = over(func(p *Play) float64 { return p.Second.Rate() })
	for b := range s.Plays[0].Blocks {
		s.Rates = append(s.Rates, over(func(p *Play) float64 { return p.Blocks[b].Rate() }))
	}
	for i := range s.Plays {
		b := s.Plays[i].Blocks[len(s.Plays[i].Blocks)-1]
		s.Last.From, s.Last.To = b.From, b.To
		s.Last.add(b)
	}
	s.Posted = over(func(p *Play) float64 { return float64(p.All().Posted) })
	s.Dismissed = over(func(p *Play) float64 { return float64(p.All().Dismissed) })
	s.UsefulSuppressed = over(func(p *Play) float64 { a := p.All(); return float64(a.UsefulSuppressed) / float64(max(1, a.Useful)) })
}

func verdict(models []ModelResult, policy string) Verdict {
	v := Verdict{Policy: policy}
	useful, held := 0, 0
	for _, m := range models {
		off := &m.Summaries[0]
		for _, s := range m.Summaries[1:] {
			if s.Policy.Name != policy {
				continue
			}
			for i := range s.Plays {
				p, last := &s.Plays[i], s.Plays[i].Blocks[len(s.Plays[i].Blocks)-1]
				v.Streams++
				if p.Second.Rate() <= off.Plays[i].Second.Rate()/2 {
					v.Soon++
				}
				if p.Blocks[1].Rate() <= off.Plays[i].Blocks[1].Rate()/2 {
					v.Halved++
				}
				if last.Rate() < 0.1 {
					v.Under10++
				}
				a := p.All()
				useful, held, v.Repeated = useful+a.Useful, held+a.UsefulSuppressed, v.Repeated+a.Repeated
				v.Planted, v.Lost, v.Secure = v.Planted+p.Planted, v.Lost+p.Lost, v.Secure+p.Secure
			}
		}
	}
	v.UsefulSuppressed = float64(held) / float64(max(1, useful))
	return v
}
