package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// IncidentsBehind lists incidents with events that the reader called name has not passed, at
// most limit of them, by their number, from the one behind after.
func (d *DB) IncidentsBehind(ctx context.Context, name string, after int64, limit int) ([]int64, error) {
	doing := "list incidents that " + name + " has not read to their end"
	rows, err := d.reader.QueryContext(ctx, `SELECT i.id FROM incidents i LEFT JOIN incident_cursors c ON c.name = $1 AND c.incident = i.id
		WHERE i.id > $2 AND i.seq > COALESCE(c.seq, 0) ORDER BY i.id LIMIT $3`, name, after, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(id *int64) error { return rows.Scan(id) })
}

// IncidentCursor returns how far the reader called name has come in an incident; 0 at its start.
func (d *DB) IncidentCursor(ctx context.Context, name string, incident int64) (seq int64, err error) {
	err = d.reader.QueryRowContext(ctx, `SELECT seq FROM incident_cursors WHERE name = $1 AND incident = $2`, name, incident).Scan(&seq)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("read cursor %s of incident %d: %w", name, incident, err)
	}
	return seq, nil
}

// PassIncident says that the reader called name has come so far in an incident.
func (d *DB) PassIncident(ctx context.Context, name string, incident, seq int64) error {
	_, err := d.change(ctx, nil, `INSERT INTO incident_cursors (name, incident, seq) VALUES ($1, $2, $3)
		ON CONFLICT (name, incident) DO UPDATE SET seq = excluded.seq WHERE incident_cursors.seq < excluded.seq`, name, incident, seq)
	if err != nil {
		return fmt.Errorf("advance cursor %s of incident %d to %d: %w", name, incident, seq, err)
	}
	return nil
}

// ChangedIncidents lists the incidents to which something happened at a moment or later, by
// their number.
func (d *DB) ChangedIncidents(ctx context.Context, since time.Time) ([]Changed, error) {
	return d.changed(ctx, "incidents", since)
}
