package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/record"
)

// Order is an event that a person stands behind, with the run that it is of.
type Order struct {
	Run   int64
	Repo  string
	Issue int
	Pull  int
	Cause string // what GitHub told that a run began with: "issues", "issue_comment"; "" for another cause, and for other events
	Event pipeline.Event
}

// Orders visits the events of some types since a time, oldest first; those of one
// moment by run and position.
func (d *DB) Orders(ctx context.Context, since time.Time, types []pipeline.EventType, visit func(Order) error) error {
	const doing = "list what people ordered"
	marks, args := make([]string, len(types)), []any{micros(since)}
	for i, t := range types {
		args = append(args, string(t))
		marks[i] = fmt.Sprintf("$%d", len(args))
	}
	// A run that nothing has happened to since has no such event.
	rows, err := d.reader.QueryContext(ctx, `SELECT r.id, r.repo, r.issue, r.pull, e.seq, e.id, e.type, e.source, e.time, e.data, COALESCE(d.event, '')
		FROM runs r JOIN events e ON e.run = r.id LEFT JOIN deliveries d ON e.seq = 1 AND d.guid = e.id
		WHERE r.updated >= $1 AND e.time >= $1 AND e.type IN (`+strings.Join(marks, ", ")+`) ORDER BY e.time, e.run, e.seq`, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	_, err = collect(rows, doing, func(*struct{}) error {
		var o Order
		var at int64
		var data []byte
		if err := rows.Scan(&o.Run, &o.Repo, &o.Issue, &o.Pull, &o.Event.Seq, &o.Event.ID, &o.Event.Type, &o.Event.Source, &at, &data, &o.Cause); err != nil {
			return err
		}
		o.Event.Run, o.Event.Time = o.Run, fromMicros(at)
		if err := json.Unmarshal(data, &o.Event.Data); err != nil {
			return fmt.Errorf("event %d of run %d: %w", o.Event.Seq, o.Run, err)
		}
		return visit(o)
	})
	return err
}

// Answered visits the deliveries that were handled since a time and may have been asked
// for by a person, oldest first, without their payloads.
func (d *DB) Answered(ctx context.Context, since time.Time, visit func(*record.Delivery) error) error {
	const doing = "list handled deliveries"
	rows, err := d.reader.QueryContext(ctx, deliveryColumns+` FROM deliveries
		WHERE state = 'done' AND NOT quiet AND received >= $1 ORDER BY id`, micros(since))
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	_, err = collect(rows, doing, func(*struct{}) error {
		var v record.Delivery
		if err := scanDelivery(rows, &v, false); err != nil {
			return err
		}
		return visit(&v)
	})
	return err
}

// IncidentOrder is an event of an incident that a person stands behind.
type IncidentOrder struct {
	Incident int64
	Repo     string
	IncidentEvent
}

// IncidentOrders lists the events of some types since a time, oldest first.
func (d *DB) IncidentOrders(ctx context.Context, since time.Time, types []string) ([]IncidentOrder, error) {
	const doing = "list what people ordered about incidents"
	marks, args := make([]string, len(types)), []any{micros(since)}
	for i, t := range types {
		args = append(args, t)
		marks[i] = fmt.Sprintf("$%d", len(args))
	}
	rows, err := d.reader.QueryContext(ctx, `SELECT i.id, i.repo, e.seq, e.type, e.at, e.data FROM incidents i JOIN incident_events e ON e.incident = i.id
		WHERE e.at >= $1 AND e.type IN (`+strings.Join(marks, ", ")+`) ORDER BY e.at, i.id, e.seq`, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(o *IncidentOrder) error {
		var at int64
		err := rows.Scan(&o.Incident, &o.Repo, &o.Seq, &o.Type, &at, &o.Data)
		o.At = fromMicros(at)
		return err
	})
}
