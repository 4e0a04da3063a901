package work

import (
	"context"
	"slices"
	"testing"
	"time"

	"forge/pipeline"
)

// Runs that wait for a provider are due as soon as it answers a call that began after it had refused
// them, whatever they were told to wait and whichever server saw it. Who waits for another provider
// waits on, and who is refused again is left alone for a while.
func TestAnsweredWakesOthers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, k *keeper, _ func(Options) *Engine) {
		now := time.Now().UTC().Truncate(time.Microsecond)
		services := map[int64]string{}
		var back []time.Time
		opts := options(t)
		opts.Now = func() time.Time { return now }
		opts.Executor = &fakePhases{do: func(_ context.Context, run *pipeline.Run, _ pipeline.Action, _ Emit) ([]pipeline.Event, error) {
			if w := run.Await; w != nil {
				back = append(back, w.Back)
			}
			return nil, &pipeline.Fault{Class: pipeline.FaultProvider, Message: "HTTP 429", RetryAt: now.Add(time.Hour), Service: services[run.ID]}
		}}
		answered := map[string]time.Time{}
		opts.Answered = func(service string) time.Time { return answered[service] }
		sees := newDriven(t, k, opts)
		opts.Answered = nil
		other := newDriven(t, k, opts)
		due := func(want ...int64) {
			t.Helper()
			if err := sees.wakeAnswered(t.Context()); err != nil {
				t.Fatal(err)
			}
			got, _, err := k.Due(t.Context(), now, 9)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("due are %v, %v; want %v", got, err, want)
			}
		}
		advance := func(e *Engine, ids ...int64) {
			t.Helper()
			for _, id := range ids {
				if _, err := e.advance(t.Context(), id, true); err != nil {
					t.Fatal(err)
				}
			}
		}
		one, two, third, nameless := newRun(t, k, 1), newRun(t, k, 2), newRun(t, k, 3), newRun(t, k, 4)
		services[one], services[two], services[third] = "openai", "openai", "anthropic"
		advance(sees, one, third, nameless)
		advance(other, two)
		due()
		answered[""], answered["openai"] = now, now // begun no later than the refusals
		due()
		now = now.Add(time.Minute)
		at := now.Add(-time.Second)
		answered[""], answered["openai"] = at, at
		due(one, two)
		if run := load(t, k, two); run.Awaits() != "" || !run.Await.Since.Equal(now.Add(-time.Minute)) {
			t.Errorf("it waits for %q since %s", run.Awaits(), run.Await.Since)
		}
		advance(other, one, two)
		if !slices.EqualFunc(back, []time.Time{at, at}, time.Time.Equal) {
			t.Errorf("the phases are told that it answered at %v, want %s twice", back, at)
		}
		answered["openai"] = now.Add(time.Second) // others', and not theirs
		for range 2 {                             // what is remembered of them counts no less
			now = now.Add(leastLeft/2 - time.Second)
			due()
		}
		now = now.Add(3 * time.Second)
		due(one, two)
	})
}
