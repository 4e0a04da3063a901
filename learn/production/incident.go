package production

import (
	"fmt"
	"slices"
	"time"

	"forge/pipeline/command"
)

// The events of an incident, besides the three of what was observed.
const (
	EventOpened     EventType = "production.incident_opened"
	EventJoined     EventType = "production.incident_joined"     // another group is taken for the same thing
	EventCounted    EventType = "production.incident_counted"    // seen again, too often to keep every time
	EventRecovered  EventType = "production.incident_recovered"  // the source says that a group is over
	EventResolved   EventType = "production.incident_resolved"   // and it stayed so
	EventCorrelated EventType = "production.incident_correlated" // with deployments and commits
	EventTold       EventType = "production.incident_told"       // people were told
	EventMuted      EventType = "production.incident_muted"
	EventDismissed  EventType = "production.incident_dismissed" // by a human: it is nothing
	EventChosen     EventType = "production.answer_chosen"      // by a human
	EventBegun      EventType = "production.answer_begun"       // written down before it is carried out
	EventDone       EventType = "production.answer_done"
	EventAsked      EventType = "production.asked"           // people were
	EventFailed     EventType = "production.answer_failed"   // and is tried again
	EventRefused    EventType = "production.answer_refused"  // it could not be carried out
	EventTaught     EventType = "production.incident_taught" // what is learnt of it, or that this is taken back
	EventDeclined   EventType = "production.answer_declined" // what a human chose is not allowed now
)

// State says where an incident stands.
type State string

// The states of incidents.
const (
	StateOpen       State = "open"
	StateRecovering State = "recovering" // nothing of it is seen any more, for how long will show
	StateResolved   State = "resolved"
	StateDismissed  State = "dismissed"
)

// Active reports whether an incident has not ended.
func (s State) Active() bool { return s == StateOpen || s == StateRecovering }

// Event is what happened to an incident. Its log is the incident: see [Incident.Apply].
type Event struct {
	Seq  int64     `json:"-"`
	Type EventType `json:"-"`
	At   time.Time `json:"-"`
	Data EventData `json:"data"`
}

// EventData is what events hold; which fields are set follows from the type.
type EventData struct {
	Observation *Observation `json:"observation,omitempty"` // what was seen, or is over
	Repo        string       `json:"repo,omitempty"`
	Environment string       `json:"environment,omitempty"`
	Group       string       `json:"group,omitempty"`
	Count       int          `json:"count,omitempty"`    // how often it was seen, with those that are not kept
	Severity    Severity     `json:"severity,omitempty"` // the worst of these
	Storm       bool         `json:"storm,omitempty"`
	Previous    int64        `json:"previous,omitempty"` // the incident of the same group that ended not long ago
	Times       int          `json:"times,omitempty"`    // how often this one has come, itself included
	Until       time.Time    `json:"until,omitzero"`
	By          string       `json:"by,omitempty"`
	Why         string       `json:"why,omitempty"`
	Suspects    []Suspect    `json:"suspects,omitempty"`
	Weighed     *Weighed     `json:"weighed,omitempty"`
	Key         string       `json:"key,omitempty"` // of what people were told: "pull/42"
	Answer      Answer       `json:"answer,omitempty"`
	Aim         *Aim         `json:"aim,omitempty"`
	Number      int64        `json:"number,omitempty"` // of what was made
	Lesson      Lesson       `json:"lesson,omitempty"`
	URL         string       `json:"url,omitempty"`

	Question *command.Question `json:"question,omitempty"` // that people are asked
}

