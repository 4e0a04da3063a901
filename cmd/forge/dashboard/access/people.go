package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"forge/github"
	"forge/pipeline"
)

const (
	freshFor   = 5 * time.Minute  // how long what GitHub said of a person is used
	staleFor   = 15 * time.Minute // the same, for reading, while GitHub does not answer
	askAgain   = 10 * time.Second // pause after a failure
	fetchFor   = time.Minute      // a person with 10,000 repositories takes 100 calls
	mostPeople = 1000             // sign-ins whose repositories are kept
)

// people keeps what each sign-in can read. The key is a sign-in, not a person, so
// that a token that ended cannot live on what another one of the same person is
// told.
type people struct {
	fetch func(ctx context.Context, token string) ([]pipeline.Repo, error)
	now   func() time.Time

	mu   sync.Mutex
	kept map[[sha256.Size]byte]*person
}

type person struct {
	can    *readable
	at     time.Time     // when GitHub said so
	failed time.Time     // when it last did not answer
	err    error         // with what
	busy   chan struct{} // closed when the fetch that is under way ends; nil: none is
	used   time.Time
}

func newPeople(fetch func(ctx context.Context, token string) ([]pipeline.Repo, error), now func() time.Time) *people {
	return &people{fetch: fetch, now: now, kept: map[[sha256.Size]byte]*person{}}
}

// of returns what a token can read; stale: GitHub does not answer, and said so a
// while ago. The error wraps github.ErrSignedOut when the token has ended.
func (p *people) of(ctx context.Context, token string) (can *readable, stale bool, err error) {
	key := sha256.Sum256([]byte(token))
	for {
		p.mu.Lock()
		e := p.kept[key]
		if e == nil {
			e = &person{}
			p.makeRoom()
			p.kept[key] = e
		}
		now := p.now()
		e.used = now
		if can, stale, err, known := e.answer(now); known {
			p.mu.Unlock()
			return can, stale, err
		}
		if e.busy == nil {
			e.busy = make(chan struct{})
			// It outlives the request: others wait for it, too.
			go p.ask(context.WithoutCancel(ctx), e, token)
		}
		busy := e.busy
		p.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

// answer is what can be said without asking GitHub.
func (e *person) answer(now time.Time) (can *readable, stale bool, err error, known bool) {
	switch age := now.Sub(e.at); {
	case errors.Is(e.err, github.ErrSignedOut):
		return nil, false, e.err, true
	case e.can != nil && age < freshFor:
		return e.can, false, nil, true
	case e.err == nil || now.Sub(e.failed) >= askAgain:
		return nil, false, nil, false
	case e.can != nil && age < staleFor:
		return e.can, true, nil, true
	}
	return nil, false, e.err, true
}

// ask has GitHub say what a token can read. A panic in it is an error: who waits
// must not wait for ever.
func (p *people) ask(ctx context.Context, e *person, token string) {
	ctx, cancel := context.WithTimeout(ctx, fetchFor)
	defer cancel()
	repos, err := func() (repos []pipeline.Repo, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("panic: %v", v)
			}
		}()
		return p.fetch(ctx, token)
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if e.err = err; err == nil {
		e.can, e.at = readableOf(repos), now
	} else {
		e.failed = now
	}
	close(e.busy)
	e.busy = nil
}

// end has a token count as ended, also while GitHub has not heard of it.
func (p *people) end(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.makeRoom()
	p.kept[sha256.Sum256([]byte(token))] = &person{err: github.ErrSignedOut, used: p.now()}
}

// makeRoom lets go of who was away longest. p.mu is held.
func (p *people) makeRoom() {
	if len(p.kept) < mostPeople {
		return
	}
	var oldest [sha256.Size]byte
	var at time.Time
	for key, e := range p.kept {
		if at.IsZero() || e.used.Before(at) {
			oldest, at = key, e.used
		}
	}
	delete(p.kept, oldest)
}
