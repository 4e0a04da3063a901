package impact

import (
	"fmt"
	"slices"
	"strings"

	"forge/pipeline/record"
)

// Arm is one side of a comparison of runs.
type Arm struct {
	Runs      int `json:"runs"`
	FirstPass int `json:"first_pass"` // of them, those whose first review was approved
}

// text shows an arm: "71 % of 140".
func (a Arm) text() string {
	if a.Runs == 0 {
		return "none"
	}
	return fmt.Sprintf("%.0f %% of %d", 100*float64(a.FirstPass)/float64(a.Runs), a.Runs)
}

// Whole is what the memory as a whole changes: runs that were given what Forge has learnt
// against those for which it was drawn, when they began, that they work without.
type Whole struct {
	With      Arm       `json:"with"`
	Without   Arm       `json:"without"`
	FirstPass *Interval `json:"first_pass"` // difference, good however often it is looked at; nil: too few runs
}

// WholeOf compares runs for which it was drawn whether they work without memory. Runs with
// the same probability of that are compared with each other, and the differences are
// pooled by the weights of Mantel and Haenszel: a repository that sets another share, or
// changes it, is not mixed up with the others. Runs are compared as they were drawn,
// whether anything was there to be told or not. The interval is that of [Anytime].
func WholeOf(drawn []record.Outcome) (w Whole) {
	arms := map[float64]*[2]Arm{} // with, without
	for _, o := range drawn {
		if o.Holdout == nil || !(o.Holdout.Share > 0 && o.Holdout.Share < 1) {
			continue
		}
		if arms[o.Holdout.Share] == nil {
			arms[o.Holdout.Share] = &[2]Arm{}
		}
		for _, a := range []*Arm{&arms[o.Holdout.Share][side(o.Holdout.Out)], []*Arm{&w.With, &w.Without}[side(o.Holdout.Out)]} {
			a.Runs++
			if o.FirstPass {
				a.FirstPass++
			}
		}
	}
	var difference, variance, weights float64
	var with, without int // in shares that have both
	shares := make([]float64, 0, len(arms))
	for s := range arms {
		shares = append(shares, s)
	}
	slices.Sort(shares) // sums of floats depend on their order
	for _, s := range shares {
		a, b := arms[s][0], arms[s][1]
		if a.Runs == 0 || b.Runs == 0 {
			continue
		}
		with, without = with+a.Runs, without+b.Runs
		weight := float64(a.Runs) * float64(b.Runs) / float64(a.Runs+b.Runs)
		p, v := share(a.FirstPass, a.Runs)
		q, u := share(b.FirstPass, b.Runs)
		difference, variance, weights = difference+weight*(p-q), variance+weight*weight*(v+u), weights+weight
	}
	if with >= LeastWithheld && without >= LeastWithheld {
		i := always(difference/weights, variance/(weights*weights))
		w.FirstPass = &i
	}
	return w
}

func side(out bool) int {
	if out {
		return 1
	}
	return 0
}

// Worse reports whether runs do worse with memory than without, by more than chance.
func (w Whole) Worse() bool { return w.FirstPass != nil && w.FirstPass.High < 0 }

// Says compares both sides in one sentence, without a stop at its end.
func (w Whole) Says() string {
	return fmt.Sprintf("runs with memory against runs without: first review approved %s against %s", w.With.text(), w.Without.text())
}

// Text shows it for people, in lines of its own; "" when nothing was ever drawn.
func (w Whole) Text() string {
	if w.With.Runs+w.Without.Runs == 0 {
		return ""
	}
	text := w.Says()
	text = strings.ToUpper(text[:1]) + text[1:]
	if w.FirstPass == nil {
		return fmt.Sprintf("%s; too few runs to tell.\n\n", text)
	}
	text += fmt.Sprintf(": %s, an interval\nthat is good however often it is looked at.\n", w.FirstPass.Text(true))
	if w.Worse() {
		text += "Runs do worse with memory: " + WorseFix + ".\n"
	}
	return text + "\n"
}

// WorseFix says what to do when runs do worse with memory.
const WorseFix = "`forge memory list` shows what is remembered, `forge memory forget ID` ends what misleads"