// Incident is something that goes wrong in production, folded from its events.
type Incident struct {
	ID          int64       `json:"id"`
	Seq         int64       `json:"seq"` // of its last event
	Repo        string      `json:"repo"`
	Environment string      `json:"environment"`
	Kind        Kind        `json:"kind"`
	Group       string      `json:"group"` // see [GroupKey]
	State       State       `json:"state"`
	Severity    Severity    `json:"severity"` // the worst that was seen
	Storm       bool        `json:"storm,omitempty"`
	Title       string      `json:"title"`
	Opened      time.Time   `json:"opened"`
	FirstSeen   time.Time   `json:"first_seen"`
	LastSeen    time.Time   `json:"last_seen"`
	Quiet       time.Time   `json:"quiet,omitzero"` // since when nothing of it goes on
	Ended       time.Time   `json:"ended,omitzero"`
	Count       int         `json:"count"`            // how often it was seen
	Joined      []string    `json:"joined,omitempty"` // other groups that are taken for the same thing
	Firing      []string    `json:"firing,omitempty"` // its groups that go on
	Changes     []time.Time `json:"changes,omitempty"`
	Previous    int64       `json:"previous,omitempty"`
	Times       int         `json:"times"`
	Muted       time.Time   `json:"muted,omitzero"`  // until when nobody is told
	Why         string      `json:"why,omitempty"`   // it ended
	By          string      `json:"by,omitempty"`    // who dismissed it
	First       Observation `json:"first"`           // the observation that opened it
	Last        Observation `json:"last"`            // the newest that was kept
	Named       []Named     `json:"named,omitempty"` // what its observations name
	Stack       []Frame     `json:"stack,omitempty"` // of the program's own code, of the first observation with one
	Each        []string    `json:"each,omitempty"`  // its groups of which nobody will say that they are over
	EachSeen    time.Time   `json:"each_seen,omitzero"`
	Correlated  time.Time   `json:"correlated,omitzero"`
	Weighed     *Weighed    `json:"weighed,omitempty"` // when it was correlated; nil: not known
	Suspects    []Suspect   `json:"suspects,omitempty"`
	Told        []string    `json:"told,omitempty"` // the keys of what people were told
	Chosen      *Choice     `json:"chosen,omitempty"`
	Declined    *Decline    `json:"declined,omitempty"` // the last one
	Acts        []Act       `json:"acts,omitempty"`
	Taught      bool        `json:"taught,omitempty"` // the run behind it knows what escaped it
}

// Limits of what an incident holds.
const (
	maxJoined  = 100
	maxChanges = 20
	maxTold    = 50
	maxNamed   = 10
)

// Named is what a source names: as the cause, or as what runs.
type Named struct {
	Deployment int64  `json:"deployment,omitempty"`
	Release    string `json:"release,omitempty"`
	Commit     string `json:"commit,omitempty"`
	Related    string `json:"related,omitempty"` // commit that it holds for the cause
}

// Weighed is what a correlation had before it: with more, it is made again.
type Weighed struct {
	Deployments []int64 `json:"deployments,omitempty"`
	Named       int     `json:"named,omitempty"`
	Stack       bool    `json:"stack,omitempty"`
}

func (o Observation) names() Named {
	return Named{Deployment: o.Deployment, Release: o.Release, Commit: o.Commit, Related: orZero(o.Error).Related}
}

