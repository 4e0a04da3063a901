// Package production is what Forge hears of deployed code, and what follows from it
// (loop 5; requirements P1, P2).
//
// [Read] makes observations of what monitors send: an anomaly, an error, a failed
// health check. An observation is data that strangers wrote: its texts are cut and
// cleaned here, and nothing in it commands anything.
//
// All of it is pure: no I/O, no clock. It stores nothing.
package production

import (
	"time"
)

// Kind says what was observed.
type Kind string

// The kinds of observations.
const (
	KindAnomaly Kind = "anomaly" // a metric left its bounds
	KindError   Kind = "error"   // the code raised an error
	KindHealth  Kind = "health"  // a check of the service failed
)

// EventType is the name of an event, as it is logged.
type EventType string

// The events of what comes in from production, one for each kind.
const (
	EventAnomalyDetected   EventType = "production.anomaly_detected"
	EventErrorDetected     EventType = "production.error_detected"
	EventHealthCheckFailed EventType = "production.health_check_failed"
)

// Event returns the name of the event that an observation of this kind is logged as.
func (k Kind) Event() EventType {
	switch k {
	case KindError:
		return EventErrorDetected
	case KindHealth:
		return EventHealthCheckFailed
	}
	return EventAnomalyDetected
}

// kindOf returns the kind that an event's name stands for.
func kindOf(name string) (Kind, bool) {
	for _, k := range []Kind{KindAnomaly, KindError, KindHealth} {
		if string(k.Event()) == name {
			return k, true
		}
	}
	return "", false
}

// Severity says how bad something is. Only what is critical may ever be acted on
// without a human.
type Severity string

// The severities.
const (
	SeverityWarning  Severity = "warning"
	SeverityCritical Severity = "critical"
)

// Status says whether something still goes on.
type Status string

// The states of what is observed.
const (
	StatusFiring   Status = "firing"
	StatusResolved Status = "resolved"
)

// Observation is one thing that was seen in production. Of Anomaly, Error and Health
// the one of its kind is set.
type Observation struct {
	Kind        Kind      `json:"kind"`
	Source      string    `json:"source"`                // the hook, the check or the query that it came from
	Repo        string    `json:"repo"`                  // "owner/name"
	Environment string    `json:"environment"`           //
	Service     string    `json:"service,omitempty"`     //
	Group       string    `json:"group,omitempty"`       // what the source calls the same thing; "" when it does not say
	Severity    Severity  `json:"severity"`              //
	Status      Status    `json:"status"`                //
	At          time.Time `json:"at"`                    // when the source saw it
	Since       time.Time `json:"since,omitzero"`        // since when it goes on
	URL         string    `json:"url,omitempty"`         // of the source's page about it
	Title       string    `json:"title"`                 // one line
	Text        string    `json:"text,omitempty"`        //
	Times       int       `json:"times,omitempty"`       // alerts that were taken together; 0: one
	Deployment  int64     `json:"deployment,omitempty"`  // GitHub's id of the deployment that the source names
	Release     string    `json:"release,omitempty"`     // the version that the source names: a tag, a SHA
	Commit      string    `json:"commit,omitempty"`      // the commit that the source names
	Fingerprint string    `json:"fingerprint,omitempty"` // tells things of one group apart
	Each        bool      `json:"each,omitempty"`        // the source tells of each time, and not that it is over

	Anomaly *Anomaly `json:"anomaly,omitempty"`
	Error   *Error   `json:"error,omitempty"`
	Health  *Health  `json:"health,omitempty"`
}

// Anomaly is a metric that left its bounds.
type Anomaly struct {
	Metric   string   `json:"metric"`
	Baseline *float64 `json:"baseline,omitempty"` // what it was before; nil: the source does not say
	Current  *float64 `json:"current,omitempty"`
}

// Error is an error that the code raised.
type Error struct {
	Type      string    `json:"type,omitempty"`      // of the exception
	Stack     []Frame   `json:"stack,omitempty"`     // innermost first
	Frequency int       `json:"frequency,omitempty"` // how often it was seen in all
	FirstSeen time.Time `json:"first_seen,omitzero"` //
	Users     int       `json:"users,omitempty"`     // whom it affected
	Related   string    `json:"related,omitempty"`   // the commit that the source holds for its cause
	Culprit   string    `json:"culprit,omitempty"`   // where, in the source's words
	Platform  string    `json:"platform,omitempty"`  //
	Handled   bool      `json:"handled,omitempty"`   // the code dealt with it
	Issue     string    `json:"issue,omitempty"`     // the source's number of it
}

// Frame is a line of a stack.
type Frame struct {
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Function string `json:"function,omitempty"`
	InApp    bool   `json:"in_app,omitempty"` // in the program's own code, not in what it builds on
}

// Health is a check of a service that failed, or is well again.
type Health struct {
	Endpoint string `json:"endpoint"`
	Expected int    `json:"expected,omitempty"` // status of HTTP
	Actual   int    `json:"actual,omitempty"`   // 0: no answer
}

// Feedback takes in what production says. It is the way from deployed code back to
// work: [Tell] calls the method of an observation's kind.
type Feedback interface {
	OnAnomalyDetected(Observation, Anomaly)
	OnProductionError(Observation, Error)
	OnHealthCheckFailure(Observation, Health)
}

// Tell tells f of an observation.
func Tell(f Feedback, o Observation) {
	switch o.Kind {
	case KindError:
		f.OnProductionError(o, orZero(o.Error))
	case KindHealth:
		f.OnHealthCheckFailure(o, orZero(o.Health))
	default:
		f.OnAnomalyDetected(o, orZero(o.Anomaly))
	}
}

func orZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
