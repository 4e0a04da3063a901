package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"forge/pipeline"
)

const addSpend = `INSERT INTO spend (day, micro_usd) VALUES ($1, $2) ON CONFLICT (day) DO UPDATE SET micro_usd = spend.micro_usd + excluded.micro_usd`

// dayOf numbers a day for the table: 20260102.
func dayOf(t time.Time) int64 {
	y, m, d := t.UTC().Date()
	return int64(y*10_000 + int(m)*100 + d)
}

// projectSpend books what the events' model calls cost, in days.
func (d *DB) projectSpend(ctx context.Context, tx *sql.Tx, events []pipeline.Event) error {
	var day, sum int64
	book := func() error {
		if sum == 0 {
			return nil
		}
		_, err := d.exec(ctx, tx, addSpend, day, sum)
		sum = 0
		return err
	}
	for i := range events {
		s := events[i].Data.Step
		if s == nil || s.Usage.MicroUSD == 0 || events[i].Type != pipeline.EventAgentIteration {
			continue
		}
		if at := dayOf(events[i].Time); at != day {
			if err := book(); err != nil {
				return err
			}
			day = at
		}
		sum += s.Usage.MicroUSD
	}
	return book()
}

// Spent returns what all runs' model calls cost on the day of at, and in its month
// up to now, in micro-dollars (UTC).
func (d *DB) Spent(ctx context.Context, at time.Time) (day, month int64, err error) {
	today := dayOf(at)
	first := today/100*100 + 1
	err = d.reader.QueryRowContext(ctx, `SELECT COALESCE(SUM(CASE WHEN day = $1 THEN micro_usd END), 0), COALESCE(SUM(micro_usd), 0)
		FROM spend WHERE day >= $2 AND day <= $3`, today, first, first+30).Scan(&day, &month)
	if err != nil {
		return 0, 0, fmt.Errorf("sum what was spent on %d: %w", today, err)
	}
	return day, month, nil
}