// names are what the incident's observations name. Those of before this was kept stand
// in the first and the last.
func (i *Incident) names() []Named {
	out := slices.Clone(i.Named)
	for _, o := range []Observation{i.First, i.Last} {
		if n := i.namedBy(o); n != (Named{}) && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// namedBy is what an observation names as the incident's. That a deployment failed names it
// for its own failure alone: it may be the cure of what goes on.
func (i *Incident) namedBy(o Observation) Named {
	if o.ofDeployment() && !i.First.ofDeployment() {
		return Named{}
	}
	return o.names()
}

// ofDeployment reports whether it is what GitHub says of how a deployment went.
func (o Observation) ofDeployment() bool {
	return o.Source == sourceGitHub && o.Group == groupDeployment && o.Kind == KindHealth
}

// newName reports whether an observation names something that none before did.
func (i *Incident) newName(o Observation) bool {
	n := i.namedBy(o)
	return n != (Named{}) && len(i.Named) < maxNamed && !slices.Contains(i.Named, n)
}

// tellsMore reports whether an observation says something of the cause that none before
// did.
func (i *Incident) tellsMore(o Observation) bool {
	return i.newName(o) || len(i.Stack) == 0 && len(o.own()) > 0
}

// own are the frames of the program's own code.
func (o Observation) own() (out []Frame) {
	for _, f := range orZero(o.Error).Stack {
		if f.InApp && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// OwnFrames are those that the incident's observations show. Those of before the stack
// was kept stand in the first and the last.
func (i *Incident) OwnFrames() []Frame {
	out := slices.Clone(i.Stack)
	for _, o := range []Observation{i.First, i.Last} {
		for _, f := range o.own() {
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// Weigh is what a correlation with these deployments has before it.
func (i *Incident) Weigh(candidates []Deployment) *Weighed {
	w := &Weighed{Named: len(i.names()), Stack: len(i.OwnFrames()) > 0}
	for _, d := range candidates {
		w.Deployments = append(w.Deployments, d.ID)
	}
	return w
}

// Uncorrelated reports whether an incident was not correlated, or not with all that is
// known by now.
func (i *Incident) Uncorrelated(list []Deployment) bool {
	if i.Correlated.IsZero() {
		return true
	}
	candidates := Candidates(i, list)
	w := orZero(i.Weighed)
	more := len(i.names()) > w.Named || len(i.Stack) > 0 && !w.Stack
	return i.Weighed != nil && more || slices.ContainsFunc(candidates, func(d Deployment) bool {
		return d.Changed.After(i.Correlated) || i.Weighed != nil && !slices.Contains(w.Deployments, d.ID)
	})
}

// Apply folds an event into the incident.
func (i *Incident) Apply(e Event) {
	i.Seq = e.Seq
	d := e.Data
	switch e.Type {
	case EventOpened:
		i.open(e)
	case EventJoined:
		if len(i.Joined) < maxJoined && !i.Holds(d.Group) {
			i.Joined = append(i.Joined, d.Group)
		}
	case EventAnomalyDetected, EventErrorDetected, EventHealthCheckFailed, EventCounted:
		i.seen(e)
	case EventRecovered:
		i.recovered(e)
	case EventCorrelated:
		i.Correlated, i.Suspects, i.Weighed = e.At, d.Suspects, d.Weighed
	case EventTold:
		if len(i.Told) < maxTold {
			i.Told = append(i.Told, d.Key)
		}
	case EventTaught:
		i.Taught = d.Lesson == LessonEscaped
	case EventMuted:
		i.Muted = d.Until
	case EventChosen, EventBegun, EventFailed, EventDone, EventRefused, EventDeclined:
		i.act(e)
	case EventResolved, EventDismissed:
		i.Taught = i.Taught || e.Type == EventDismissed && i.Lesson() == LessonEscaped // it may be being taught
		i.State, i.Ended, i.Why, i.By, i.Firing = StateResolved, e.At, d.Why, d.By, nil
		if e.Type == EventDismissed {
			i.State = StateDismissed
		}
	}
}

func (i *Incident) open(e Event) {
	d := e.Data
	o := orZero(d.Observation)
	i.Repo, i.Environment, i.Group, i.Kind, i.Storm = d.Repo, d.Environment, d.Group, o.Kind, d.Storm
	i.State, i.Severity, i.Title, i.Previous, i.Times = StateOpen, o.Severity, o.Title, d.Previous, d.Times
	i.Opened, i.FirstSeen, i.LastSeen, i.First, i.Last = e.At, o.began(), o.At, o, o
	if i.Storm {
		i.Title = "Many alerts at once"
		if d.Why != "" {
			i.Title = "More incidents within an hour than are kept apart"
		}
	}
}

// began is when what was observed began, as far as is known.
func (o Observation) began() time.Time {
	if !o.Since.IsZero() {
		return o.Since
	}
	return o.At
}

func (i *Incident) seen(e Event) {
	d := e.Data
	i.Count += max(1, d.Count)
	i.LastSeen = e.At
	if o := d.Observation; o != nil {
		if i.newName(*o) {
			i.Named = append(i.Named, o.names())
		}
		if len(i.Stack) == 0 {
			i.Stack = o.own()
		}
		i.Each = slices.DeleteFunc(slices.Clone(i.Each), func(g string) bool { return g == d.Group })
		if o.Each && len(i.Each) <= maxJoined {
			i.Each = append(i.Each, d.Group)
		}
		i.Last, i.LastSeen = *o, later(i.LastSeen, o.At)
		if began := o.began(); began.Before(i.FirstSeen) {
			i.FirstSeen = began
		}
		d.Severity = o.Severity
	}
	if slices.Contains(i.Each, d.Group) {
		i.EachSeen = i.LastSeen
	}
	if d.Severity == SeverityCritical {
		i.Severity = SeverityCritical
	}
	if !slices.Contains(i.Firing, d.Group) && len(i.Firing) <= maxJoined {
		i.Firing = append(i.Firing, d.Group)
	}
	if i.State == StateRecovering {
		i.State, i.Quiet = StateOpen, time.Time{}
		i.change(e.At)
	}
}

func (i *Incident) recovered(e Event) {
	i.Firing = slices.DeleteFunc(slices.Clone(i.Firing), func(g string) bool { return g == e.Data.Group })
	if len(i.Firing) == 0 && i.State == StateOpen {
		i.State, i.Quiet = StateRecovering, e.At
		i.change(e.At)
	}
}

func (i *Incident) change(at time.Time) {
	i.Changes = append(i.Changes, at)
	i.Changes = slices.Clone(i.Changes[max(0, len(i.Changes)-maxChanges):])
}

// Holds reports whether a group is one of the incident's.
func (i *Incident) Holds(group string) bool {
	return i.Group == group || slices.Contains(i.Joined, group)
}

// The waits until an incident of which nothing is seen is resolved.
const (
	quietWait    = 10 * time.Minute
	flappingWait = 30 * time.Minute
	silence      = 24 * time.Hour // of a source that never says that something is over
	flapWindow   = 30 * time.Minute
	flapChanges  = 4
	eachSilence  = time.Hour        // of errors that nobody says are over, since something else was deployed
	eachLate     = 10 * time.Minute // for which those of before may still come in
)

// cured says which deployment has ended errors of which nobody says that they are over:
// nothing was seen of them for a while since it.
func (i *Incident) cured(list []Deployment, now time.Time) (why string, over bool) {
	told := func(g string) bool { return !slices.Contains(i.Each, g) }
	d := lastDeployment(list, i.Environment, now)
	if i.State != StateOpen || i.Storm || len(i.Firing) == 0 || slices.ContainsFunc(i.Firing, told) || d == nil || i.EachSeen.After(d.At.Add(eachLate)) {
		return "", false
	}
	if !d.At.After(i.FirstSeen) || now.Sub(later(d.At, i.EachSeen)) < eachSilence {
		return "", false
	}
	return fmt.Sprintf("it was not seen for an hour, since deployment %d", d.ID), true
}

// Flapping reports whether an incident came and went several times of late.
func (i *Incident) Flapping(now time.Time) bool {
	n := 0
	for _, at := range i.Changes {
		if now.Sub(at) <= flapWindow {
			n++
		}
	}
	return n >= flapChanges
}

// Over says whether an incident has ended by now, and why. A storm is over when nothing
// of it was seen for a while.
func (i *Incident) Over(now time.Time) (why string, over bool) {
	wait := quietWait
	if i.Flapping(i.Quiet) {
		wait = flappingWait
	}
	switch {
	case i.State == StateRecovering && now.Sub(i.Quiet) >= wait:
		return "its source says that it is over", true
	case i.State == StateOpen && now.Sub(i.LastSeen) >= silence:
		return "it was not seen for a day", true
	case i.Storm && i.State.Active() && now.Sub(i.LastSeen) >= flappingWait:
		return "no alert came for half an hour", true
	}
	return "", false
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
