package production

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"forge/pipeline/rollout"
	"forge/pipeline/text"
)

// Bake is the watch over a deployment for some time after it has succeeded: what was
// measured, and what came of it.
type Bake struct {
	Deployment  int64         `json:"deployment"` // GitHub's
	Repo        string        `json:"repo"`
	Environment string        `json:"environment"`
	Commit      string        `json:"commit"`
	Previous    string        `json:"previous,omitempty"` // the commit that ran there before
	Work        []Work        `json:"work,omitempty"`     // of Forge that it brought
	From        time.Time     `json:"from"`
	Until       time.Time     `json:"until"`
	Looked      time.Time     `json:"looked,omitzero"` // the last time
	Measures    []Measured    `json:"measures,omitempty"`
	State       rollout.State `json:"state"`
	Why         string        `json:"why,omitempty"`
	Incident    int64         `json:"incident,omitempty"` // that made it unhealthy
	Ended       time.Time     `json:"ended,omitzero"`
	Told        rollout.State `json:"told,omitempty"` // the state that people and runs know of
}

// Work is what a run of Forge's brought to an environment.
type Work struct {
	Run   int64     `json:"run"`
	Pull  int       `json:"pull"`
	Began time.Time `json:"began,omitzero"` // the run
}

// Result is what one look at a measure has shown.
type Result string

// The results of a look. One that is unknown never passes, and never fails.
const (
	Pass    Result = "pass"
	Fail    Result = "fail"
	NoValue Result = "unknown"
)

// Sample is one look at a measure.
type Sample struct {
	Name     string   `json:"name"`
	Result   Result   `json:"result"`
	Value    *float64 `json:"value,omitempty"`    // of a query
	Baseline *float64 `json:"baseline,omitempty"` // its value in the window before the deployment
	Why      string   `json:"why,omitempty"`      // of what did not pass
}

// Measured is what the looks at one measure have shown.
type Measured struct {
	Last   Sample `json:"last"`
	Passed int    `json:"passed,omitempty"`
	Failed int    `json:"failed,omitempty"`
	Blank  int    `json:"blank,omitempty"` // looks without a value
	Row    int    `json:"row,omitempty"`   // looks in a row with the last one's result
	Firing bool   `json:"firing,omitempty"`
}

const (
	inARow     = 3              // looks that say the same before it counts
	firingMost = 24 * time.Hour // after which a query that still fails is not asked any more
	laterMost  = 7 * 24 * time.Hour
	waverMost  = 10 * time.Minute // after its time, for what passes and fails in turn
)

// NewBake begins the watch over a deployment that has succeeded.
func NewBake(d Deployment, work []Work, bake time.Duration) *Bake {
	return &Bake{Deployment: d.ID, Repo: d.Repo, Environment: d.Environment, Commit: d.Commit, Previous: d.Previous, Work: work,
		From: d.At, Until: d.At.Add(bake), State: rollout.Watched}
}

// Open reports whether measures are to be looked at: as long as it is watched, and
// until what has failed passes again.
func (b *Bake) Open(now time.Time) bool {
	return b.State == rollout.Watched || now.Sub(b.Until) < firingMost && slices.ContainsFunc(b.Measures, func(m Measured) bool { return m.Firing })
}

// FollowUntil is when nothing changes its state any more.
func (b *Bake) FollowUntil() time.Time { return b.Until.Add(laterMost) }

// Take takes in a look at all measures, and returns what is to be said of queries: that
// one fails, for some looks in a row, or passes again. Health checks speak for themselves.
func (b *Bake) Take(list []Sample, queries []Query, at time.Time) (out []Observation) {
	b.Looked = at
	for _, s := range list {
		n := slices.IndexFunc(b.Measures, func(m Measured) bool { return m.Last.Name == s.Name })
		if n < 0 {
			b.Measures = append(b.Measures, Measured{Last: Sample{Name: s.Name}})
			n = len(b.Measures) - 1
		}
		m := &b.Measures[n]
		m.take(s)
		q := slices.IndexFunc(queries, func(q Query) bool { return q.Name == s.Name })
		if q < 0 || m.Row != inARow || s.Result == NoValue || m.Firing == (s.Result == Fail) {
			continue
		}
		m.Firing = s.Result == Fail
		out = append(out, b.observation(queries[q], s, at))
	}
	return out
}

