package production

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline/glob"
	"forge/pipeline/text"
)

// The limits that keep a storm of alerts from becoming a storm of incidents.
const (
	samples        = 20 // observations of an incident that are kept in full
	stormGroups    = 20 // new groups of an environment in stormWindow
	stormWindow    = 10 * time.Minute
	perHour        = 5 // new incidents of a repository
	worsePerHour   = 5 // and then, of what is worse than all that goes on in its environment
	criticalHour   = 5 // critical ones, whatever else came
	joinWindow     = 5 * time.Minute
	joinDeployment = 30 * time.Minute
	recent         = 24 * time.Hour // in which what comes again is linked to what was
)

// GroupKey says what an observation is of: observations with the same key are of one
// incident.
func GroupKey(o Observation) string {
	part := o.Group
	switch {
	case part != "":
	case o.Kind == KindError:
		e := orZero(o.Error)
		part = e.Type + o.Title
		if e.Type != "" {
			part = e.Type
		}
		n := 0
		for _, f := range e.Stack {
			if f.InApp && n < 3 {
				part += "|" + f.File + ":" + f.Function // lines move, functions seldom
				n++
			}
		}
	case o.Kind == KindHealth:
		part = orZero(o.Health).Endpoint
	default:
		part = orZero(o.Anomaly).Metric + "|" + o.Service
	}
	key := strings.Join([]string{o.Repo, o.Environment, string(o.Kind), part}, "/")
	if len(key) > maxKey { // an index of a database takes no more
		sum := sha256.Sum256([]byte(key))
		key = text.Head(key, maxKey-65) + "#" + hex.EncodeToString(sum[:])
	}
	return key
}

const maxKey = 400 // bytes

// Tracker is where observations of a repository become incidents. It takes them in one
// after the other and says what happens; who keeps the incidents is not its concern.
// It implements [Feedback].
type Tracker struct {
	Incidents   []*Incident  // of the repository: those that go on, and those that ended within a day
	Deployments []Deployment // of the repository, of late
	Ignore      []string     // globs of group keys
	Now         time.Time

	changed []*Change
	last    Note
}

// Change is an incident that something happened to: its log goes on with Events. One
// that is new has no ID yet.
type Change struct {
	*Incident
	Before int64 // the incident's Seq before
	Events []Event

	counted  int // seen again, not written down yet
	severity Severity
	groups   []string
}

// Note is what became of an observation.
type Note struct {
	Incident *Incident // nil: none
	What     string    // "opened", "seen again", or why nothing
}

// String says it for the record of a delivery.
func (n Note) String() string {
	if n.Incident == nil {
		return n.What
	}
	return fmt.Sprintf("incident %d: %s", n.Incident.ID, n.What)
}

// Take takes in an observation.
func (d *Tracker) Take(o Observation) Note {
	Tell(d, o)
	return d.last
}

// OnAnomalyDetected implements Feedback.
func (d *Tracker) OnAnomalyDetected(o Observation, _ Anomaly) { d.last = d.take(o) }

// OnProductionError implements Feedback.
func (d *Tracker) OnProductionError(o Observation, _ Error) { d.last = d.take(o) }

// OnHealthCheckFailure implements Feedback.
func (d *Tracker) OnHealthCheckFailure(o Observation, _ Health) { d.last = d.take(o) }

func (d *Tracker) take(o Observation) Note {
	o.Environment = d.Spelled(o.Environment)
	if o.ofDeployment() && slices.ContainsFunc(d.Deployments, func(v Deployment) bool { return v.ID == o.Deployment && v.Changed.After(o.At) }) {
		return Note{What: "something newer is known of the deployment"}
	}
	d.pass(o.At) // no server may have run meanwhile
	key := GroupKey(o)
	if slices.ContainsFunc(d.Ignore, func(g string) bool { return glob.Match(g, key) }) {
		return Note{What: "ignored, as production.ignore says"}
	}
	i := d.active(func(i *Incident) bool { return i.Holds(key) })
	if o.Status == StatusResolved {
		return d.recover(i, o, key)
	}
	if no := d.dismissed(o, key); i == nil && no != nil {
		return Note{no, "not opened again: " + cmp.Or(no.By, "somebody") + " dismissed it within the day"}
	}
	if i != nil {
		d.see(i, o, key)
		return Note{i, "seen again"}
	}
	if s := d.active(func(i *Incident) bool { return i.Storm && i.Environment == o.Environment }); s != nil {
		d.see(s, o, key)
		return Note{s, "one of many alerts at once"}
	}
	if d.groupsOf(o.Environment) >= stormGroups && (d.opened(o) < perHour+worsePerHour || !d.stormWithin(time.Hour)) {
		return d.open(o, stormKey(o), true)
	}
	if i := d.sameDeployment(o); i != nil {
		return d.join(i, o, key, "taken for the same thing: both began after one deployment")
	}
	if d.opened(o) >= perHour {
		return d.beyondLimit(o, key)
	}
	return d.open(o, key, false)
}

