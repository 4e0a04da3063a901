package production

import (
	"cmp"
	"fmt"
	"time"
)

// Deployment is a commit that was brought to an environment, whoever did it.
type Deployment struct {
	ID          int64     `json:"id"` // GitHub's
	Repo        string    `json:"repo"`
	Environment string    `json:"environment"`
	Commit      string    `json:"commit"`
	Ref         string    `json:"ref,omitempty"`
	Task        string    `json:"task,omitempty"`
	Creator     string    `json:"creator,omitempty"`
	State       string    `json:"state"` // GitHub's: pending, in_progress, success, failure, …
	Created     time.Time `json:"created"`
	Changed     time.Time `json:"changed"`            // when it came to its state
	At          time.Time `json:"at,omitzero"`        // when it succeeded first; zero: not yet
	Previous    string    `json:"previous,omitempty"` // the commit that ran there before
	Runs        []int64   `json:"runs,omitempty"`     // of Forge, whose work it brought
	Bake        *Bake     `json:"bake,omitempty"`     // nil: it was not watched
}

// Fares says how it fares, by what was measured; "" when it was not watched.
func (d Deployment) Fares() string {
	switch {
	case d.Bake == nil:
		return ""
	case d.Bake.Why == "":
		return string(d.Bake.State)
	}
	return string(d.Bake.State) + ": " + d.Bake.Why
}

// lastDeployment returns the deployment that ran in an environment at a time.
func lastDeployment(list []Deployment, environment string, at time.Time) *Deployment {
	var last *Deployment
	for k := range list {
		d := &list[k]
		if d.Environment == environment && !d.At.IsZero() && !d.At.After(at) && (last == nil || d.At.After(last.At)) {
			last = d
		}
	}
	return last
}

// deploymentMessage is GitHub's webhook deployment or deployment_status.
type deploymentMessage struct {
	Deployment struct {
		ID          int64   `json:"id"`
		Sha         string  `json:"sha"`
		Ref         string  `json:"ref"`
		Task        string  `json:"task"`
		Environment string  `json:"environment"`
		Transient   bool    `json:"transient_environment"` // as those of previews
		Created     string  `json:"created_at"`
		Creator     account `json:"creator"`
	} `json:"deployment"`
	Status *struct {
		State       string `json:"state"`
		Description string `json:"description"`
		Environment string `json:"environment"`
		Target      string `json:"target_url"`
		Log         string `json:"log_url"`
		Created     string `json:"created_at"`
	} `json:"deployment_status"`
	Repository struct {
		FullName string `json:"full_name"`
	} `json:"repository"`
}

type account struct {
	Login string `json:"login"`
}

// Of observations that say how a deployment went.
const (
	sourceGitHub    = "github"
	groupDeployment = "deployment"
)

// ReadDeployment reads what GitHub says of a deployment, whoever made it. One that
// fails is an observation, too, and one that succeeds says that this is over; what fails
// in an environment that is for some time alone is nothing of production's.
func ReadDeployment(event string, body []byte) (Deployment, *Observation, string, error) {
	var m deploymentMessage
	if err := decode(body, &m); err != nil {
		return Deployment{}, nil, "", err
	}
	d := Deployment{
		ID: m.Deployment.ID, Repo: m.Repository.FullName, Environment: name(m.Deployment.Environment), Commit: commit(m.Deployment.Sha), Ref: name(m.Deployment.Ref),
		Task: name(m.Deployment.Task), Creator: name(m.Deployment.Creator.Login), State: "pending", Created: when(m.Deployment.Created),
		Changed: when(m.Deployment.Created),
	}
	switch {
	case d.ID <= 0 || d.Commit == "" || d.Repo == "" || d.Environment == "":
		return Deployment{}, nil, "", fmt.Errorf("%w: it names no deployment", ErrUnread)
	case m.Status == nil:
		return d, nil, "", nil
	}
	s := m.Status
	d.State, d.Changed = name(s.State), when(s.Created)
	o := &Observation{Kind: KindHealth, Source: sourceGitHub, Repo: d.Repo, Environment: d.Environment, Group: groupDeployment,
		Severity: SeverityWarning, Status: StatusFiring, At: d.Changed,
		URL: cmp.Or(link(s.Log), link(s.Target)), Title: line(fmt.Sprintf("The deployment of %.10s to %s failed", d.Commit, d.Environment),
			maxTitle), Text: words(s.Description),
		Deployment: d.ID, Commit: d.Commit, Health: &Health{Endpoint: "deployment"}}
	switch d.State {
	case "failure", "error":
		if m.Deployment.Transient {
			o = nil
		}
		return d, o, "", nil
	case "success":
		d.At, o.Status = d.Changed, StatusResolved
		return d, o, "", nil
	case "inactive", "in_progress", "queued", "pending":
		return d, nil, "", nil
	}
	return Deployment{}, nil, fmt.Sprintf("a deployment is %s", d.State), nil
}

// Deployed puts a deployment on the tracker, unless something newer is known of it.
func (d *Tracker) Deployed(v Deployment) {
	for k := range d.Deployments {
		if old := &d.Deployments[k]; old.ID == v.ID {
			if old.Changed.After(v.Changed) { // it comes late
				if old.At.IsZero() {
					old.At, old.Previous = v.At, v.Previous
				}
				return
			}
			if !old.At.IsZero() {
				v.At, v.Previous = old.At, old.Previous
			}
			*old = v
			return
		}
	}
	d.Deployments = append(d.Deployments, v)
}