func (m *Measured) take(s Sample) {
	if m.Last.Result != s.Result {
		m.Row = 0
	}
	m.Row++
	switch s.Result {
	case Pass:
		m.Passed++
	case Fail:
		m.Failed++
	default:
		m.Blank++
	}
	if s.Baseline == nil {
		s.Baseline = m.Last.Baseline
	}
	m.Last = s
}

// observation says that a query fails, or does so no more. It names no deployment: what
// it comes from is for the correlation to find.
func (b *Bake) observation(q Query, s Sample, at time.Time) Observation {
	o := Observation{Kind: KindAnomaly, Source: "query", Repo: b.Repo, Environment: b.Environment, Group: "query/" + q.Name,
		Severity: SeverityCritical, Status: StatusFiring, At: at,
		Title: line(q.Name+" "+s.Why, maxTitle), Anomaly: &Anomaly{Metric: q.Name, Baseline: s.Baseline, Current: s.Value}}
	if s.Result == Pass {
		o.Status, o.Title = StatusResolved, line(q.Name+" is within its bounds", maxTitle)
	}
	return o
}

// Judge decides how the deployment fares, by what was measured, by the repository's
// incidents and by the deployments that came after it.
func (b *Bake) Judge(incidents []*Incident, deployments []Deployment, now time.Time) {
	state, why := b.judge(incidents, deployments, now)
	if state == b.State {
		return
	}
	b.State, b.Why, b.Ended = state, line(why, 300), now
	if state == rollout.Watched {
		b.Ended = time.Time{}
	}
}

func (b *Bake) judge(incidents []*Incident, deployments []Deployment, now time.Time) (rollout.State, string) {
	before := b.Incident
	b.Incident = 0
	next := b.next(deployments)
	switch {
	case b.State == rollout.RolledBack || b.State == rollout.Replaced:
		return b.State, b.Why
	case next != nil && (next.Task == TaskRollBack || next.Commit == b.Previous):
		return rollout.RolledBack, fmt.Sprintf("deployment %d brought %.10s back", next.ID, next.Commit)
	case next != nil && b.State == rollout.Watched && next.At.Before(b.Until):
		return rollout.Replaced, fmt.Sprintf("deployment %d came %s after it", next.ID, next.At.Sub(b.From).Round(time.Second))
	}
	if i := b.cause(incidents); i != nil {
		b.Incident = i.ID
		return rollout.Unhealthy, fmt.Sprintf("incident %d", i.ID)
	}
	if b.State != rollout.Watched && before == 0 {
		return b.State, b.Why
	}
	for _, m := range b.Measures {
		if m.Last.Result == Fail && m.Row >= inARow {
			return rollout.Unhealthy, m.Last.Name + " " + m.Last.Why
		}
	}
	return b.whole(now)
}

// cause is an incident that is attributed to the deployment, and was not dismissed.
func (b *Bake) cause(list []*Incident) *Incident {
	n := slices.IndexFunc(list, func(i *Incident) bool {
		if i.Environment != b.Environment || i.State == StateDismissed || len(i.Suspects) == 0 {
			return false
		}
		return i.Suspects[0].Deployment == b.Deployment && i.Suspects[0].Score >= Attributed
	})
	if n < 0 {
		return nil
	}
	return list[n]
}

// next is the deployment that came to the environment after this one.
func (b *Bake) next(list []Deployment) *Deployment {
	var next *Deployment
	for k := range list {
		d := &list[k]
		later := d.At.After(b.From) || d.At.Equal(b.From) && d.ID > b.Deployment // GitHub's times are in seconds
		if d.ID != b.Deployment && d.Environment == b.Environment && later && (next == nil || d.At.Before(next.At)) {
			next = d
		}
	}
	return next
}

