package stream

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"forge/learn"
	"forge/pipeline"
)

func decideWith(t *learn.Tuning) func([]pipeline.Signal) []learn.Decision {
	return func(signals []pipeline.Signal) (out []learn.Decision) {
		for _, s := range signals {
			if s.Off || !(s.Weight > 0) || s.About == nil {
				continue
			}
			d := learn.Decision{Finding: *s.About, Actor: s.Actor, Weight: min(1, s.Weight), At: s.At}
			switch s.Kind {
			case pipeline.SignalDismissed:
				d.Dismissed = true
				if t.NoReason && s.Text == "" {
					d.Weight /= 2
				}
			case pipeline.SignalIgnored:
				if t.Ignored == 0 {
					continue
				}
				d.Dismissed, d.Weight = true, d.Weight*t.Ignored
			case pipeline.SignalApplied, pipeline.SignalRewritten:
			default:
				continue
			}
			out = append(out, d)
		}
		return out
	}
}

func TestExp(t *testing.T) {
	c, err := Read("learn", os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	seeds := []uint64{101, 102}
	type key struct {
		m    int
		seed uint64
	}
	streams := map[key]*stream{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i, m := range Models() {
		for _, s := range seeds {
			wg.Go(func() {
				st := generate(c, m, 200, s)
				mu.Lock()
				streams[key{i, s}] = st
				mu.Unlock()
			})
		}
	}
	wg.Wait()
	run := func(name string, p Policy, tune func(*learn.Tuning)) {
		old := learn.Tune
		tune(&learn.Tune)
		if learn.Tune.Pop == 0 {
			learn.Tune.Pop = learn.Tune.HalfLife
		}
		Decide = decideWith(&learn.Tune)
		begun := time.Now()
		var b strings.Builder
		var rates, helds []float64
		halved, under := 0, 0
		var last Block
		for i, m := range Models() {
			var r1, r3, h, hl float64
			for _, s := range seeds {
				off := play(streams[key{i, s}], Policies()[0])
				pl := play(streams[key{i, s}], p)
				if pl.Blocks[1].Rate() <= off.Blocks[1].Rate()/2 {
					halved++
				}
				if pl.Blocks[3].Rate() < 0.1 {
					under++
				}
				if pl.Lost > 0 || pl.All().Repeated > 0 {
					fmt.Println("LOST", pl.Lost, pl.All().Repeated)
				}
				a := pl.All()
				if i == 0 {
					last.add(pl.Blocks[3])
				}
				n := float64(len(seeds))
				r1 += pl.Blocks[1].Rate() / n
				r3 += pl.Blocks[3].Rate() / n
				h += float64(a.UsefulHeld) / float64(a.Useful) / n
				hl += float64(pl.Blocks[3].UsefulHeld) / float64(pl.Blocks[3].Useful) / n
			}
			rates, helds = append(rates, r3), append(helds, h)
			fmt.Fprintf(&b, " %s %.0f→%.0f/%.0f(%.0f)", m.Name[:4], 100*r1, 100*r3, 100*h, 100*hl)
		}
		mean := func(l []float64) (x float64) {
			for _, v := range l {
				x += v / float64(len(l))
			}
			return
		}
		fmt.Printf("%-22s halved %2d under %2d of %d, end %.1f held %.1f |%s %v\n", name, halved, under, len(seeds)*8, 100*mean(rates), 100*mean(helds), b.String(), time.Since(begun).Round(time.Millisecond))
		learn.Tune = old
		fmt.Println("     base at the end:", "found", last.Found, "posted", last.Posted, "dismissed", last.Dismissed, "causes", last.Causes, "useful", last.Useful, last.UsefulHeld)
		if learn.Fits > 0 {
			fmt.Println(learn.Passes/learn.Fits, learn.NEffects/learn.Fits, learn.Cells/learn.Fits)
		}
	}
	pols := Policies()
	find := func(n string) Policy { return pols[slices.IndexFunc(pols, func(p Policy) bool { return p.Name == n })] }
	_ = find
	experiments(run, find)
}