// Spelled is an environment's name as it is known: GitHub makes no difference between
// "Production" and "production", and monitors write it in their own way.
func (d *Tracker) Spelled(environment string) string {
	best := environment
	for _, o := range d.Deployments {
		if o.Environment == environment {
			return environment
		}
		if strings.EqualFold(o.Environment, environment) {
			best = o.Environment
		}
	}
	for _, i := range d.Incidents {
		if best == environment && strings.EqualFold(i.Environment, environment) {
			best = i.Environment
		}
	}
	return best
}

// dismissed finds the incident of a group that a person dismissed not long ago. What is
// worse now is another matter, and what comes after something new was deployed.
func (d *Tracker) dismissed(o Observation, key string) *Incident {
	for _, i := range d.Incidents {
		if last := lastDeployment(d.Deployments, i.Environment, d.Now); last != nil && last.At.After(i.Ended) {
			continue
		}
		if i.State == StateDismissed && i.Holds(key) && d.Now.Sub(i.Ended) < recent && (o.Severity != SeverityCritical || i.Severity == SeverityCritical) {
			return i
		}
	}
	return nil
}

func stormKey(o Observation) string { return o.Repo + "/" + o.Environment + "/storm" }

// beyondLimit joins what would be one incident too many to the newest one of its
// environment. What is critical is not joined to a warning, as far as that can be.
func (d *Tracker) beyondLimit(o Observation, key string) Note {
	var newest, critical *Incident
	for _, i := range d.Incidents {
		if !i.State.Active() || i.Environment != o.Environment {
			continue
		}
		if newest == nil || i.Opened.After(newest.Opened) {
			newest = i
		}
		if i.Severity == SeverityCritical && (critical == nil || i.Opened.After(critical.Opened)) {
			critical = i
		}
	}
	if o.Severity == SeverityCritical && critical != nil {
		newest = critical
	}
	words := fmt.Sprintf("joined: the repository has had %d new incidents within an hour", perHour)
	worse := o.Severity == SeverityCritical && critical == nil
	room := d.opened(o) < perHour+worsePerHour || worse && d.opened(o, SeverityCritical) < criticalHour
	switch {
	case (newest == nil || worse) && room:
		return d.open(o, key, false)
	case newest != nil:
		return d.join(newest, o, key, words)
	case !d.stormWithin(time.Hour):
		return d.open(o, stormKey(o), true)
	}
	if s := d.active(func(i *Incident) bool { return i.Storm }); s != nil {
		return d.join(s, o, key, "one of many incidents within an hour")
	}
	return Note{What: fmt.Sprintf("counted, and no more: the repository has had %d new incidents within an hour", perHour+worsePerHour)}
}

func (d *Tracker) active(of func(*Incident) bool) *Incident {
	for _, i := range d.Incidents {
		if i.State.Active() && of(i) {
			return i
		}
	}
	return nil
}

// groupsOf counts the groups that came up in an environment of late.
func (d *Tracker) groupsOf(environment string) (n int) {
	for _, i := range d.Incidents {
		if i.Environment == environment && d.Now.Sub(i.Opened) < stormWindow {
			n += 1 + len(i.Joined)
		}
	}
	return n
}

// opened counts the incidents of the last hour that limit new ones: what monitors say and
// what GitHub says of deployments are counted apart, and what a person dismissed is not.
func (d *Tracker) opened(o Observation, severities ...Severity) (n int) {
	for _, i := range d.Incidents {
		counts := i.State != StateDismissed && i.First.ofDeployment() == o.ofDeployment() && (len(severities) == 0 || slices.Contains(severities, i.Severity))
		if counts && d.Now.Sub(i.Opened) < time.Hour {
			n++
		}
	}
	return n
}

func (d *Tracker) stormWithin(t time.Duration) bool {
	return slices.ContainsFunc(d.Incidents, func(i *Incident) bool { return i.Storm && d.Now.Sub(i.Opened) < t })
}

// sameDeployment finds an incident that began after the same deployment, at about the
// same time: one bad deployment breaks many things at once.
func (d *Tracker) sameDeployment(o Observation) *Incident {
	dep := lastDeployment(d.Deployments, o.Environment, o.began())
	if dep == nil || o.began().Sub(dep.At) > joinDeployment || o.ofDeployment() {
		return nil
	}
	return d.active(func(i *Incident) bool {
		other := lastDeployment(d.Deployments, i.Environment, i.FirstSeen)
		return i.Environment == o.Environment && !i.Storm && !i.First.ofDeployment() &&
			other != nil && other.ID == dep.ID && o.began().Sub(i.FirstSeen).Abs() <= joinWindow
	})
}

