package production

import (
	"slices"
	"time"

	"forge/pipeline/rollout"
)

// Measures are how well deployments go over some days, by DORA's keys as far as
// deployments and incidents tell them.
type Measures struct {
	Days      int           `json:"days"`
	Succeeded int           `json:"deployments"`     // that succeeded
	PerDay    float64       `json:"per_day"`         // deployment frequency
	Failed    int           `json:"changes_failed"`  // of those: an incident is attributed to it
	Share     float64       `json:"change_failure"`  // 0 to 1
	Restore   time.Duration `json:"restore_time_ns"` // median, from first seen to resolved
	Detect    time.Duration `json:"detect_time_ns"`  // median, from the deployment to first seen
	Incidents int           `json:"incidents"`       // opened
	Dismissed int           `json:"dismissed"`       // as noise
	OfForge   int           `json:"of_forge"`        // attributed to work of Forge's
	Lead      time.Duration `json:"lead_time_ns"`    // median, from a run's begin to its work being healthy there; 0: none is known
}

// Measure computes the measures of the days before now: of all deployments, and of those
// that are known to have brought work of Forge's.
func Measure(deployments []Deployment, incidents []*Incident, now time.Time, days int) (all, forge Measures) {
	var brought []Deployment
	for _, d := range deployments {
		if d.Bake != nil && len(d.Bake.Work) > 0 {
			brought = append(brought, d)
		}
	}
	var caused []*Incident
	for _, i := range incidents {
		if len(i.Suspects) > 0 && i.Suspects[0].Run != 0 && i.Suspects[0].Score >= Attributed {
			caused = append(caused, i)
		}
	}
	return measure(deployments, incidents, now, days), measure(brought, caused, now, days)
}

func measure(deployments []Deployment, incidents []*Incident, now time.Time, days int) Measures {
	m := Measures{Days: days}
	from := now.AddDate(0, 0, -days)
	blamed := map[int64]bool{}
	var restored, detected, led []time.Duration
	for _, i := range incidents {
		if i.Opened.Before(from) || i.Opened.After(now) {
			continue
		}
		m.Incidents++
		switch {
		case i.State == StateDismissed:
			m.Dismissed++
			continue
		case i.State == StateResolved:
			restored = append(restored, i.Ended.Sub(i.FirstSeen))
		}
		if len(i.Suspects) == 0 || i.Suspects[0].Score < Attributed {
			continue
		}
		s := i.Suspects[0]
		blamed[s.Deployment] = true
		if s.Run != 0 {
			m.OfForge++
		}
		if n := slices.IndexFunc(deployments, func(d Deployment) bool { return d.ID == s.Deployment && d.Repo == i.Repo }); n >= 0 {
			detected = append(detected, i.FirstSeen.Sub(deployments[n].At))
		}
	}
	for _, d := range deployments {
		if d.At.Before(from) || d.At.After(now) {
			continue
		}
		m.Succeeded++
		if blamed[d.ID] {
			m.Failed++
		}
		if b := d.Bake; b != nil && b.State == rollout.Healthy {
			for _, w := range b.Work {
				if !w.Began.IsZero() {
					led = append(led, b.Until.Sub(w.Began))
				}
			}
		}
	}
	m.PerDay = float64(m.Succeeded) / float64(days)
	if m.Succeeded > 0 {
		m.Share = float64(m.Failed) / float64(m.Succeeded)
	}
	m.Restore, m.Detect, m.Lead = median(restored), median(detected), median(led)
	return m
}

func median(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	if n := len(list); n%2 == 0 {
		return (list[n/2-1] + list[n/2]) / 2
	}
	return list[len(list)/2]
}

// Running returns the deployments that run now: of each environment the newest that
// succeeded.
func Running(list []Deployment) (out []Deployment) {
	for _, d := range list {
		if d.At.IsZero() {
			continue
		}
		n := slices.IndexFunc(out, func(o Deployment) bool { return o.Repo == d.Repo && o.Environment == d.Environment })
		switch {
		case n < 0:
			out = append(out, d)
		case d.At.After(out[n].At):
			out[n] = d
		}
	}
	return out
}
