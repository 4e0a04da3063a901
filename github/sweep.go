package github

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	gh "github.com/google/go-github/v62/github"
)

// What failed this often is poison. The second attempt is asked for at once, each
// further one twice as long after the last as the one before: half an hour in all, for a
// server or a proxy that starts anew.
const (
	sweepAttempts = 5
	sweepAgain    = 2 * time.Minute
)

// Sweeping says how far a sweep looks.
type Sweeping struct {
	Since time.Time
	Pages int // of a hundred deliveries, newest first; a call each
	Now   time.Time
}

// Sweep looks through the webhook deliveries since a moment, has GitHub send
// again those that no attempt brought over, and returns their GUIDs, oldest first.
// GitHub never does so by itself. A delivery keeps its GUID when it is sent again.
// After an error the GUIDs are those that were sent before it.
func (a *App) Sweep(ctx context.Context, s Sweeping) ([]string, error) {
	missed, err := a.missed(ctx, s)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range missed {
		_, _, err := a.jwt.Apps.RedeliverHookDelivery(ctx, m.id)
		var accepted *gh.AcceptedError // 202: done
		if err != nil && !errors.As(err, &accepted) {
			return out, a.asApp(fmt.Sprintf("have delivery %s sent again", m.guid), err)
		}
		out = append(out, m.guid)
	}
	return out, nil
}

type attempts struct {
	guid  string
	id    int64 // of the newest
	at    time.Time
	count int
	ok    bool
}

// missed lists the deliveries that never arrived, oldest first.
func (a *App) missed(ctx context.Context, s Sweeping) ([]*attempts, error) {
	by, order := map[string]*attempts{}, []*attempts{}
	opts := &gh.ListCursorOptions{PerPage: 100}
	for range s.Pages {
		list, resp, err := a.jwt.Apps.ListHookDeliveries(ctx, opts)
		if err = a.asApp("list the webhook's deliveries", err); err != nil {
			return nil, err
		}
		old := false
		for _, d := range list {
			if d.GetDeliveredAt().Before(s.Since) {
				old = true
				continue
			}
			m := by[d.GetGUID()]
			if m == nil { // the newest attempt comes first
				m = &attempts{guid: d.GetGUID(), id: d.GetID(), at: d.GetDeliveredAt().Time}
				by[m.guid] = m
				order = append(order, m)
			}
			m.count++
			m.ok = m.ok || d.GetStatusCode()/100 == 2
		}
		if old || resp.Cursor == "" {
			break
		}
		opts.Cursor = resp.Cursor
	}
	order = slices.DeleteFunc(order, func(m *attempts) bool {
		return m.ok || m.count >= sweepAttempts || m.count > 1 && s.Now.Sub(m.at) < sweepAgain<<(m.count-2)
	})
	slices.Reverse(order)
	return order, nil
}
