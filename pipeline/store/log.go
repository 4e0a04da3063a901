package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"forge/pipeline"
)

// LogEntry is an event as it is kept: also with what this version knows nothing of.
type LogEntry struct {
	Seq    int64
	Type   pipeline.EventType
	Source string
	Time   time.Time
	Data   json.RawMessage
}

const selectLog = `SELECT seq, type, source, time, data FROM events WHERE run = $1 AND seq > $2 AND (CAST($3 AS TEXT) = '' OR type = $3) ORDER BY seq LIMIT $4`

// Log returns at most limit of a run's events after a position, of one type ("" for
// all), without reading what they carry. A run that does not exist has none.
func (d *DB) Log(ctx context.Context, run, after int64, of pipeline.EventType, limit int) ([]LogEntry, error) {
	doing := fmt.Sprintf("read log of run %d after %d", run, after)
	rows, err := d.reader.QueryContext(ctx, selectLog, run, after, string(of), limitOr(limit, 100))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(e *LogEntry) error {
		var at int64
		var data []byte
		err := rows.Scan(&e.Seq, &e.Type, &e.Source, &at, &data)
		e.Time, e.Data = fromMicros(at), data
		return err
	})
}

// LogTypes counts a run's events by type, in the order of their names.
func (d *DB) LogTypes(ctx context.Context, run int64) (types []pipeline.EventType, counts []int, err error) {
	doing := fmt.Sprintf("count events of run %d", run)
	rows, err := d.reader.QueryContext(ctx, `SELECT type, count(*) FROM events WHERE run = $1 GROUP BY type ORDER BY type`, run)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", doing, err)
	}
	counts, err = collect(rows, doing, func(n *int) error {
		var t pipeline.EventType
		err := rows.Scan(&t, n)
		types = append(types, t)
		return err
	})
	return types, counts, err
}
