package metrics

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"forge/pipeline"
	"forge/pipeline/record"
)

// Estimate is a figure, and how sure it is.
type Estimate struct {
	N        int64       `json:"n"` // observations
	Value    float64     `json:"value"`
	Interval *[2]float64 `json:"interval_95,omitempty"` // 95 %; nil for a mean of one observation
	Method   string      `json:"method,omitempty"`      // of the interval: Wilson for shares, Student for means
	Median   *float64    `json:"median,omitempty"`      // within 6.25 %, of metrics with a distribution
	P90      *float64    `json:"p90,omitempty"`         // likewise
}

// Trend says how a figure moved against the period before.
type Trend string

// The trends. Steady is a change that the two intervals do not tell from chance.
const (
	TrendBetter Trend = "better"
	TrendWorse  Trend = "worse"
	TrendUp     Trend = "up"   // of a metric of which neither more nor less is better
	TrendDown   Trend = "down" //
	TrendSteady Trend = "steady"
	TrendNone   Trend = "" // there is nothing to compare
)

// Figure is a metric, or one label of it, in a period.
type Figure struct {
	Label  string     `json:"label,omitempty"`
	Now    *Estimate  `json:"now"`              // nil: no data
	Before *Estimate  `json:"before"`           // in the period of the same length before; nil: no data
	Change *float64   `json:"change,omitempty"` // of the value
	Trend  Trend      `json:"trend,omitempty"`
	Series []*float64 `json:"series"` // by day, oldest first; nil for days without an observation
	Counts []int64    `json:"counts"` // observations by day
}

// Metric is one metric in a period: its figure over all labels, then by label:
// phases in the order of the loop, others by the number of observations.
type Metric struct {
	Definition
	Figure
	Labels []Figure `json:"labels,omitempty"`
}

// Target is a goal of V6, and whether it is hit.
type Target struct {
	Name   string   `json:"name"`
	Metric string   `json:"metric"`
	Goal   string   `json:"goal"`
	Unit   string   `json:"unit"`
	Value  *float64 `json:"value"` // nil: no data
	N      int64    `json:"n"`
	Hit    *bool    `json:"hit"`    // nil: no data, or too few
	Needed int64    `json:"needed"` // observations for a verdict
	Of     string   `json:"of"`     // what is observed: "runs"
}

// Few says how many observations there are of those that a verdict needs, for people;
// "" when there are enough.
func (t Target) Few() string {
	if t.N >= t.Needed {
		return ""
	}
	return fmt.Sprintf("%d of %d %s needed", t.N, t.Needed, t.Of)
}

// Report is everything that is measured in a period.
type Report struct {
	Repo    string   `json:"repo"` // "owner/name"; "" for all
	Days    int      `json:"days"`
	From    string   `json:"from"` // the first day, UTC: 2026-01-02
	To      string   `json:"to"`   // the last one, today: it is not over yet
	Runs    int64    `json:"runs"` // that ended
	Metrics []Metric `json:"metrics"`
	Targets []Target `json:"targets"`
}

// Options choose what is computed.
type Options struct {
	Repo string    // only named in the report: the rows are of it
	Days int       // of the period, today among them
	Now  time.Time // its day (UTC) is the last
}

// Span returns the first and the last day of the rows that [Compute] needs: those
// of the period and of the one before.
func (o Options) Span() (from, to int64) {
	return DayOf(o.Now.UTC().AddDate(0, 0, 1-2*o.Days)), DayOf(o.Now)
}

// series holds the sums of one metric and label.
type series struct {
	now, before total
	days        []total // without buckets
}

func (s *series) add(r *record.MetricRow, day int, dist bool) {
	n := len(s.days)
	if day >= n {
		s.before.add(r, dist)
		return
	}
	s.now.add(r, dist)
	s.days[n-1-day].add(r, false)
}

// Sums takes in the sums of a period and the one before, of any number of
// repositories in any order, as they are read. Rows of other days, and of metrics that
// this version does not know, are passed over.
type Sums struct {
	o       Options
	ago     map[int64]int // days before the last one
	all     map[string]*series
	byLabel map[labelKey]*series

	// Rows come by day, metric and label: what the last one went into is where most go.
	last labelKey
	def  Definition
	into [2]*series // of the metric and of the label; nil for none
	day  int64
	at   int // of day, in ago; -1 outside
}

type labelKey struct{ metric, label string }

// NewSums begins a report.
func NewSums(o Options) *Sums {
	s := &Sums{o: o, ago: map[int64]int{}, all: map[string]*series{}, byLabel: map[labelKey]*series{}, at: -1}
	last := timeOf(DayOf(o.Now))
	for i := range 2 * o.Days {
		s.ago[DayOf(last.AddDate(0, 0, -i))] = i
	}
	return s
}

