package fair

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// A run that wants many places keeps one that wants a few waiting for one turn at most:
// what becomes free goes to who holds the fewest, then to who came first.
func TestFewestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(2)
		var order []int64
		var mu sync.Mutex
		backs := make(chan func(), 10)
		want := func(who int64) {
			go func() {
				back, err := p.Take(t.Context(), who)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, who)
				mu.Unlock()
				backs <- back
			}()
			synctest.Wait()
		}
		for _, who := range []int64{1, 1, 1, 1, 2, 3} {
			want(who)
		}
		if got := p.Waiting(); got != 4 {
			t.Errorf("%d wait, want 4", got)
		}
		for range 6 {
			(<-backs)()
			synctest.Wait()
		}
		if want := []int64{1, 1, 2, 1, 3, 1}; !slices.Equal(order, want) {
			t.Errorf("places went to %v, want %v", order, want)
		}
	})
}

// Never more hold a place than there are, and who stops waiting loses none.
func TestNeverMore(t *testing.T) {
	p := New(3)
	var now, most atomic.Int32
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			if i%3 == 0 {
				cancel()
			}
			defer cancel()
			back, err := p.Take(ctx, int64(i%5))
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return
			}
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			now.Add(-1)
			back()
		})
	}
	all.Wait()
	if most.Load() > 3 || p.free != 3 || len(p.held) > 0 || p.Waiting() > 0 {
		t.Errorf("at most %d at once; %d free, %v held, %d waiting at the end", most.Load(), p.free, p.held, p.Waiting())
	}
	back, err := (*Pool)(nil).Take(t.Context(), 1)
	if err != nil || New(0) != nil {
		t.Errorf("without a limit: %v", err)
	}
	back()
}
