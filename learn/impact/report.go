package impact

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline/record"
)

// Enough is how many runs a side needs before a difference is told. Below, an
// interval says little more than that nothing is known.
const Enough = 5

// Options choose what is reported.
type Options struct {
	Repo string    // only named in the report
	Days int       // of the period, today among them
	Now  time.Time //
}

// Since is the beginning of the period: of its first day, UTC.
func (o Options) Since() time.Time {
	return o.Now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-o.Days)
}

// Differences are what having a learning changed, against not having it; nil where
// too little is known. All of it is finite.
type Differences struct {
	FirstPass *Interval `json:"first_pass"` // of the share of runs whose first review was approved; of one learning: went well, as [record.Outcome.Well] has it
	Bounces   *Interval `json:"bounces"`    // of a run
	Dismissed *Interval `json:"dismissed"`  // of the share of a run's findings that people dismissed
}

// Overall is what was recalled.
type Overall struct {
	Runs     int `json:"runs"`     // that learnings were recalled for
	Given    int `json:"given"`    // learnings, over all runs
	Withheld int `json:"withheld"` // likewise
}

// Ranked is what one learning changed. What it says is filled in by whoever knows.
type Ranked struct {
	Learning int64  `json:"learning"`
	Scope    string `json:"scope,omitempty"`
	Content  string `json:"content,omitempty"`
	State    string `json:"state,omitempty"`
	Given    int    `json:"given"`    // runs
	Withheld int    `json:"withheld"` // runs
	Enough   bool   `json:"enough"`   // runs on both sides
	Differences
}

// Decided is a finding on which a person decided, with when.
type Decided struct {
	Dismissed bool // else people acted on it
	At        time.Time
}

// Feedback is what became of findings: what people decided on, and what they were not
// asked about.
type Feedback struct {
	Decided    []Decided
	Suppressed []time.Time // when findings were held back
}

// Week is what people decided on findings in seven days.
type Week struct {
	From       string      `json:"from"` // its first day, UTC: 2026-01-02
	Decided    int         `json:"decided"`
	Dismissed  int         `json:"dismissed"`
	Suppressed int         `json:"held"`                  // findings that were not posted
	Interval   *[2]float64 `json:"interval_95,omitempty"` // of the share, Wilson; nil without decisions
}

// Report is what learning is worth, in a period.
type Report struct {
	Repo      string   `json:"repo"` // "owner/name"; "" for all
	Days      int      `json:"days"`
	From      string   `json:"from"`   // the first day, UTC: 2026-01-02
	To        string   `json:"to"`     // the last one, today
	Memory    Whole    `json:"memory"` // of all times: its interval is good however often it is looked at
	Looks     []Look   `json:"looks"`  // back at runs, of all times
	Overall   Overall  `json:"overall"`
	Learnings []Ranked `json:"learnings"` // with enough runs, most useful first; then those without, by their runs
	Weeks     []Week   `json:"weeks"`     // oldest first; the last ends today
}

// AtMost is the share that people would have dismissed if all had been posted, and
// they had dismissed all that was held back: what holding back spared them is at most
// the difference. It is false when nothing was decided or held.
func (w Week) AtMost() (share float64, known bool) {
	n := w.Decided + w.Suppressed
	return float64(w.Dismissed+w.Suppressed) / float64(max(1, n)), n > 0
}

// Of reports on runs and decisions. What was heard before the period is passed over;
// the outcomes are to be those of its runs.
func Of(outcomes []record.Outcome, h Feedback, o Options) Report {
	outside := func(at time.Time) bool { return at.Before(o.Since()) || at.After(o.Now) }
	within := func(list []Decided) []Decided {
		return slices.DeleteFunc(slices.Clone(list), func(d Decided) bool { return outside(d.At) })
	}
	h = Feedback{within(h.Decided), slices.DeleteFunc(slices.Clone(h.Suppressed), outside)}
	return Report{Repo: o.Repo, Days: o.Days, From: o.Since().Format(time.DateOnly), To: o.Now.UTC().Format(time.DateOnly),
		Overall: overall(outcomes), Learnings: ranked(Estimate(outcomes)), Weeks: weeks(h, o)}
}

func overall(list []record.Outcome) (o Overall) {
	for i := range list {
		g, w := len(list[i].Given), len(list[i].Withheld)
		o.Given, o.Withheld = o.Given+g, o.Withheld+w
		if g+w > 0 {
			o.Runs++
		}
	}
	return o
}

// ranked orders learnings by what they did for the first review.
func ranked(list []Effect) []Ranked {
	out := []Ranked{}
	for _, e := range list {
		r := Ranked{Learning: e.Learning, Given: e.Given, Withheld: e.Withheld, Enough: min(e.Given, e.Withheld) >= Enough}
		if r.Enough {
			r.Differences = Differences{known(e.FirstPass), known(e.Bounces), known(e.Dismissed)}
		}
		out = append(out, r)
	}
	value := func(r Ranked) float64 {
		if r.FirstPass == nil {
			return -2
		}
		return r.FirstPass.Value
	}
	slices.SortFunc(out, func(a, b Ranked) int {
		return cmp.Or(cmp.Compare(value(b), value(a)), cmp.Compare(b.Given+b.Withheld, a.Given+a.Withheld), cmp.Compare(a.Learning, b.Learning))
	})
	return out
}

func known(i Interval) *Interval {
	if !i.Known {
		return nil
	}
	return &i
}

// weeks counts by whole weeks back from today; what is left of the period at its
// beginning is a short one.
func weeks(h Feedback, o Options) (out []Week) {
	for end := o.Now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1); end.After(o.Since()); end = end.AddDate(0, 0, -7) {
		from := end.AddDate(0, 0, -7)
		if from.Before(o.Since()) {
			from = o.Since()
		}
		w := Week{From: from.Format(time.DateOnly)}
		for _, d := range h.Decided {
			if d.At.Before(from) || !d.At.Before(end) {
				continue
			}
			w.Decided++
			if d.Dismissed {
				w.Dismissed++
			}
		}
		for _, at := range h.Suppressed {
			if !at.Before(from) && at.Before(end) {
				w.Suppressed++
			}
		}
		if w.Decided > 0 {
			low, high := Wilson(w.Dismissed, w.Decided, z95)
			w.Interval = &[2]float64{low, high}
		}
		out = append(out, w)
	}
	slices.Reverse(out)
	return out
}

// Text shows a difference with its interval, for people: "+8 pt (−2 to +18)" of
// shares, "−0.25 (−0.60 to +0.10)" of means.
func (i Interval) Text(share bool) string {
	signed := func(v float64) string {
		text := fmt.Sprintf("%+.2f", v)
		if share {
			text = fmt.Sprintf("%+.0f", 100*v)
		}
		return strings.Replace(text, "-", "−", 1)
	}
	unit := ""
	if share {
		unit = " pt"
	}
	return fmt.Sprintf("%s%s (%s to %s)", signed(i.Value), unit, signed(i.Low), signed(i.High))
}