// Add takes in a row. One of another day, or of a metric that this version does not
// know, is passed over.
func (s *Sums) Add(r record.MetricRow) {
	if r.Day != s.day {
		at, inside := s.ago[r.Day]
		if !inside {
			at = -1
		}
		s.day, s.at = r.Day, at
	}
	if s.at < 0 {
		return
	}
	if k := (labelKey{r.Metric, r.Label}); k != s.last {
		d, known := definitions[r.Metric]
		s.last, s.def, s.into = k, d, [2]*series{}
		if known && (!d.Whole || r.Label == "") {
			s.into[0] = get(s.all, r.Metric, s.o.Days)
		}
		if known && d.By != "" && r.Label != "" {
			s.into[1] = get(s.byLabel, k, s.o.Days)
		}
	}
	for _, in := range s.into {
		if in != nil {
			in.add(&r, s.at, s.def.Dist)
		}
	}
}

// Report is the report of what was taken in.
func (s *Sums) Report() Report {
	o, last := s.o, timeOf(DayOf(s.o.Now))
	rep := Report{Repo: o.Repo, Days: o.Days, From: last.AddDate(0, 0, 1-o.Days).Format(time.DateOnly), To: last.Format(time.DateOnly)}
	labels := map[string][]string{}
	for k := range s.byLabel {
		labels[k.metric] = append(labels[k.metric], k.label)
	}
	for _, d := range Catalogue() {
		m := Metric{Definition: d, Figure: get(s.all, d.Key, o.Days).figure(d, "")}
		for _, label := range labels[d.Key] {
			m.Labels = append(m.Labels, s.byLabel[labelKey{d.Key, label}].figure(d, label))
		}
		slices.SortFunc(m.Labels, func(a, b Figure) int {
			return cmp.Or(inLoop(a.Label)-inLoop(b.Label), b.n()-a.n(), cmp.Compare(a.Label, b.Label))
		})
		rep.Metrics = append(rep.Metrics, m)
	}
	rep.Runs = get(s.all, Success, o.Days).now.n
	rep.Targets = targets(rep.Metrics)
	return rep
}

// inLoop is the place of a phase in the loop; other labels come after.
func inLoop(label string) int {
	i := slices.Index(loopPhases, pipeline.Phase(label))
	if i < 0 {
		return len(loopPhases)
	}
	return i
}

func get[K comparable](m map[K]*series, k K, days int) *series {
	if m[k] == nil {
		m[k] = &series{days: make([]total, days)}
	}
	return m[k]
}

func (f Figure) n() int {
	if f.Now == nil {
		return 0
	}
	return int(f.Now.N)
}

func (s *series) figure(d Definition, label string) Figure {
	f := Figure{Label: label, Now: s.now.estimate(d), Before: s.before.estimate(d), Series: make([]*float64, len(s.days)), Counts: make([]int64, len(s.days))}
	for i := range s.days {
		if t := s.days[i]; t.n > 0 {
			v := float64(t.sum) / float64(t.n)
			f.Series[i], f.Counts[i] = &v, t.n
		}
	}
	if f.Now == nil || f.Before == nil {
		return f
	}
	change := f.Now.Value - f.Before.Value
	f.Change, f.Trend = &change, trend(d.Better, change, f.Now.Interval, f.Before.Interval)
	return f
}

// trend names a change that is more than chance: the intervals do not meet. That
// is cautious: it is right more often than in 95 of 100 cases.
func trend(better int, change float64, now, before *[2]float64) Trend {
	if now == nil || before == nil || change == 0 {
		return TrendSteady
	}
	switch up := change > 0; {
	case now[0] <= before[1] && before[0] <= now[1]:
		return TrendSteady
	case better == 0 && up:
		return TrendUp
	case better == 0:
		return TrendDown
	case up == (better > 0):
		return TrendBetter
	}
	return TrendWorse
}

// targetNeeds is how many observations a verdict needs: with fewer, one run decides
// whether a goal is hit.
const targetNeeds = 10

// targets holds the figures against the goals of V6.
func targets(metrics []Metric) []Target {
	const minute = 60_000
	goals := []struct {
		name, metric, goal, of string
		hit                    func(float64) bool
	}{
		{"most features pass in 1–2 iterations", QuickPass, "over 50 %", "runs", func(v float64) bool { return v > 0.5 }},
		{"every iteration fixes something", IterationFixes, "100 %", "bounces", func(v float64) bool { return v >= 1 }},
		{"few runs escalate", Escalation, "under 10 %", "runs", func(v float64) bool { return v < 0.1 }},
		{"an iteration is quick", IterationTime, "mean under 30 min", "iterations", func(v float64) bool { return v < 30*minute }},
	}
	var out []Target
	for _, g := range goals {
		i := slices.IndexFunc(metrics, func(m Metric) bool { return m.Key == g.metric })
		t := Target{Name: g.name, Metric: g.metric, Goal: g.goal, Unit: metrics[i].Unit, Needed: targetNeeds, Of: g.of}
		if now := metrics[i].Now; now != nil {
			t.Value, t.N = &now.Value, now.N
			if hit := g.hit(now.Value); t.N >= targetNeeds {
				t.Hit = &hit
			}
		}
		out = append(out, t)
	}
	return out
}
