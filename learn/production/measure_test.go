package production

import (
	"testing"
	"time"

	"forge/pipeline/rollout"
)

// DORA's keys, as far as deployments and incidents tell them. Covers M1.
func TestMeasure(t *testing.T) {
	t.Parallel()
	at := func(hours int) time.Time { return received.Add(-time.Duration(hours) * time.Hour) }
	deployments := []Deployment{
		{ID: 1, Repo: "a/b", At: at(100)}, {ID: 2, Repo: "a/b", At: at(50)}, {ID: 3, Repo: "a/b", At: at(20)}, {ID: 4, Repo: "a/b", At: at(10)},
		{ID: 5, Repo: "a/b"}, {ID: 6, Repo: "a/b", At: at(24 * 20)},
	}
	incident := func(hours int, s State, score float64, deployment, run int64, took time.Duration) *Incident {
		i := &Incident{Repo: "a/b", Opened: at(hours), FirstSeen: at(hours), State: s, Suspects: []Suspect{{Deployment: deployment, Run: run, Score: score}}}
		if s != StateOpen {
			i.Ended = i.FirstSeen.Add(took)
		}
		return i
	}
	deployments[1].Bake = &Bake{State: rollout.Healthy, Until: at(49), Work: []Work{{Run: 7, Began: at(60)}}}
	got, forge := Measure(deployments, []*Incident{
		incident(49, StateResolved, 0.9, 2, 7, time.Hour), incident(48, StateResolved, 0.8, 2, 7, 3*time.Hour), incident(19, StateResolved, 0.5, 3, 0, 5*time.Hour),
		incident(9, StateOpen, 0.7, 4, 0, 0), incident(5, StateDismissed, 0.9, 1, 1, time.Hour), incident(24*9, StateResolved, 0.9, 6, 1, time.Hour),
	}, received, 7)
	want := Measures{Days: 7, Succeeded: 4, PerDay: 4.0 / 7, Failed: 2, Share: 0.5, Restore: 3 * time.Hour, Detect: time.Hour, Incidents: 5,
		Dismissed: 1, OfForge: 2, Lead: 11 * time.Hour}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	want = Measures{Days: 7, Succeeded: 1, PerDay: 1.0 / 7, Failed: 1, Share: 1, Restore: 2 * time.Hour, Detect: 90 * time.Minute, Incidents: 3, Dismissed: 1, OfForge: 2, Lead: 11 * time.Hour}
	if forge != want {
		t.Errorf("of Forge: %+v, want %+v", forge, want)
	}
	if got, _ := Measure(nil, nil, received, 7); got != (Measures{Days: 7}) {
		t.Errorf("of nothing: %+v", got)
	}
	running := Running([]Deployment{{ID: 1, Environment: "p", At: at(9)}, {ID: 2, Environment: "p", At: at(3)}, {ID: 3, Environment: "p"},
		{ID: 4, Environment: "s", At: at(30)}})
	if len(running) != 2 || running[0].ID != 2 || running[1].ID != 4 {
		t.Errorf("running %+v", running)
	}
}
