package impact

import (
	"cmp"
	"fmt"
	"math"
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

// Overall is what a learning more changes in a run, whichever it is.
type Overall struct {
	Runs     int `json:"runs"`     // that learnings were recalled for
	Given    int `json:"given"`    // learnings, over all runs
	Withheld int `json:"withheld"` // likewise
	Differences
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
	Judged
	At time.Time
}

// Feedback is what became of findings: what people decided on, and what they were not
// asked about.
type Feedback struct {
	Decided    []Decided   // with the reviewer's confidence
	Suppressed []time.Time // when findings were held back
}

// Reliability is a calibration with the intervals of its bins.
type Reliability struct {
	Count int           `json:"count"`
	Brier *float64      `json:"brier"`      // nil without findings
	Base  *float64      `json:"brier_base"` // what always saying the share of right ones would give
	Right *float64      `json:"right"`      // that share
	Bins  []ReliableBin `json:"bins"`
}

// ReliableBin is a bin with Wilson's 95 % interval of the share that was right.
type ReliableBin struct {
	Bin
	Interval [2]float64 `json:"interval_95"`
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
	Repo        string      `json:"repo"` // "owner/name"; "" for all
	Days        int         `json:"days"`
	From        string      `json:"from"`   // the first day, UTC: 2026-01-02
	To          string      `json:"to"`     // the last one, today
	Memory      Whole       `json:"memory"` // of all times: its interval is good however often it is looked at
	Looks       []Look      `json:"looks"`  // back at runs, of all times
	Overall     Overall     `json:"overall"`
	Learnings   []Ranked    `json:"learnings"`   // with enough runs, most useful first; then those without, by their runs
	Calibration Reliability `json:"calibration"` // of the reviewer's confidence
	Weeks       []Week      `json:"weeks"`       // oldest first; the last ends today
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
		Overall: overall(outcomes), Learnings: ranked(Estimate(outcomes)), Calibration: reliability(h.Decided),
		Weeks: weeks(h, o)}
}

func overall(list []record.Outcome) (o Overall) {
	for i := range list {
		g, w := len(list[i].Given), len(list[i].Withheld)
		o.Given, o.Withheld = o.Given+g, o.Withheld+w
		if g+w > 0 {
			o.Runs++
		}
	}
	o.FirstPass = pooled(list, func(o *record.Outcome) (float64, bool) {
		if o.FirstPass {
			return 1, true
		}
		return 0, true
	})
	o.Bounces = pooled(list, func(o *record.Outcome) (float64, bool) { return float64(o.Bounces), true })
	o.Dismissed = pooled(list, func(o *record.Outcome) (float64, bool) {
		return float64(o.Dismissed) / float64(max(1, o.Findings)), o.Findings > 0
	})
	return o
}

// pooled estimates what one learning more changes in a run, whichever it is. How
// many of the recalled ones are withheld is chance, so that this number, less what
// was to be expected of as many, has nothing to do with anything else about the
// run: the regression on it is the effect of withholding one. A run is one
// observation, however many learnings it had. The interval is robust against
// unequal variances (HC3: MacKinnon and White, Journal of Econometrics 29, 1985),
// with as many degrees of freedom as runs from which something was withheld, less
// one: these carry what is known.
func pooled(list []record.Outcome, of func(*record.Outcome) (float64, bool)) *Interval {
	var y, total, withheld []float64
	with, without := 0, 0
	for i := range list {
		g, w := len(list[i].Given), len(list[i].Withheld)
		v, ok := of(&list[i])
		if !ok || g+w == 0 {
			continue
		}
		y, total, withheld = append(y, v), append(total, float64(g+w)), append(withheld, float64(w))
		if w > 0 {
			with++
		} else {
			without++
		}
	}
	if with < Enough || without < Enough {
		return nil
	}
	rate := sum(withheld) / sum(total)
	slope, middle := line(total, y)
	var zz, zy float64
	z := make([]float64, len(y))
	for i := range y {
		z[i] = withheld[i] - rate*total[i]
		y[i] -= middle + slope*total[i] // bigger runs recall more, and bounce more: none of chance's doing
		zz, zy = zz+z[i]*z[i], zy+z[i]*y[i]
	}
	b := zy / zz // something was withheld, and not everywhere: z is not 0
	var spread float64
	for i := range y {
		e := z[i] * (y[i] - b*z[i]) / max(1e-9, 1-z[i]*z[i]/zz)
		spread += e * e
	}
	half := Student95(float64(with-1)) * math.Sqrt(spread) / zz
	return &Interval{Value: -b, Low: -b - half, High: -b + half, Known: true}
}

// line fits y = middle + slope·x by least squares.
func line(x, y []float64) (slope, middle float64) {
	mx, my := sum(x)/float64(len(x)), sum(y)/float64(len(y))
	var xx, xy float64
	for i := range x {
		xx, xy = xx+(x[i]-mx)*(x[i]-mx), xy+(x[i]-mx)*(y[i]-my)
	}
	if xx > 0 {
		slope = xy / xx
	}
	return slope, my - slope*mx
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

func reliability(list []Decided) Reliability {
	judged := make([]Judged, len(list))
	right := 0.0
	for i, d := range list {
		judged[i] = d.Judged
		if d.Right {
			right++
		}
	}
	c := Calibrate(judged)
	r := Reliability{Count: c.Count, Bins: []ReliableBin{}}
	if c.Count == 0 {
		return r
	}
	right /= float64(c.Count)
	base := right * (1 - right)
	r.Brier, r.Right, r.Base = &c.Brier, &right, &base
	for _, b := range c.Bins {
		low, high := Wilson(int(math.Round(b.Right*float64(b.Count))), b.Count, z95)
		r.Bins = append(r.Bins, ReliableBin{b, [2]float64{low, high}})
	}
	return r
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
			if !d.Right {
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
