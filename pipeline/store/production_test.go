package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"forge/pipeline/record"
)

func incidentOf(group string) *Incident {
	return &Incident{Seq: 2, Repo: "acme/shop", Environment: "production", Kind: "anomaly", Group: group, State: "open", Severity: "critical",
		Title: "Error rate", Opened: now, Updated: now, Data: []byte(`{"a":1}`)}
}

func saveIncident(t *testing.T, d *DB, v *Incident, before int64, events ...IncidentEvent) error {
	t.Helper()
	return d.Tx(t.Context(), func(ctx context.Context, tx *sql.Tx) error { return d.SaveIncident(ctx, tx, v, before, events) })
}

// An incident's log and row are written together, by one writer at a time.
func TestIncidents(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		v := incidentOf("acme/shop/production/anomaly/x")
		must(t, saveIncident(t, d, v, 0, IncidentEvent{1, "opened", now, []byte(`{}`)},
			IncidentEvent{2, "seen", now, []byte(`{"n":"` + strings.Repeat("x", 100) + `"}`)}))
		if v.ID == 0 {
			t.Fatal("no id")
		}
		again := incidentOf(v.Group)
		if err := saveIncident(t, d, again, 0); !errors.Is(err, ErrConflict) {
			t.Errorf("a second one that goes on: %v", err)
		}
		v.Seq, v.State, v.Ended = 3, "resolved", now.Add(time.Hour)
		if err := saveIncident(t, d, v, 1); !errors.Is(err, ErrConflict) {
			t.Errorf("a writer that was late: %v", err)
		}
		must(t, saveIncident(t, d, v, 2, IncidentEvent{3, "resolved", now, []byte(`{}`)}))
		must(t, saveIncident(t, d, again, 0, IncidentEvent{1, "opened", now, []byte(`{}`)}, IncidentEvent{2, "seen", now, []byte(`{}`)}))
		got, err := d.Incident(t.Context(), v.ID)
		must(t, err)
		want(t, "state", got.State, "resolved")
		want(t, "ended", got.Ended, v.Ended)
		want(t, "data", string(got.Data), `{"a":1}`)
		log, err := d.IncidentEvents(t.Context(), v.ID)
		must(t, err)
		want(t, "events", len(log), 3)
		for f, n := range map[*IncidentFilter]int{
			{}: 2, {Active: true}: 1, {Repo: "acme/shop"}: 2, {Repo: "acme/other"}: 0, {Repos: []string{}}: 0, {Repos: []string{"acme/shop", "x/y"}, Active: true}: 1,
			{Since: now}: 2, {Since: now.Add(2 * time.Hour)}: 1, {Environment: "staging"}: 0, {Before: again.ID}: 1, {Limit: 1}: 1,
		} {
			list, err := d.Incidents(t.Context(), *f)
			must(t, err)
			if len(list) != n {
				t.Errorf("%+v: %d incidents, want %d", *f, len(list), n)
			}
		}
		if _, err := d.Incident(t.Context(), 99); !errors.Is(err, ErrNotFound) {
			t.Errorf("one that is not there: %v", err)
		}
	})
}

// Statuses of a deployment come in any order, and more than once.
func TestDeployments(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		keep := func(id int64, sha, state string, changed time.Duration, succeeded bool) {
			t.Helper()
			v := Deployment{Repo: "acme/shop", ID: id, Environment: "production", Commit: sha, Ref: "main", State: state,
				Created: now.Add(time.Duration(id) * time.Hour), Changed: now.Add(changed)}
			if succeeded {
				v.Succeeded = v.Changed
			}
			must(t, d.Tx(t.Context(), func(ctx context.Context, tx *sql.Tx) error { return d.KeepDeployment(ctx, tx, v) }))
		}
		keep(1, "aaa", "success", 10*time.Minute, true)
		keep(2, "bbb", "success", 2*time.Hour, true)
		keep(2, "bbb", "in_progress", time.Hour, false) // late
		keep(2, "bbb", "pending", 0, false)
		keep(1, "aaa", "inactive", 2*time.Hour, false)
		keep(3, "ccc", "failure", 3*time.Hour, false)
		keep(4, "ddd", "success", 4*time.Hour, true)
		list, err := d.Deployments(t.Context(), DeploymentFilter{Repo: "acme/shop"})
		must(t, err)
		var got []string
		for _, v := range list {
			s := v.Commit + " " + v.State + " after " + v.Previous
			if v.Succeeded.IsZero() {
				s += " never"
			}
			got = append(got, s)
		}
		want(t, "deployments", strings.Join(got, "; "), "ddd success after bbb; ccc failure after  never; bbb success after aaa; aaa inactive after ")
		list, err = d.Deployments(t.Context(), DeploymentFilter{Since: now.Add(3 * time.Hour), Environment: "production", Repos: []string{"acme/shop"}})
		must(t, err)
		want(t, "recent", len(list), 2)
	})
}

