package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	gh "github.com/google/go-github/v62/github"
)

// HookDelivery is a webhook that GitHub has sent, or has tried to.
type HookDelivery struct {
	ID    int64
	GUID  string // the same for each attempt
	Event string
	At    time.Time
}

// pollPages bounds a list: at 100 a page, what a busy App is sent in three days.
const pollPages = 500

// HookDeliveries lists what GitHub has sent since a moment, whether it arrived or
// not, oldest first. Of several attempts it names the first.
func (a *App) HookDeliveries(ctx context.Context, since time.Time) ([]HookDelivery, error) {
	by := map[string]HookDelivery{}
	opts := &gh.ListCursorOptions{PerPage: 100}
	for page := 0; ; page++ {
		list, resp, err := a.jwt.Apps.ListHookDeliveries(ctx, opts)
		if err = a.asApp("list the webhook's deliveries", err); err != nil {
			return nil, err
		}
		old := false
		for _, d := range list { // the newest comes first
			if d.GetDeliveredAt().Before(since) {
				old = true
				continue
			}
			by[d.GetGUID()] = HookDelivery{ID: d.GetID(), GUID: d.GetGUID(), Event: d.GetEvent(), At: d.GetDeliveredAt().Time}
		}
		if old || resp.Cursor == "" {
			break
		}
		if page >= pollPages {
			return nil, fmt.Errorf("list the webhook's deliveries: they are over %d", pollPages*opts.PerPage)
		}
		opts.Cursor = resp.Cursor
	}
	out := make([]HookDelivery, 0, len(by))
	for _, d := range by {
		out = append(out, d)
	}
	slices.SortFunc(out, func(x, y HookDelivery) int { return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.ID, y.ID)) })
	return out, nil
}

// HookPayload reads what a delivery said; nil: GitHub no longer has it.
func (a *App) HookPayload(ctx context.Context, id int64) ([]byte, error) {
	d, resp, err := a.jwt.Apps.GetHookDelivery(ctx, id)
	if err != nil && resp != nil && resp.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	if err = a.asApp(fmt.Sprintf("read delivery %d", id), err); err != nil {
		return nil, err
	}
	if d.Request == nil || d.Request.RawPayload == nil {
		return nil, nil
	}
	return *d.Request.RawPayload, nil
}
