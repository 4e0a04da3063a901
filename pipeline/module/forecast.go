package module

// Price is what a feature takes, by the model of agents of the laboratory's `loop`.
type Price struct {
	Minutes float64
	USD     float64
}

// Forecast is what a split feature takes in one piece and as modules, with at most parallel
// at once, where a module of size M is a middling task for one run. Both are means of what
// its `modules` plays; its package holds them to that.
func (s *Split) Forecast(parallel int) (whole, split Price) {
	total, needs := 0.0, 0
	for i := range s.Modules {
		total += tasks(&s.Modules[i])
		needs += len(s.Modules[i].Needs)
	}
	whole = loop(total, 1)
	build := func(m *Module) Price {
		p := loop(tasks(m), tasks(m)/total)
		return Price{p.Minutes + 2*tested.Minutes + again*rework.Minutes, p.USD + again*rework.USD}
	}
	split.Minutes = s.play(parallel, func(m *Module) float64 { return build(m).Minutes })
	for i := range s.Modules {
		split.USD += build(&s.Modules[i]).USD
	}
	pairs := len(s.Modules) * (len(s.Modules) - 1) / 2
	mistakes := 0.30*float64(needs) + 0.05*float64(pairs-needs) // which only the integration sees
	for _, part := range []struct {
		Price
		times float64
	}{{contract, 1}, {wired, 1}, {corrected, mistakes}, {review, (total - unwired) / 2}} {
		split.Minutes += part.times * part.Minutes
		split.USD += part.times * part.USD
	}
	return whole, split
}

// tasks is the size of a module in middling tasks.
func tasks(m *Module) float64 { return float64(max(1, units(m.Size))) / 2 }

// What the model takes, in the mean.
const (
	unwired = 0.5  // size of what is left to wire, in middling tasks
	again   = 0.05 // chance that a merge sends a module back
)

var (
	contract  = Price{6.5, 0.4}   // with the plan, and the tests of its base
	tested    = Price{2, 0}       // of a base, or of a merge
	review    = Price{2, 0.15}    // of a middling task's change
	rework    = Price{9, 0.55}    // with its review and tests
	wired     = Price{12.5, 0.87} // what is left to wire, when nothing is wrong
	corrected = Price{10, 0.7}    // a mistake between modules, until it is gone
	loops     = []struct {        // of a size that can be solved
		size float64
		Price
	}{{0, Price{6, 0.3}}, {0.5, Price{17.1, 1.21}}, {1, Price{28.3, 2.12}}, {2, Price{55.4, 4.32}}, {3, Price{84.8, 6.68}},
		{4, Price{116.3, 9.20}}, {6, Price{186.5, 14.64}}, {8, Price{272.6, 21.32}}, {12, Price{429.3, 33.62}}}
)

// loop is what an ordinary loop takes over so many middling tasks. It has its share of the
// chance that something in the feature cannot be solved at once.
func loop(size, share float64) Price {
	k := 1
	for k < len(loops)-1 && loops[k].size < size {
		k++
	}
	a, b := loops[k-1], loops[k]
	at := (size - a.size) / (b.size - a.size)
	hard := share * (7 + 2*size)
	return Price{a.Minutes + at*(b.Minutes-a.Minutes) + hard, a.USD + at*(b.USD-a.USD) + hard*0.073}
}
