package incidents

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"forge/learn/production"
	"forge/pipeline/store"
)

// Folded is the incident that a row holds.
func Folded(row *store.Incident) (*production.Incident, error) {
	var i production.Incident
	if err := json.Unmarshal(row.Data, &i); err != nil {
		return nil, fmt.Errorf("read incident %d: %w", row.ID, err)
	}
	i.ID, i.Seq = row.ID, row.Seq
	return &i, nil
}

// Read reads incidents.
func Read(ctx context.Context, db *store.DB, f store.IncidentFilter) ([]*production.Incident, error) {
	rows, err := db.Incidents(ctx, f)
	if err != nil {
		return nil, err
	}
	list := make([]*production.Incident, len(rows))
	for i := range rows {
		if list[i], err = Folded(&rows[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Glance is what operators want to know of incidents: how many go on, by severity, and
// since when the oldest critical one does that no person has answered.
func Glance(ctx context.Context, db *store.DB) (active map[string]int, unanswered time.Time, err error) {
	list, err := Read(ctx, db, store.IncidentFilter{Active: true, Limit: 1000})
	active = map[string]int{}
	for _, i := range list {
		active[string(i.Severity)]++
		open := i.State == production.StateOpen && i.Severity == production.SeverityCritical && !i.Answered()
		if open && (unanswered.IsZero() || i.Opened.Before(unanswered)) {
			unanswered = i.Opened
		}
	}
	return active, unanswered, err
}

func readDeployments(ctx context.Context, db *store.DB, f store.DeploymentFilter) ([]production.Deployment, error) {
	rows, err := db.Deployments(ctx, f)
	if err != nil {
		return nil, err
	}
	list := make([]production.Deployment, len(rows))
	for i, v := range rows {
		list[i] = production.Deployment{ID: v.ID, Repo: v.Repo, Environment: v.Environment, Commit: v.Commit, Ref: v.Ref, Task: v.Task, Creator: v.Creator,
			State: v.State, Created: v.Created, Changed: v.Changed, At: v.Succeeded, Previous: v.Previous}
	}
	return list, nil
}

// Log reads the log of an incident.
func Log(ctx context.Context, db *store.DB, id int64) ([]production.Event, error) {
	rows, err := db.IncidentEvents(ctx, id)
	if err != nil {
		return nil, err
	}
	var out []production.Event
	for _, r := range rows {
		e := production.Event{Seq: r.Seq, Type: production.EventType(r.Type), At: r.At}
		if err := json.Unmarshal(r.Data, &e.Data); err != nil {
			return nil, fmt.Errorf("read event %d of incident %d: %w", r.Seq, id, err)
		}
		out = append(out, e)
	}
	return out, nil
}

// Keep writes what has happened to the incidents of a tracker, all of it or nothing.
func Keep(ctx context.Context, db *store.DB, tracker *production.Tracker) error {
	return db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return saveAll(ctx, db, tx, tracker) })
}

// newTracker is the tracker of a repository, with what is known of it.
func newTracker(ctx context.Context, db *store.DB, repo string, now time.Time) (d *production.Tracker, err error) {
	d = &production.Tracker{Now: now.UTC().Truncate(time.Microsecond)}
	if d.Incidents, err = Read(ctx, db, store.IncidentFilter{Repo: repo, Since: d.Now.Add(-24 * time.Hour), Limit: 1000}); err != nil {
		return nil, err
	}
	if d.Deployments, err = readDeployments(ctx, db, store.DeploymentFilter{Repo: repo, Since: d.Now.AddDate(0, 0, -14), Limit: 500}); err != nil {
		return nil, err
	}
	return d, nil
}

// saveAll writes what has happened to the incidents of a tracker.
func saveAll(ctx context.Context, db *store.DB, tx *store.Tx, tracker *production.Tracker) error {
	for _, c := range tracker.Changes() {
		if err := save(ctx, db, tx, c); err != nil {
			return err
		}
	}
	return nil
}

// save writes what has happened to an incident.
func save(ctx context.Context, db *store.DB, tx *store.Tx, c *production.Change) error {
	i := c.Incident
	data, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("save incident %d: %w", i.ID, err)
	}
	row := store.Incident{ID: i.ID, Seq: i.Seq, Repo: i.Repo, Environment: i.Environment, Kind: string(i.Kind), Group: i.Group,
		State: string(i.State), Severity: string(i.Severity),
		Title: i.Title, Opened: i.Opened, Updated: c.Events[len(c.Events)-1].At, Ended: i.Ended, Data: data}
	var events []store.IncidentEvent
	for _, e := range c.Events {
		data, err := json.Marshal(e.Data)
		if err != nil {
			return fmt.Errorf("save incident %d: %w", i.ID, err)
		}
		events = append(events, store.IncidentEvent{Seq: e.Seq, Type: string(e.Type), At: e.At, Data: data})
	}
	if err := db.SaveIncident(ctx, tx, &row, c.Before, events); err != nil {
		return err
	}
	i.ID = row.ID
	return nil
}

func rowOf(v production.Deployment, now time.Time) store.Deployment {
	if v.Created.IsZero() {
		v.Created = now
	}
	return store.Deployment{ID: v.ID, Repo: v.Repo, Environment: v.Environment, Commit: v.Commit, Ref: v.Ref, Task: v.Task, Creator: v.Creator, State: v.State,
		Created: v.Created, Changed: v.Changed, Succeeded: v.At, Previous: v.Previous}
}
