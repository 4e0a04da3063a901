package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"forge/github"
	"forge/pipeline/store"
)

// How the deliveries are read where GitHub cannot reach the server. A list a call,
// and a call for each new delivery, are far from the 5,000 calls that an App has in
// an hour.
const (
	pollEvery   = 10 * time.Second
	pollSlowest = 5 * time.Minute // after errors
	pollAtOnce  = 200             // payloads that are read in one round
	// pollOverlap is how far before the newest delivery a round begins: GitHub lists
	// them when their sending has ended, which may be up to ten seconds later.
	pollOverlap = 5 * time.Minute
)

// poller reads deliveries through GitHub's API and takes each in once, oldest first.
// What the store holds is known by its GUID, so a start looks as far back as GitHub
// does and nothing can be passed over.
type poller struct {
	github interface {
		HookDeliveries(ctx context.Context, since time.Time) ([]github.HookDelivery, error)
		HookPayload(ctx context.Context, id int64) ([]byte, error)
	}
	take func(ctx context.Context, guid, event string, payload []byte) error
	db   *store.DB
	log  *slog.Logger
	now  func() time.Time
	upTo time.Time            // all that was sent before is in the store; zero at the start
	seen map[string]time.Time // GUIDs from the overlap on that are in the store
}

// run polls until ctx ends. wait returns false then.
func (p *poller) run(ctx context.Context, every time.Duration, wait func(context.Context, time.Duration) bool) {
	pause := every
	for {
		more, err := p.round(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = min(2*pause, pollSlowest)
			var limit interface{ RetryAfter() time.Duration }
			if errors.As(err, &limit) {
				pause = max(pause, limit.RetryAfter())
			}
			p.log.Warn("read deliveries", "error", err, "wait", pause)
		case more:
			pause = 0
		default:
			pause = every
		}
		if !wait(ctx, pause) {
			return
		}
		pause = max(pause, every)
	}
}

// round takes in what is new, and reports whether there is more.
func (p *poller) round(ctx context.Context) (more bool, err error) {
	since := p.now().Add(-sweepBack)
	if last := p.upTo.Add(-pollOverlap); last.After(since) {
		since = last
	}
	list, err := p.github.HookDeliveries(ctx, since)
	if err != nil {
		return false, err
	}
	for guid, at := range p.seen {
		if at.Before(since) {
			delete(p.seen, guid)
		}
	}
	read := 0
	for _, d := range list {
		if _, ok := p.seen[d.GUID]; ok {
			continue
		}
		if read == pollAtOnce {
			return true, nil
		}
		read++
		if err := p.one(ctx, d); err != nil {
			return false, err
		}
		p.seen[d.GUID], p.upTo = d.At, d.At
	}
	return false, nil
}

func (p *poller) one(ctx context.Context, d github.HookDelivery) error {
	_, err := p.db.Delivery(ctx, d.GUID)
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	payload, err := p.github.HookPayload(ctx, d.ID)
	if err != nil {
		return err
	}
	if payload == nil {
		p.log.Warn("GitHub no longer has a delivery that was not read", "delivery", d.GUID, "event", d.Event)
		return nil
	}
	if err := p.take(ctx, d.GUID, d.Event, payload); err != nil {
		return fmt.Errorf("keep delivery %s: %w", d.GUID, err)
	}
	return nil
}

// poll reads deliveries until ctx ends.
func (s *Server) poll(ctx context.Context, every time.Duration) {
	p := &poller{github: s.GitHub.App, take: s.Hooks.Take, db: s.DB, log: s.log, now: s.now, seen: map[string]time.Time{}}
	p.run(ctx, every, waitFor)
}
