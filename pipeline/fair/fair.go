// Package fair hands out a limited number of places among many who want them, so that
// one who wants many does not keep the others waiting: a place that becomes free goes to
// whoever holds the fewest, and among those to who has waited longest.
package fair

import (
	"context"
	"sync"
)

// Pool is a number of places. nil has as many as are wanted.
type Pool struct {
	mu      sync.Mutex
	free    int
	held    map[int64]int // by who holds them
	waiting []*waiter     // in the order in which they came
}

type waiter struct {
	who   int64
	given chan struct{} // closed when it has its place
}

// New returns a pool of so many places; nil for 0, which is without limit.
func New(places int) *Pool {
	if places <= 0 {
		return nil
	}
	return &Pool{free: places, held: map[int64]int{}}
}

// Take waits for a place. Who has it gives it back by calling back, once.
func (p *Pool) Take(ctx context.Context, who int64) (back func(), err error) {
	if p == nil {
		return func() {}, nil
	}
	w := &waiter{who, make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.give()
	p.mu.Unlock()
	back = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.held[who]--; p.held[who] == 0 {
			delete(p.held, who)
		}
		p.free++
		p.give()
	}
	select {
	case <-w.given:
		return back, nil
	case <-ctx.Done():
	}
	if !p.leave(w) { // it was given a place meanwhile
		back()
	}
	return nil, ctx.Err()
}

// give hands out the free places. The pool is locked.
func (p *Pool) give() {
	for p.free > 0 && len(p.waiting) > 0 {
		next := 0
		for i, w := range p.waiting {
			if p.held[w.who] < p.held[p.waiting[next].who] {
				next = i
			}
		}
		w := p.waiting[next]
		p.waiting = append(p.waiting[:next:next], p.waiting[next+1:]...)
		p.free--
		p.held[w.who]++
		close(w.given)
	}
}

// leave takes one who waits out of the line; false when it waits no more.
func (p *Pool) leave(w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.waiting {
		if p.waiting[i] == w {
			p.waiting = append(p.waiting[:i:i], p.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// Waiting is how many wait for a place.
func (p *Pool) Waiting() int {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}
