package agent

import (
	"context"
	"sync"
	"time"

	"forge/pipeline"
)

// Waiting for a provider that is away.
const (
	leastWait = 5 * time.Second
	mostWait  = 15 * time.Minute
	patience  = 30 * time.Second // that a call waits itself, in all; longer waits are the run's
	strikes   = 2                // failures in a row of a single call's kind that open the circuit
)

// circuit keeps the calls of all runs away from a provider that is away:
//
//	closed ──a failure──▶ open until T ──T──▶ half open: one call probes
//	   ▲                     ▲                    │
//	   └──────success────────┼────────────────────┤
//	                         └──────failure───────┘  (T is further away each time)
//
// An answer may take minutes. So that nobody waits for a slow one, another call probes,
// too, after half a minute, one more after a minute, and so on.
// A wait that the provider asks for is kept to exactly; other waits grow from 5 s to
// 15 min with full jitter, so that servers do not come back in step.
type circuit struct {
	now    func() time.Time
	after  func(time.Duration) <-chan time.Time
	random func() float64 // from 0 to 1
	opened func(until time.Time, f *failure)
	closed func()

	mu       sync.Mutex
	round    int             // counts openings and closings: late news of an earlier round is no news
	until    time.Time       // open until then; zero: closed
	since    time.Time       // when it was last told to be
	probes   int             // calls under way, or begun since it opened, that show whether it is back
	probed   time.Time       // when the last of them began
	failures int             // openings in a row
	struck   int             // lesser failures in a row
	why      *pipeline.Fault // of the last opening
	late     bool            // it opened because of answers that had begun: only a whole one shows that it is back
	changed  chan struct{}   // closed when any of this changes
}

// pass lets one call through.
type pass struct {
	round int
	probe bool
}

// backoff is how long to wait after the n-th failure in a row, from 1.
func backoff(n int, random float64) time.Duration {
	most := mostWait
	if n < 8 { // 5 s × 2^8 is over the most
		most = min(mostWait, leastWait<<n)
	}
	return leastWait + time.Duration(random*float64(most-leastWait))
}

// enter waits until a call may be made, until the deadline at most. When it may not
// be made by then the error is a fault that says from when on.
func (c *circuit) enter(ctx context.Context, deadline time.Time) (pass, error) {
	for {
		c.mu.Lock()
		now := c.now()
		wait := c.until.Sub(now)
		switch {
		case c.until.IsZero():
			defer c.mu.Unlock()
			return pass{round: c.round}, nil
		case wait <= 0:
			if wait = c.nextProbe().Sub(now); wait <= 0 {
				c.probes++
				c.probed = now
				defer c.mu.Unlock()
				return pass{round: c.round, probe: true}, nil
			}
		}
		if now.Add(wait).After(deadline) {
			defer c.mu.Unlock()
			return pass{}, c.refusal(now.Add(wait))
		}
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return pass{}, ctx.Err()
		case <-changed:
		case <-c.after(wait):
		}
	}
}

// hasten lets a call probe now, whatever was to be waited for: a person asks for it.
func (c *circuit) hasten() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); c.until.After(now) {
		c.until, c.probes = now, 0
		c.signal()
	}
}

// heard lets a call probe now when one that began at this time was answered elsewhere, after this
// circuit was told to be open.
func (c *circuit) heard(began time.Time) {
	c.mu.Lock()
	later := c.since.Before(began)
	c.mu.Unlock()
	if later {
		c.hasten()
	}
}

// nextProbe is from when on another call may probe.
func (c *circuit) nextProbe() time.Time {
	if c.probes == 0 {
		return c.until
	}
	return c.probed.Add(min(mostWait, patience<<min(c.probes-1, 5)))
}

// refusal is the fault of a call that is not made.
func (c *circuit) refusal(until time.Time) error {
	fault := *c.why
	fault.RetryAt = until
	return &fault
}

// answering takes in that an answer begins. That shows that a provider is back which
// could not be reached; an answer may take minutes, and others need not wait for its
// end. It says nothing where answers broke off.
func (c *circuit) answering(p pass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.probe && p.round == c.round && !c.late {
		c.close()
	}
}

// succeeded takes in that a call was answered.
func (c *circuit) succeeded(p pass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.round != c.round {
		return
	}
	c.struck = 0
	if p.probe {
		c.close()
	}
}

// close is for whoever holds the lock.
func (c *circuit) close() {
	c.round++
	c.until, c.probes, c.failures, c.struck, c.why, c.late = time.Time{}, 0, 0, 0, nil, false
	c.signal()
	if c.closed != nil {
		c.closed()
	}
}

func (c *circuit) signal() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// abandoned takes in that a call ended without showing anything.
func (c *circuit) abandoned(p pass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.probe && p.round == c.round {
		c.probes = 0
		c.signal()
	}
}

// failed takes in a failure that passes. It returns until when the circuit is open,
// the zero time when it is closed.
func (c *circuit) failed(p pass, f *failure) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if p.round != c.round { // it began before the circuit opened or closed
		if until := now.Add(f.wait); f.wait > 0 && !c.until.IsZero() && until.After(c.until) {
			c.until, c.since = until, now
		}
		return c.until
	}
	if !p.probe && !f.kind.away() && f.wait == 0 {
		if c.struck++; c.struck < strikes {
			return time.Time{}
		}
	}
	c.failures++
	wait := backoff(c.failures, c.random())
	if f.wait > 0 {
		wait = f.wait
	}
	why := *f.fault // a copy: the caller's goes on to change
	c.round++
	c.until, c.since, c.probes, c.struck, c.why, c.late = now.Add(wait), now, 0, 0, &why, f.kind.late()
	c.signal()
	if c.opened != nil {
		c.opened(c.until, f)
	}
	return c.until
}
