package incidents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"forge/learn/production"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// maxMute is how long nobody is told of an incident at most.
const maxMute = 7 * 24 * time.Hour

// Dismiss ends an incident, because a person says that it is nothing.
func Dismiss(ctx context.Context, db *store.DB, id int64, by, why string, now time.Time) error {
	return answer(ctx, db, id, now, func(d *production.Desk, i *production.Incident) error {
		if !i.State.Active() {
			return fmt.Errorf("incident %d is %s already", id, i.State)
		}
		d.Record(i, production.EventDismissed, production.EventData{By: by, Why: text.Clip(text.OneLine(why), 500)})
		return nil
	})
}

// Mute lets nobody be told of an incident for a while.
func Mute(ctx context.Context, db *store.DB, id int64, by string, d time.Duration, now time.Time) error {
	if d <= 0 || d > maxMute {
		return fmt.Errorf("an incident can be muted for up to %d hours", int(maxMute.Hours()))
	}
	return answer(ctx, db, id, now, func(desk *production.Desk, i *production.Incident) error {
		desk.Record(i, production.EventMuted, production.EventData{By: by, Until: now.Add(d).UTC().Truncate(time.Second)})
		return nil
	})
}

// answer changes an incident, again when somebody else was first.
func answer(ctx context.Context, db *store.DB, id int64, now time.Time, change func(*production.Desk, *production.Incident) error) error {
	s := New(Options{DB: db})
	for try := 0; ; try++ {
		row, err := db.Incident(ctx, id)
		if err != nil {
			return err
		}
		i, err := Folded(row)
		if err != nil {
			return err
		}
		desk := &production.Desk{Incidents: []*production.Incident{i}, Now: now.UTC().Truncate(time.Microsecond)}
		if err := change(desk, i); err != nil {
			return err
		}
		err = db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			for _, c := range desk.Changes() {
				if err := s.save(ctx, tx, c); err != nil {
					return err
				}
			}
			return nil
		})
		if !errors.Is(err, store.ErrConflict) || try == 5 {
			return err
		}
	}
}
