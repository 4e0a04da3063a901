package stream

import (
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"forge/learn"
)

func TestPrequential(t *testing.T) {
	c, err := Read("learn", os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	var streams [][]*stream
	var wg sync.WaitGroup
	for _, m := range Models() {
		list := make([]*stream, 2)
		for s := range list {
			wg.Go(func() { list[s] = generate(c, m, 200, uint64(101+s)) })
		}
		streams = append(streams, list)
	}
	wg.Wait()
	type pt struct {
		p      float64
		y      bool
		useful bool
	}
	report := func(name string, predict func(m Model, s *stream) []pt) {
		line := ""
		var tot, n float64
		var h15, h20, h25 float64
		for i, m := range Models() {
			var all []pt
			for _, s := range streams[i] {
				all = append(all, predict(m, s)...)
			}
			ll := 0.0
			for _, x := range all {
				q := min(max(x.p, 1e-3), 1-1e-3)
				if x.y {
					ll -= math.Log(q)
				} else {
					ll -= math.Log(1 - q)
				}
			}
			tot += ll
			n += float64(len(all))
			slices.SortFunc(all, func(a, b pt) int { return map[bool]int{true: 1, false: -1}[a.p > b.p] })
			lost := func(target float64) float64 {
				useful, kept, dis, best, total := 0, 0, 0, 0, 0
				for _, x := range all {
					if x.useful {
						total++
					}
				}
				for _, x := range all {
					kept++
					if x.useful {
						useful++
					}
					if x.y {
						dis++
					}
					if float64(dis) <= target*float64(kept) {
						best = max(best, useful)
					}
				}
				return 100 * (1 - float64(best)/float64(total))
			}
			line += fmt.Sprintf(" %s %.3f %.0f/%.0f", m.Name[:4], ll/float64(len(all)), lost(0.1), lost(0.2))
			h15 += lost(0.1) / 8
			h20 += lost(.15) / 8
			h25 += lost(.2) / 8
		}
		fmt.Printf("%-18s loss %.4f, useful lost at 10%% %.1f 15%% %.1f 20%% %.1f |%s\n", name, tot/n, h15, h20, h25, line)
	}
	bayes := func(m Model, s *stream) (out []pt) {
		for i, p := range s.pulls {
			if i < 100 {
				continue
			}
			for k := range p.found {
				f := &p.found[k]
				if f.Severity.Blocks() {
					continue
				}
				q := 1 - m.Mistakes
				if !f.unliked {
					d := m.Telling / 0.12
					w := sigm(logi(m.False) - d*(f.Confidence-0.65))
					q = w*(1-m.Mistakes) + (1-w)*m.Mistakes
				}
				out = append(out, pt{q, f.cause != CauseMistake && f.does == "dismissed" || f.does == "dismissed", f.useful})
			}
		}
		return out
	}
	report("bayes", bayes)
	model := func(m Model, s *stream) (out []pt) {
		var ds []learn.Decision
		for i, p := range s.pulls {
			if i >= 100 {
				var known []learn.Decision
				for _, d := range ds {
					if !d.At.After(p.at) {
						known = append(known, d)
					}
				}
				if i%10 == 0 {
					last = learn.NewPredictor(known, p.at, 0.1)
				}
			}
			for k := range p.found {
				f := &p.found[k]
				if f.Severity.Blocks() {
					continue
				}
				if i >= 100 {
					out = append(out, pt{last.Of(&f.Finding), f.does == "dismissed", f.useful})
				}
				if f.does != "" && (f.does != "ignored" || learn.Tune.Ignored > 0) || f.acts {
					w := f.by.weight
					if f.does == "ignored" {
						w *= learn.Tune.Ignored
					}
					ds = append(ds, learn.Decision{Finding: f.Finding, Dismissed: f.does == "dismissed" || f.does == "ignored", Actor: f.by.Actor, Weight: w, At: p.at.Add(f.after)})
				}
			}
		}
		return out
	}
	old := learn.Tune
	learn.Tune.Pop = 30
	for _, v := range variants {
		begun := time.Now()
		save := learn.Tune
		v.f(&learn.Tune)
		report(v.name, model)
		learn.Tune = save
		fmt.Println(learn.Passes/learn.Fits, learn.NEffects/learn.Fits, learn.Cells/learn.Fits, time.Since(begun))
		_ = begun
	}
	learn.Tune = old
}

var last *learn.Predictor

func sigm(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
func logi(p float64) float64 { return math.Log(p / (1 - p)) }

type variant struct {
	name string
	f    func(*learn.Tuning)
}