// What another part of the server handles does not come to the engine.
func TestLanes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		must(t, d.KeepDeliveries(t.Context(), []record.Delivery{{GUID: "a", Event: "push", Received: now},
			{GUID: "b", Event: "hook/prom", Received: now, Lane: "production", Payload: []byte("{}")},
			{GUID: "c", Event: "hook/prom", Received: now, Lane: "production"}}))
		mine, err := d.WaitingDeliveries(t.Context(), now, 10)
		must(t, err)
		other, err := d.WaitingIn(t.Context(), "production", now, 10)
		must(t, err)
		if len(mine) != 1 || mine[0].GUID != "a" || len(other) != 2 || string(other[0].Payload) != "{}" {
			t.Errorf("%+v, %+v", mine, other)
		}
		n, err := d.WaitingOf(t.Context(), "production")
		must(t, err)
		want(t, "of the hook", n["hook/prom"], 2)
	})
}

// The watch over a deployment has one writer at a time, and is followed until its end.
func TestBakes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		v := Bake{Repo: "acme/shop", Deployment: 7, Follow: now.Add(time.Hour), Data: []byte(`{"a":1}`)}
		second := v
		must(t, d.SaveBake(t.Context(), &v))
		for name, other := range map[string]Bake{"begun twice": second, "read before": {Repo: "acme/shop", Deployment: 7, Seq: 9}} {
			if err := d.SaveBake(t.Context(), &other); !errors.Is(err, ErrConflict) {
				t.Errorf("%s: %v", name, err)
			}
		}
		v.Data = []byte(`{"a":2}`)
		must(t, d.SaveBake(t.Context(), &v))
		for _, c := range []struct {
			f    BakeFilter
			want int
		}{{BakeFilter{Since: now}, 1}, {BakeFilter{Since: now.Add(2 * time.Hour)}, 0}, {BakeFilter{Repo: "acme/web"}, 0},
			{BakeFilter{Repos: []string{}}, 0}, {BakeFilter{Repos: []string{"acme/shop"}}, 1}} {
			list, err := d.Bakes(t.Context(), c.f)
			must(t, err)
			if len(list) != c.want || c.want == 1 && (list[0].Seq != 2 || string(list[0].Data) != `{"a":2}` || !list[0].Follow.Equal(v.Follow)) {
				t.Errorf("%+v: %+v", c.f, list)
			}
		}
	})
}

// What is old is deleted, and never what goes on or runs now.
func TestPruneProduction(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx, day := t.Context(), 24*time.Hour
		for n, ended := range []time.Time{now.Add(-100 * day), now.Add(-50 * day), {}} {
			v := incidentOf(string(rune('a' + n)))
			if v.Opened, v.Ended = now.Add(-200*day), ended; !ended.IsZero() {
				v.State = "resolved"
			}
			must(t, saveIncident(t, d, v, 0, IncidentEvent{1, "opened", now, []byte(`{}`)}))
		}
		for n, age := range []time.Duration{120, 110, 100, 20} { // the third has not succeeded
			at := now.Add(-age * day)
			v := Deployment{Repo: "acme/shop", ID: int64(n + 1), Environment: "production", Commit: "c", State: "success", Created: at, Changed: at, Succeeded: at}
			if n == 2 {
				v.Succeeded = time.Time{}
			}
			must(t, d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error { return d.KeepDeployment(ctx, tx, v) }))
			v.Environment, v.ID = "staging", int64(n+11)
			if n == 0 {
				must(t, d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error { return d.KeepDeployment(ctx, tx, v) }))
			}
		}
		must(t, d.SaveBake(ctx, &Bake{Repo: "acme/shop", Deployment: 1, Follow: now.Add(-100 * day), Data: []byte(`{}`)}))
		must(t, d.SaveBake(ctx, &Bake{Repo: "acme/shop", Deployment: 4, Follow: now.Add(-10 * day), Data: []byte(`{}`)}))
		n, err := d.PruneProduction(ctx, now.Add(-90*day))
		must(t, err)
		list, err := d.Incidents(ctx, IncidentFilter{})
		must(t, err)
		events, err := d.IncidentEvents(ctx, 1)
		must(t, err)
		deployments, err := d.Deployments(ctx, DeploymentFilter{})
		must(t, err)
		bakes, err := d.Bakes(ctx, BakeFilter{})
		must(t, err)
		if n != 1 || len(list) != 2 || list[1].ID != 2 || len(events) != 0 || len(deployments) != 2 || deployments[0].ID != 4 || deployments[1].Environment != "staging" || len(bakes) != 1 {
			t.Errorf("%d deleted; left %+v, %d events, %+v, %+v", n, list, len(events), deployments, bakes)
		}
	})
}
