package quality

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline/measure"
	"forge/pipeline/text"
)

// compared is one series of the head against the base's.
type compared struct {
	name       string
	head, base float64 // medians
	by         float64 // how much worse the head is; under 0: better
	over       bool    // by more than is allowed
	worse      bool    // and no chance of the measuring
	p          float64
	n          int
}

// share is how much worse the head is, as a share of the base's value.
func (c compared) share() float64 {
	if c.base == 0 {
		return c.by
	}
	return c.by / max(c.base, -c.base)
}

// Judge holds what was read at the head against the bounds, and against the base. A
// base that is nil has no value: why says why.
func (g Gate) Judge(head measure.Reading, base *measure.Reading, why string) measure.Result {
	m := g.blank()
	if m.Error = g.cannot(head, base, why); m.Error != "" {
		return m
	}
	m.Unit = cmp.Or(g.Unit, head.Unit)
	all, m2 := g.compare(head, base), &m
	if need := g.tooFew(all); need > 0 {
		m.Error = fmt.Sprintf("%d benchmarks with %d measures of each side can show nothing: set repeats to %d, or measure fewer", len(all), all[0].n, need)
		return m
	}
	if len(head.Series) == 0 { // benchmarks of which the base has none either, or none that is left
		m.OK, m.Note = true, "nothing is there to measure"
		return m
	}
	m.Value = Median(head.Series[0].Samples)
	var c compared
	if len(all) > 0 {
		c = all[0]
		m.Value, m.Base = c.head, &c.base
		g.note(m2, all)
	} else if base != nil {
		m.Note = "the base has none of these"
	}
	over, worse := g.misses(m.Value), g.WorseBy != "" && c.worse
	m.OK = !over && !worse
	m.Before = over && m.Base != nil && !worse && g.missedBefore(c, head, base)
	var was measure.Reading
	if base != nil {
		was = *base
	}
	if base != nil || !m.OK {
		m.Parts = grown(head.Parts, was.Parts)
	}
	if len(head.Series) > 1 {
		for _, c := range all {
			if c.worse {
				m.Parts = append(m.Parts, measure.Part{Name: c.name, Value: c.head, Base: c.base})
			}
		}
	}
	m.Parts = slices.Clip(m.Parts[:min(len(m.Parts), 20)])
	found(&m, head.Places, was.Places)
	return m
}

// cannot says why nothing can be judged, or "".
func (g Gate) cannot(head measure.Reading, base *measure.Reading, why string) string {
	for _, r := range []*measure.Reading{&head, base} {
		if r == nil {
			continue
		}
		for _, s := range r.Series {
			for _, v := range s.Samples {
				if v < 0 && (g.Min == nil || *g.Min >= 0) {
					return fmt.Sprintf("the value is %s, and values under 0 are not expected: set min under 0 if they are right", measure.Show(v, ""))
				}
			}
		}
	}
	switch {
	case base == nil && g.WorseBy != "":
		return "there is no value at the base: " + why
	case base == nil || g.Gone:
	case base.Unit != head.Unit && somewhat(head) && somewhat(*base):
		said := func(r measure.Reading) string {
			if r.Unit == "" {
				return "without a unit"
			}
			return "in " + r.Unit
		}
		return fmt.Sprintf("the value is printed here %s, at the base %s: print it in one unit, and set unit", said(head), said(*base))
	default:
		for _, s := range base.Series {
			if !slices.ContainsFunc(head.Series, func(o measure.Series) bool { return o.Name == s.Name }) {
				return s.Name + " was measured at the base, and is not there any more"
			}
		}
	}
	if len(head.Series) == 0 && (base == nil || len(base.Series) == 0) {
		return "nothing was measured: no benchmark ran"
	}
	return ""
}

// somewhat reports whether a value is not 0, which is the same in each unit.
func somewhat(r measure.Reading) bool {
	return slices.ContainsFunc(r.Series, func(s measure.Series) bool { return Median(s.Samples) != 0 })
}