// change returns what happens to an incident now, to add to it.
func (d *Tracker) change(i *Incident) *Change {
	for _, c := range d.changed {
		if c.Incident == i {
			return c
		}
	}
	c := &Change{Incident: i, Before: i.Seq}
	d.changed = append(d.changed, c)
	return c
}

func (d *Tracker) event(i *Incident, t EventType, data EventData) {
	c := d.change(i)
	e := Event{Seq: i.Seq + 1, Type: t, At: d.Now, Data: data}
	i.Apply(e)
	c.Events = append(c.Events, e)
}

func (d *Tracker) open(o Observation, key string, storm bool) Note {
	data := EventData{Observation: &o, Repo: o.Repo, Environment: o.Environment, Group: key, Storm: storm, Times: 1}
	if storm && d.groupsOf(o.Environment) < stormGroups {
		data.Why = "more incidents within an hour than are kept apart"
	}
	for _, old := range d.Incidents {
		if old.Group == key && !old.State.Active() && d.Now.Sub(old.Ended) < recent && old.ID >= data.Previous {
			data.Previous, data.Times = old.ID, old.Times+1
		}
	}
	i := &Incident{}
	d.Incidents = append(d.Incidents, i)
	d.event(i, EventOpened, data)
	d.event(i, o.Kind.Event(), EventData{Observation: &o, Group: key})
	if storm {
		return Note{i, "opened: " + strings.ToLower(i.Title)}
	}
	return Note{i, "opened"}
}

func (d *Tracker) join(i *Incident, o Observation, key, why string) Note {
	if len(i.Joined) < maxJoined {
		d.event(i, EventJoined, EventData{Group: key, Why: why})
	}
	d.see(i, o, key)
	return Note{i, why}
}

// see writes down that something was seen: the first times in full, then ever fewer.
func (d *Tracker) see(i *Incident, o Observation, key string) {
	if i.Storm {
		key = i.Group
	}
	c := d.change(i)
	n := i.Count + c.counted + 1
	step := 1
	for most := samples; n > most; most *= 10 {
		step *= 10
	}
	if n%step == 0 || i.tellsMore(o) {
		d.flush(c)
		d.event(i, o.Kind.Event(), EventData{Observation: &o, Group: key})
		return
	}
	c.counted++
	if o.Severity == SeverityCritical {
		c.severity = SeverityCritical
	}
	if !slices.Contains(c.groups, key) {
		c.groups = append(c.groups, key)
	}
}

// flush writes down what was only counted, for each group that goes on.
func (d *Tracker) flush(c *Change) {
	n, groups := c.counted, c.groups
	c.counted, c.groups = 0, nil
	for k, g := range groups {
		count := 1
		if k == 0 {
			count = n - (len(groups) - 1)
		}
		d.event(c.Incident, EventCounted, EventData{Count: count, Severity: c.severity, Group: g})
	}
	c.severity = ""
}

func (d *Tracker) recover(i *Incident, o Observation, key string) Note {
	if i == nil {
		if s := d.active(func(i *Incident) bool { return i.Storm && i.Environment == o.Environment }); s != nil {
			return Note{s, "over; the others go on"}
		}
		return Note{What: "over, and nothing was known of it"}
	}
	d.flush(d.change(i))
	if slices.Contains(i.Firing, key) {
		d.event(i, EventRecovered, EventData{Observation: &o, Group: key})
	}
	if i.State == StateRecovering {
		return Note{i, "over, as it seems"}
	}
	return Note{i, "a part of it is over"}
}

// Tick lets time pass: what was over for long enough is resolved.
func (d *Tracker) Tick() {
	d.pass(d.Now)
	for _, i := range d.Incidents {
		if why, over := i.cured(d.Deployments, d.Now); over {
			d.event(i, EventResolved, EventData{Why: why})
		}
	}
}

// pass resolves what was over by then.
func (d *Tracker) pass(at time.Time) {
	for _, i := range d.Incidents {
		if why, over := i.Over(at); over {
			d.flush(d.change(i))
			d.event(i, EventResolved, EventData{Why: why})
		}
	}
}

// Record adds an event that does not come from observations.
func (d *Tracker) Record(i *Incident, t EventType, data EventData) { d.event(i, t, data) }

// Changes returns what has happened, in the order of the incidents.
func (d *Tracker) Changes() []*Change {
	for _, c := range d.changed {
		d.flush(c)
	}
	out := slices.DeleteFunc(slices.Clone(d.changed), func(c *Change) bool { return len(c.Events) == 0 })
	slices.SortStableFunc(out, func(a, b *Change) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
