package github

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	gh "github.com/google/go-github/v62/github"
)

// Bounds of a sweep: GitHub keeps deliveries for three days (a GitHub Enterprise
// Server for seven), and what failed this often is poison.
const (
	sweepPages    = 50
	sweepAttempts = 5
)

// Sweep looks through the webhook deliveries since a moment, has GitHub send
// again those that no attempt brought over, and returns their GUIDs, oldest first.
// GitHub never does so by itself. A delivery keeps its GUID when it is sent again.
// After an error the GUIDs are those that were sent before it.
func (a *App) Sweep(ctx context.Context, since time.Time) ([]string, error) {
	missed, err := a.missed(ctx, since)
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
	count int
	ok    bool
}

// missed lists the deliveries that never arrived, oldest first.
func (a *App) missed(ctx context.Context, since time.Time) ([]*attempts, error) {
	by, order := map[string]*attempts{}, []*attempts{}
	opts := &gh.ListCursorOptions{PerPage: 100}
	for range sweepPages {
		list, resp, err := a.jwt.Apps.ListHookDeliveries(ctx, opts)
		if err = a.asApp("list the webhook's deliveries", err); err != nil {
			return nil, err
		}
		old := false
		for _, d := range list {
			if d.GetDeliveredAt().Before(since) {
				old = true
				continue
			}
			m := by[d.GetGUID()]
			if m == nil { // the newest attempt comes first
				m = &attempts{guid: d.GetGUID(), id: d.GetID()}
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
	order = slices.DeleteFunc(order, func(m *attempts) bool { return m.ok || m.count >= sweepAttempts })
	slices.Reverse(order)
	return order, nil
}
