package work

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
	"forge/pipeline/command"
)

// refusal is GitHub asking to wait.
type refusal struct{ after time.Duration }

func (r *refusal) Error() string             { return "rate limited" }
func (r *refusal) RetryAfter() time.Duration { return r.after }

// clean is an error after which nothing can have landed.
type clean struct{}

func (clean) Error() string   { return "no route to host" }
func (clean) Ambiguous() bool { return false }

// Covers design "Publishing is level-triggered": a failure is tried again, with
// growing waits, and what GitHub asks for counts.
func TestPublishBackoff(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		errs []error
		want []time.Duration // between the tries
	}{
		"clean":     {[]error{clean{}, clean{}, clean{}, clean{}}, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}},
		"ambiguous": {[]error{errors.New("connection reset"), clean{}}, []time.Duration{15 * time.Second, 2 * time.Second}},
		"asked":     {[]error{&refusal{time.Hour}, clean{}}, []time.Duration{time.Hour, 2 * time.Second}},
		"panic":     {[]error{nil, clean{}}, []time.Duration{15 * time.Second, 2 * time.Second}}, // nil panics
	} {
		t.Run(name, func(t *testing.T) {
			k := openStore(t)
			synctest.Test(t, func(t *testing.T) {
				opts := options(t)
				opts.Settle = 15 * time.Second
				opts.Rand = func() float64 { return 0.5 } // no jitter
				b := &billboard{}
				b.publish = func(context.Context, *pipeline.Run, bool) error {
					n := len(b.all())
					if n > len(tc.errs) {
						return nil
					}
					if tc.errs[n-1] == nil {
						panic("oh no")
					}
					return tc.errs[n-1]
				}
				opts.Publisher = b
				id := newRun(t, k, 7)
				if err := newDriven(t, k, opts).Drive(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				if run := load(t, k, id); run.State != pipeline.StateVerified || run.Counters.PublishFaults != 0 {
					t.Errorf("run is %s with %d faults", run.State, run.Counters.PublishFaults)
				}
				all := b.all()
				var got []time.Duration
				for i := range tc.errs {
					got = append(got, all[i+1].at.Sub(all[i].at).Round(100*time.Millisecond))
					if !all[i+1].again {
						t.Errorf("try %d does not look before it creates", i+2)
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("waits (-want +got):\n%s", diff)
				}
				if all[0].again || all[len(tc.errs)+1].again {
					t.Error("the first try, or one after a success, looks for an earlier one")
				}
			})
		})
	}
}

// What could not be published with the rest is tried again by itself, after the run has
// ended, too; a limited number of times, and what else is new is shown without waiting for it.
func TestLatePublication(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fails int
		want  []time.Duration // between the tries
	}{
		"heals":     {2, []time.Duration{time.Minute, 2 * time.Minute}},
		"never":     {99, []time.Duration{1 * time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, 64 * time.Minute, 128 * time.Minute, 256 * time.Minute}},
		"never was": {0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := openStore(t)
			synctest.Test(t, func(t *testing.T) {
				opts, tries := options(t), 0
				b := &billboard{late: func(run *pipeline.Run) string {
					if tries++; !run.State.Ended() {
						tries = 0
					}
					if tries > 0 && tries <= tc.fails {
						return "it is there twice"
					}
					return ""
				}}
				opts.Publisher = b
				id := newRun(t, k, 7)
				e := newDriven(t, k, opts)
				for {
					v, err := e.advance(t.Context(), id, true)
					if err != nil {
						t.Fatal(err)
					}
					if !v.due && v.after == 0 {
						break
					}
					<-time.After(v.after)
				}
				run, all := load(t, k, id), b.all()
				if run.State != pipeline.StateVerified || run.Counters.PublishFaults != 0 || (run.Published.Late != "") != (tc.fails == 99) {
					t.Errorf("run is %s with %d faults, late: %q", run.State, run.Counters.PublishFaults, run.Published.Late)
				}
				var got []time.Duration
				for i := len(all) - tries + 1; i < len(all); i++ {
					got = append(got, all[i].at.Sub(all[i-1].at).Round(time.Second))
					if !all[i].again {
						t.Errorf("try %d does not look before it creates", i)
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("waits (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// What GitHub refuses is asked about, and the question is tried until it can be shown: a
// repository that was archived comes back.
func TestRefusedPublicationIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ended bool // the run, when it is refused
		away  time.Duration
		shown bool
	}{
		"a question":             {false, 20 * time.Minute, true},
		"the end":                {true, 20 * time.Minute, true},
		"the end, always":        {true, 1000 * time.Hour, false},
		"a question, for a week": {false, 7 * 24 * time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			k := openStore(t)
			synctest.Test(t, func(t *testing.T) {
				opts := options(t)
				var since time.Time
				tries := 0
				opts.Publisher = &billboard{publish: func(_ context.Context, run *pipeline.Run, _ bool) error {
					if run.State.Ended() != tc.ended && since.IsZero() || run.Plan == nil {
						return nil
					}
					if since.IsZero() {
						since = time.Now()
					}
					if tries++; time.Since(since) < tc.away {
						return &pipeline.Fault{Class: pipeline.FaultGitHub, Message: "the repository is archived", Final: true}
					}
					return nil
				}}
				id := newRun(t, k, 7)
				e := newDriven(t, k, opts)
				for n := 0; ; n++ {
					v, err := e.advance(t.Context(), id, true)
					if err != nil || n > 60 {
						t.Fatalf("%d turns, %+v: %v", n, v, err)
					}
					run := load(t, k, id)
					if !v.due && v.after == 0 || run.State == pipeline.StateWaiting && run.Rev == run.Published.Rev || run.State == pipeline.StateCancelled {
						break
					}
					<-time.After(v.after)
				}
				run := load(t, k, id)
				if shown := run.Rev == run.Published.Rev; shown != tc.shown || run.State == pipeline.StateCancelled || tries > 60 {
					t.Errorf("%s at revision %d, shown %d, after %d tries, next %v", run.State, run.Rev, run.Published.Rev, tries, run.Published.Next)
				}
			})
		})
	}
}

func TestBackoffLimits(t *testing.T) {
	t.Parallel()
	e := newDriven(t, openStore(t), options(t))
	for n, want := range map[int][2]time.Duration{
		1:    {800 * time.Millisecond, 1200 * time.Millisecond},
		2:    {1600 * time.Millisecond, 2400 * time.Millisecond},
		1000: {4 * time.Minute, 6 * time.Minute},
	} {
		for _, r := range []float64{0, 0.3, 0.999} {
			e.Rand = func() float64 { return r }
			if got := e.backoff(n, clean{}); got < want[0] || got > want[1] {
				t.Errorf("backoff(%d) = %v, want %v to %v", n, got, want[0], want[1])
			}
		}
	}
}

// A crash between publish.started and publish.completed: the next attempt waits
// until nothing can be under way any more, and looks before it creates — also
// when the run has moved on to another revision meanwhile.
func TestCrashWhilePublishing(t *testing.T) {
	t.Parallel()
	for _, moved := range []bool{false, true} {
		t.Run(map[bool]string{false: "same revision", true: "next revision"}[moved], func(t *testing.T) {
			k := openStore(t)
			synctest.Test(t, func(t *testing.T) {
				opts := options(t)
				opts.Settle = 15 * time.Second
				id := newRun(t, k, 7)
				ctx, crash := context.WithCancel(t.Context())
				opts.Publisher = &billboard{publish: func(ctx context.Context, _ *pipeline.Run, _ bool) error {
					crash()
					<-ctx.Done()
					return ctx.Err()
				}}
				if err := newDriven(t, k, opts).Drive(ctx, id); !errors.Is(err, context.Canceled) {
					t.Fatalf("Drive = %v", err)
				}
				crashed := time.Now()
				types := eventTypes(t, k, id)
				if diff := cmp.Diff([]string{"run.started", "phase.entered", "publish.started"}, types); diff != "" {
					t.Fatalf("events (-want +got):\n%s", diff)
				}
				if moved {
					if _, err := newDriven(t, k, options(t)).Tell(t.Context(), id, "x", command.Line{Name: "stop"}, maintainer, "cli"); err != nil {
						t.Fatal(err)
					}
				}
				b := &billboard{}
				opts.Publisher = b
				if err := newDriven(t, k, opts).Drive(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				first := b.all()[0]
				if !first.again {
					t.Error("it does not look before it creates")
				}
				if wait := first.at.Sub(crashed); wait < 14*time.Second || wait > 20*time.Second {
					t.Errorf("it waited %v, want 15 s", wait)
				}
				for _, s := range b.all()[1:] {
					if s.again {
						t.Errorf("revision %d looks for an attempt that has ended", s.rev)
					}
				}
				if run := load(t, k, id); run.Published.Rev != run.Rev {
					t.Errorf("shown at %d of %d", run.Published.Rev, run.Rev)
				}
			})
		})
	}
}

// An attempt that failed in another process, of which nothing is known here, is
// given time to settle too.
func TestFailedElsewhere(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		opts := options(t)
		opts.Settle = 15 * time.Second
		id := newRun(t, k, 7)
		ctx, crash := context.WithCancel(t.Context())
		opts.Publisher = &billboard{publish: func(context.Context, *pipeline.Run, bool) error { return clean{} }}
		opts.OnEvents = func(_ *pipeline.Run, events []pipeline.Event) {
			if events[0].Type == pipeline.EventPublishFailed {
				crash()
			}
		}
		if err := newDriven(t, k, opts).Drive(ctx, id); !errors.Is(err, context.Canceled) {
			t.Fatalf("Drive = %v", err)
		}
		failed := time.Now()
		b := &billboard{}
		opts.Publisher, opts.OnEvents = b, nil
		if err := newDriven(t, k, opts).Drive(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if first := b.all()[0]; !first.again || first.at.Sub(failed) < 14*time.Second {
			t.Errorf("again = %v after %v; want true after 15 s", first.again, first.at.Sub(failed))
		}
	})
}

// Events that the publisher found out are appended after its own.
func TestPublisherEvents(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	opts := options(t)
	opts.Publisher = finder{&billboard{}}
	id := newRun(t, k, 7)
	if err := newDriven(t, k, opts).Drive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	types := eventTypes(t, k, id)
	i := count(types, pipeline.EventBranchMoved)
	if run := load(t, k, id); i != 1 || run.Head != "sha-1-2" && run.Head != "human" {
		t.Errorf("%d moves, head %s: %v", i, run.Head, types)
	}
}

// finder finds, when there is a commit, that a human pushed.
type finder struct{ *billboard }

func (f finder) Publish(ctx context.Context, run *pipeline.Run, again bool) (pipeline.Publication, []pipeline.Event, error) {
	pub, _, err := f.billboard.Publish(ctx, run, again)
	if run.Head == "sha-1-1" {
		return pub, []pipeline.Event{{Type: pipeline.EventBranchMoved, Data: pipeline.Data{Head: "human", Actor: &maintainer}}}, err
	}
	return pub, nil, err
}
