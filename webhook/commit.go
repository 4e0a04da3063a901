package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"forge/pipeline/record"
)

const (
	maxWaiting    = 1024                 // deliveries that wait for a commit; more are answered 503
	maxBatch      = 256                  // deliveries in one commit
	maxBatchBytes = 8 << 20              // of payloads in one commit
	commitTimeout = 8 * time.Second      // GitHub gives up after 10
	maxLinger     = 5 * time.Millisecond // for which the first of a group waits for others
)

var (
	errFull    = errors.New("the queue is full")
	errStopped = errors.New("not running")
)

// waiting is a delivery whose request waits for an answer.
type waiting struct {
	delivery *record.Delivery
	release  func()     // the payload's memory is not needed any more
	done     chan error // has room for the answer: nobody waits for a request that went away
}

// A committer keeps deliveries in groups: what arrives during one commit is in
// the next. A commit by itself costs as much as ten deliveries more in it: while many
// senders are at work, a group waits until half of them are in it, at most as long as
// the last commit took.
type committer struct {
	keeper keeper
	notify func()

	open atomic.Int64 // requests that are not answered yet

	mu    sync.RWMutex // guards state and the closing of queue
	state runState
	queue chan waiting
	ended chan struct{}
}

type runState int

const (
	stateNew runState = iota
	stateRunning
	stateStopped
)

func newCommitter(k keeper, notify func()) *committer {
	return &committer{keeper: k, notify: notify, queue: make(chan waiting, maxWaiting), ended: make(chan struct{})}
}

// start runs the committer; it runs once.
func (c *committer) start(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == stateNew {
		c.state = stateRunning
		go c.run(ctx)
	}
}

func (c *committer) stop(ctx context.Context) error {
	c.mu.Lock()
	switch c.state {
	case stateNew:
		close(c.ended)
	case stateRunning:
		close(c.queue)
	}
	c.state = stateStopped
	c.mu.Unlock()
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop receiving deliveries: %w", ctx.Err())
	}
}

// keep queues a delivery and waits until it is durable. release is called once,
// when its payload is not needed any more: that may be later, when ctx ends.
func (c *committer) keep(ctx context.Context, d *record.Delivery, release func()) error {
	w := waiting{delivery: d, release: release, done: make(chan error, 1)}
	if err := c.enqueue(w); err != nil {
		release()
		return err
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done(): // nobody listens; it is kept all the same
		return ctx.Err()
	}
}

func (c *committer) enqueue(w waiting) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.state != stateRunning {
		return errStopped
	}
	select {
	case c.queue <- w:
		return nil
	default:
		return errFull
	}
}

// run commits until the queue is closed and empty.
func (c *committer) run(ctx context.Context) {
	defer close(c.ended)
	group := make([]waiting, 0, maxBatch)
	list := make([]record.Delivery, 0, maxBatch)
	linger := time.NewTimer(0)
	defer linger.Stop()
	var took time.Duration
	peak := 0 // requests open at once, of late
	for first := range c.queue {
		peak = max(int(c.open.Load()), peak-peak/16)
		linger.Reset(min(took, maxLinger))
		group, list = c.gather(group[:0], first, peak/2, linger.C), list[:0]
		for _, w := range group {
			list = append(list, *w.delivery)
		}
		begin := time.Now()
		c.commit(ctx, group, list)
		took = time.Since(begin)
		clear(group)
		clear(list)
	}
}

// gather takes what else is waiting, and until the time is up waits for as many as it wants.
func (c *committer) gather(group []waiting, first waiting, want int, late <-chan time.Time) []waiting {
	group = append(group, first)
	size := len(first.delivery.Payload)
	for len(group) < maxBatch && size < maxBatchBytes {
		var w waiting
		var ok bool
		select {
		case w, ok = <-c.queue:
		default:
			if len(group) >= want {
				return group
			}
			select {
			case w, ok = <-c.queue:
			case <-late:
				return group
			}
		}
		if !ok {
			return group
		}
		group = append(group, w)
		size += len(w.delivery.Payload)
	}
	return group
}

// commit keeps a group and answers its requests. When the group cannot be kept,
// each delivery is tried alone, so that one bad one does not take the others with
// it.
func (c *committer) commit(ctx context.Context, group []waiting, list []record.Delivery) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	err := c.keeper.KeepDeliveries(ctx, list)
	work := false
	for i, w := range group {
		one := err
		if err != nil && len(group) > 1 {
			one = c.keeper.KeepDeliveries(ctx, list[i:i+1])
		}
		work = work || one == nil && w.delivery.Outcome == ""
		w.release()
		w.done <- one
	}
	if work {
		c.notify()
	}
}