// compare holds each series that both sides have against the base's, the worst first.
func (g Gate) compare(head measure.Reading, base *measure.Reading) (out []compared) {
	if base == nil {
		return nil
	}
	both := 0
	for _, s := range head.Series {
		i := slices.IndexFunc(base.Series, func(o measure.Series) bool { return o.Name == s.Name })
		if i < 0 {
			continue
		}
		both++
		out = append(out, g.against(s, base.Series[i]))
	}
	for i := range out {
		c := &out[i]
		// Of many benchmarks some differ by chance: each must be so much surer.
		c.worse = c.over && (g.Repeats < 2 || c.p < Alpha/float64(both))
	}
	slices.SortStableFunc(out, func(a, b compared) int {
		switch {
		case a.worse != b.worse && a.worse:
			return -1
		case a.worse != b.worse:
			return 1
		case a.share() > b.share():
			return -1
		case a.share() < b.share():
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	return out
}

func (g Gate) against(head, base measure.Series) compared {
	c := compared{name: head.Name, head: Median(head.Samples), base: Median(base.Samples), p: 1, n: min(len(head.Samples), len(base.Samples))}
	if c.by = c.head - c.base; g.Higher {
		c.by = -c.by
	}
	allowed := 0.0
	if g.WorseBy != "" {
		allowed, _ = Allowance(g.WorseBy, c.base) // the settings were checked
	}
	c.over = c.by > allowed && c.by-allowed > 1e-9*max(allowed, c.head, c.base)
	if g.Repeats > 1 {
		c.p = RankTest(head.Samples, base.Samples)
	}
	return c
}

// tooFew returns how many measures it would take to show anything at all; 0: they do.
func (g Gate) tooFew(all []compared) int {
	if g.Repeats < 2 || len(all) == 0 || smallest(all[0].n, all[0].n) < Alpha/float64(len(all)) {
		return 0
	}
	need := all[0].n
	for smallest(need, need) >= Alpha/float64(len(all)) {
		need++
	}
	return need
}

// missedBefore reports whether the base misses the very bounds that the head misses, and the
// head is no worse in any of them, whichever side is the better one.
func (g Gate) missedBefore(c compared, head measure.Reading, base *measure.Reading) bool {
	over, under := g.Max != nil && c.head > *g.Max, g.Min != nil && c.head < *g.Min
	if over && !(c.base > *g.Max) || under && !(c.base < *g.Min) {
		return false
	}
	if over != g.Higher { // the side that c looks at
		return !c.worse
	}
	g.Higher = !g.Higher
	return !slices.ContainsFunc(g.compare(head, base), func(o compared) bool { return o.name == c.name && o.worse })
}

// misses reports whether a value is out of the absolute bounds.
func (g Gate) misses(v float64) bool { return g.Max != nil && v > *g.Max || g.Min != nil && v < *g.Min }

// note says what a figure alone does not.
func (g Gate) note(m *measure.Result, all []compared) {
	var out []string
	c := all[0]
	if c.name != "" {
		out = append(out, c.name)
	}
	if c.over && !c.worse && g.WorseBy != "" {
		out = append(out, fmt.Sprintf("that it is worse is not shown: p = %.2g with %s of each side", c.p, text.Plural(c.n, "measure", "measures")))
	} else if g.Repeats > 1 && c.worse {
		out = append(out, fmt.Sprintf("p = %.2g with %s of each side", c.p, text.Plural(c.n, "measure", "measures")))
	}
	m.Note = strings.Join(out, "; ")
}

// found keeps the findings, those first that the base does not have.
func found(m *measure.Result, head, base []measure.Place) {
	list, isNew := fresh(head, base)
	if isNew > 0 && isNew < len(list) {
		m.Note = strings.TrimPrefix(m.Note+"; "+fmt.Sprintf("%d of them new", isNew), "; ")
	}
	m.Places = slices.Clip(list[:min(len(list), maxPlaces)])
	m.More = len(list) - len(m.Places)
}