// whole judges what was measured once the time is over. It is healthy when each measure
// passes at the end, and had a value in more than half of the looks. What has begun to
// fail or to show nothing at the end is waited for.
func (b *Bake) whole(now time.Time) (rollout.State, string) {
	if now.Before(b.Until) {
		return rollout.Watched, ""
	}
	if len(b.Measures) == 0 {
		return rollout.Unknown, "nothing was measured"
	}
	var blank []string
	for _, m := range b.Measures {
		looks := m.Passed + m.Failed + m.Blank
		switch {
		case looks < inARow && now.Sub(b.Looked) < waverMost: // it was heard of late, or is watched for a short time
			return rollout.Watched, ""
		case m.Last.Result != Pass && m.Row < inARow && now.Sub(b.Until) < waverMost:
			return rollout.Watched, ""
		case looks < inARow:
			return rollout.Unknown, fmt.Sprintf("%s was only looked at %s", m.Last.Name, text.Plural(looks, "time", "times"))
		case m.Last.Result == Fail && m.Row < inARow:
			return rollout.Unknown, m.Last.Name + " passes and fails in turn: it " + m.Last.Why
		case m.Last.Result == Fail:
			return rollout.Unhealthy, m.Last.Name + " " + m.Last.Why
		case m.Last.Result == NoValue || 2*m.Blank >= looks:
			why := cmp.Or(m.Last.Why, "no value")
			blank = append(blank, fmt.Sprintf("%s showed nothing in %d of %s: %s", m.Last.Name, m.Blank, text.Plural(looks, "look", "looks"), why))
		}
	}
	if len(blank) > 0 {
		return rollout.Unknown, strings.Join(blank, "; ")
	}
	return rollout.Healthy, ""
}

// Status is how the deployment fares, for the runs whose work it brought.
func (b *Bake) Status() rollout.Status {
	changed := b.Ended
	if changed.IsZero() {
		changed = b.From
	}
	return rollout.Status{Deployment: b.Deployment, Environment: b.Environment, Commit: b.Commit, At: b.From, Until: b.Until,
		State: b.State, Changed: changed, Why: b.Why}
}

// Lines say what was measured, one line for each measure.
func (b *Bake) Lines() (out []string) {
	for _, m := range b.Measures {
		n := m.Passed + m.Failed + m.Blank
		s := fmt.Sprintf("%s: passed %d of %s", m.Last.Name, m.Passed, text.Plural(n, "look", "looks"))
		if m.Last.Value != nil {
			s += fmt.Sprintf("; last %s", number(*m.Last.Value))
		}
		if m.Last.Baseline != nil {
			s += fmt.Sprintf(", before the deployment %s", number(*m.Last.Baseline))
		}
		out = append(out, s)
	}
	return out
}

// Query is a question to Prometheus whose answer is a number, with its bounds.
type Query struct {
	Name    string
	Max     float64 // 0: none
	Min     float64 // 0: none
	WorseBy float64 // share that it may be above the window before the deployment; 0: any
}

// Window is what a query showed over some time.
type Window struct {
	Mean, Peak float64
	Points     int
	Last       time.Time // of its newest point
}

// Judge compares the time since a deployment with the time before it. Worse than before
// is only what is above all that was seen before, too: a metric that wavers fails nothing.
func (q Query) Judge(now, before *Window, why string) Sample {
	s := Sample{Name: q.Name, Result: NoValue, Why: why}
	if before != nil {
		s.Baseline = &before.Mean
	}
	if now == nil {
		return s
	}
	s.Value, s.Why, s.Result = &now.Mean, "", Fail
	switch {
	case q.Max != 0 && now.Mean > q.Max:
		s.Why = fmt.Sprintf("is %s, over %s", number(now.Mean), number(q.Max))
	case q.Min != 0 && now.Mean < q.Min:
		s.Why = fmt.Sprintf("is %s, under %s", number(now.Mean), number(q.Min))
	case q.WorseBy != 0 && before != nil && now.Mean > before.Mean+q.WorseBy*math.Abs(before.Mean) && now.Mean > before.Peak:
		s.Why = fmt.Sprintf("is %s, and was %s before the deployment", number(now.Mean), number(before.Mean))
	case q.WorseBy != 0 && before == nil && q.Max == 0 && q.Min == 0:
		s.Result, s.Why = NoValue, cmp.Or(why, "it had no value before the deployment")
	default:
		s.Result = Pass
	}
	return s
}

// number writes a value with three digits that count.
func number(v float64) string { return fmt.Sprintf("%.3g", v) }
