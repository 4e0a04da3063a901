package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"forge/pipeline"
)

// budget holds the money of all runs together against the caps on a day and a month
// (lessons 17). What a call may cost at most is set aside before it. Several servers
// on one database see what each other has spent, but not what is set aside, so
// together they may go over by one call each.
type budget struct {
	day, month int64 // caps in micro-dollars; 0: none
	spent      func(ctx context.Context, at time.Time) (day, month int64, err error)
	now        func() time.Time

	mu    sync.Mutex
	aside int64 // set aside for calls that are under way
}

// Reserve implements agent.Purse. A run that humans have raised the budget of may go
// over the caps by as much: they have decided that.
func (b *budget) Reserve(ctx context.Context, run *pipeline.Run, micros int64) (release func(), err error) {
	if b.day == 0 && b.month == 0 {
		return func() {}, nil
	}
	day, month, err := b.spent(ctx, b.now())
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range []struct {
		name       string
		spent, cap int64
	}{{"day", day, b.day}, {"month", month, b.month}} {
		if c.cap > 0 && c.spent+b.aside+micros > c.cap+run.Counters.Raised {
			return nil, &pipeline.Fault{Class: pipeline.FaultBudget, Message: fmt.Sprintf("all runs together have cost $%.2f of the $%.2f for this %s, and the next call may cost $%.4f: raise this run's budget, wait for the next %s, or raise %s_usd in the server's settings",
				float64(c.spent)/1e6, float64(c.cap)/1e6, c.name, float64(micros)/1e6, c.name, c.name)}
		}
	}
	b.aside += micros
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.aside -= micros
	}), nil
}
