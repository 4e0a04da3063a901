package agent

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/module"
)

// busy counts how many of its calls are under way.
type busy struct {
	now, most *atomic.Int32
	go1       chan struct{}
}

func (b busy) Complete(context.Context, Request) (Response, error) {
	n := b.now.Add(1)
	for m := b.most.Load(); n > m && !b.most.CompareAndSwap(m, n); m = b.most.Load() {
	}
	<-b.go1
	b.now.Add(-1)
	return Response{}, nil
}

// So many calls of a provider are under way, whichever of its models they are of, and who
// has stopped waits no longer.
func TestCallsAtOnce(t *testing.T) {
	t.Parallel()
	b := busy{&atomic.Int32{}, &atomic.Int32{}, make(chan struct{})}
	a, err := New(Options{Open: func(string) (Model, error) { return b, nil },
		Models: map[config.Role]string{"": "acme/large", rolePlanner: "acme/small"}, AtOnce: 2})
	if err != nil {
		t.Fatal(err)
	}
	part := &pipeline.Run{ID: 8, Part: &module.Of{Run: 7}}
	var all sync.WaitGroup
	for i := range 8 {
		m, _, err := a.model(part, []config.Role{rolePlanner, roleReviewer}[i%2])
		if err != nil || m.(queued).run != 7 {
			t.Fatal(err, m)
		}
		all.Go(func() {
			if _, err := m.Complete(t.Context(), Request{}); err != nil {
				t.Error(err)
			}
		})
	}
	for range 8 {
		b.go1 <- struct{}{}
	}
	all.Wait()
	if got := b.most.Load(); got > 2 {
		t.Errorf("%d calls at the same time, want 2 at most", got)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	back, err := a.pools["acme"].Take(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer back()
	second, err := a.pools["acme"].Take(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer second()
	m, _, _ := a.model(part, rolePlanner)
	if _, err := m.Complete(stopped, Request{}); err == nil {
		t.Error("a call of a run that was stopped was made")
	}
}
