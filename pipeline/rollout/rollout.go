// Package rollout says how a run's work fares where it is deployed, in the words that
// the production loop and the runs share.
package rollout

import (
	"fmt"
	"slices"
	"time"
)

// State is how a deployment fares.
type State string

// The states of a deployment. Only a healthy one was measured for its whole time.
const (
	Watched    State = "watched"     // it succeeded a short time ago, and is measured
	Healthy    State = "healthy"     // measured for its whole time, and nothing was wrong
	Unhealthy  State = "unhealthy"   // something went wrong
	Unknown    State = "unknown"     // it could not be measured
	Replaced   State = "replaced"    // another deployment came before its time was over
	RolledBack State = "rolled back" // what ran before runs there again
)

// Status is how a deployment fares that a run's work is part of.
type Status struct {
	Deployment  int64     `json:"deployment"` // GitHub's
	Environment string    `json:"environment"`
	Commit      string    `json:"commit"`
	At          time.Time `json:"at"`    // when it succeeded
	Until       time.Time `json:"until"` // it is watched
	State       State     `json:"state"`
	Changed     time.Time `json:"changed"` // when it came to that
	Why         string    `json:"why,omitempty"`
}

// Step is a step of shipping a run's work.
type Step struct {
	Environment string            `json:"environment,omitempty"`
	Deployment  int64             `json:"deployment,omitempty"` // GitHub's
	Commit      string            `json:"commit,omitempty"`     // that it was merged as
	By          string            `json:"by,omitempty"`         // who agreed; "": with what was agreed to before
	At          time.Time         `json:"at,omitzero"`          // when it was begun, or asked
	Succeeded   time.Time         `json:"succeeded,omitzero"`
	State       State             `json:"state,omitempty"`    // how it fared when it was watched
	Why         string            `json:"why,omitempty"`      //
	Question    string            `json:"question,omitempty"` // what people are asked
	Choices     map[string]string `json:"choices,omitempty"`  // what they may answer, and what that does
	Done        bool              `json:"done,omitempty"`     // it is through: not stopped
}

// Keep replaces what is known of a deployment, or adds it.
func Keep(list []Status, r Status) []Status {
	n := slices.IndexFunc(list, func(old Status) bool { return old.Deployment == r.Deployment })
	if n < 0 {
		return append(list, r)
	}
	out := slices.Clone(list)
	out[n] = r
	return out
}

// Put replaces what is known of its environment, unless that is newer.
func Put(list []Status, r Status) []Status {
	out := make([]Status, 0, len(list)+1)
	for _, old := range list {
		if old.Environment != r.Environment {
			out = append(out, old)
			continue
		}
		if old.At.After(r.At) {
			return list
		}
	}
	return append(out, r)
}

// String says how it fares, such as "in production, healthy since 2026-07-01 12:00 UTC".
func (r Status) String() string {
	const minute = "2006-01-02 15:04 MST"
	since := fmt.Sprintf("in %s since %s", r.Environment, r.At.UTC().Format(minute))
	switch r.State {
	case Healthy:
		return fmt.Sprintf("in %s, healthy since %s", r.Environment, r.At.UTC().Format(minute))
	case Watched:
		return since + ", watched until " + r.Until.UTC().Format(minute)
	case Unhealthy:
		return since + ", unhealthy: " + r.Why
	case RolledBack:
		return fmt.Sprintf("not in %s any more: %s", r.Environment, r.Why)
	case Replaced:
		return fmt.Sprintf("%s; it was not watched to the end: %s", since, r.Why)
	}
	return since + "; whether it is healthy is not known: " + r.Why
}
