package work

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/record"
)

// endings are what the runtime writes when a process ends by itself, cut short.
var endings = map[string]string{
	"run/7":         "\nruntime stack:\nruntime.throw({0x4e105f?, 0x2?})\n\t/go/panic.go:1229 +0x48\n\ngoroutine 6 gp=0x2 m=3 mp=0x2 [running labels:{\"forge\": \"run/7\"}]:\nmain.rec(0x1)\n\ngoroutine 9 [select labels:{\"forge\": \"run/8\"}]:\n",
	"run/7/publish": "panic: secret\n\tgoroutine 1 [running]:\n\ngoroutine 6 [running, locked to thread labels:{\"a\": \"b\", \"forge\": \"run/7/publish\"}]:\n",
	"delivery/a-b":  "panic: x\n\ngoroutine 8 [running labels:{\"forge\": \"delivery/a-b\"}]:\nmain.f()\n",
	"":              "panic: x\n\ngoroutine 8 [running]:\nmain.f()\n\ngoroutine 9 [select labels:{\"forge\": \"run/8\"}]:\n",
}

func TestWorkedOn(t *testing.T) {
	t.Parallel()
	for want, text := range endings {
		if got := WorkedOn(text); got != want {
			t.Errorf("WorkedOn(%q) = %q, want %q", text, got, want)
		}
	}
	if got := WorkedOn("SIGQUIT: quit\n"); got != "" {
		t.Errorf("WorkedOn a quit = %q", got)
	}
}

// labelHere is the label of the calling goroutine, as a crash would show it.
func labelHere(ctx context.Context) string {
	label, _ := pprof.Label(ctx, workLabel)
	return label
}

// Covers S32: what ends the process while a phase is carried out is tried once more, then asked
// about; a result in between counts, and other runs go on.
func TestCrashedPhase(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, k *keeper, mk func(Options) *Engine) {
		bad, good := newRun(t, k, 1), newRun(t, k, 2)
		seen := make(chan string, 1)
		hang := true
		opts := options(t)
		opts.Executor = &fakePhases{do: func(ctx context.Context, run *pipeline.Run, act pipeline.Action, _ Emit) ([]pipeline.Event, error) {
			if run.ID != bad || act.Phase.Phase != pipeline.PhaseImplement || !hang {
				return nil, nil
			}
			select {
			case seen <- labelHere(ctx):
			default:
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		w := watchEvents(&opts)
		crash := func(wantAside bool) {
			t.Helper()
			e := mk(opts)
			if err := e.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			on := <-seen
			if want := fmt.Sprint("run/", bad); on != want {
				t.Errorf("the phase works on %q, want %q", on, want)
			}
			w.untilState(t, k, good, pipeline.StateVerified)
			stop(t, e) // as far as the run is concerned it is as if it had crashed: the phase has no result
			if aside, err := mk(opts).Crashed(t.Context(), on, "a stack overflow"); err != nil || aside != wantAside {
				t.Errorf("Crashed = %v, %v; want %v", aside, err, wantAside)
			}
		}
		crash(false)
		if r := load(t, k, bad); r.State != pipeline.StateRunning || r.Fault == nil || r.Fault.Final || r.Counters.Faults != 1 {
			t.Errorf("after the first time: %s, %+v", r.State, r.Fault)
		}
		crash(true)
		e := start(t, mk(opts))
		w.untilState(t, k, bad, pipeline.StateWaiting)
		g := load(t, k, bad).Gate()
		if g.Guard.Name != pipeline.GuardFaults || !strings.Contains(g.Question, "the server ended by itself while it worked on this, twice (a stack overflow), so that it is set aside") {
			t.Errorf("the question is %q by %s", g.Question, g.Guard.Name)
		}
		if len(seen) > 0 {
			t.Error("it was taken up a third time")
		}
		hang = false
		if said, err := e.Tell(t.Context(), bad, "x", command.Line{Name: "continue"}, maintainer, "cli"); err != nil {
			t.Fatal(said, err)
		}
		w.untilState(t, k, bad, pipeline.StateVerified)
	})
}

// A result in between takes the mark away: it was no crash loop.
func TestCrashedWithAResultBetween(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	run := newRun(t, k, 1)
	opts := options(t)
	for i, phase := range []pipeline.Phase{pipeline.PhasePlan, pipeline.PhaseImplement, pipeline.PhaseReview} {
		begun := make(chan bool, 1)
		opts.Executor = &fakePhases{do: func(ctx context.Context, _ *pipeline.Run, act pipeline.Action, _ Emit) ([]pipeline.Event, error) {
			if act.Phase.Phase != phase {
				return nil, nil
			}
			begun <- true
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		e := newEngine(t, k, opts)
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-begun
		stop(t, e)
		if aside, err := newEngine(t, k, opts).Crashed(t.Context(), fmt.Sprint("run/", run), "a panic"); err != nil || aside {
			t.Errorf("crash %d: Crashed = %v, %v", i+1, aside, err)
		}
	}
	opts.Executor = &fakePhases{}
	w := watchEvents(&opts)
	start(t, newEngine(t, k, opts))
	w.untilState(t, k, run, pipeline.StateVerified)
}

// Covers S32: where showing a run ends the process, the run is not shown a third time, and its
// question is there for who looks at the server.
func TestCrashedPublication(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	run := newRun(t, k, 1)
	opts := options(t)
	begun := make(chan string, 1)
	hang := true
	opts.Publisher = &billboard{publish: func(ctx context.Context, _ *pipeline.Run, _ bool) error {
		if !hang {
			return nil
		}
		select {
		case begun <- labelHere(ctx):
		default:
		}
		<-ctx.Done()
		return ctx.Err()
	}}
	w := watchEvents(&opts)
	for i := range 2 {
		e := newEngine(t, k, opts)
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		on := <-begun
		if want := fmt.Sprintf("run/%d/publish", run); on != want {
			t.Errorf("it works on %q, want %q", on, want)
		}
		stop(t, e)
		if aside, err := newEngine(t, k, opts).Crashed(t.Context(), on, "a panic"); err != nil || aside != (i == 1) {
			t.Errorf("crash %d: Crashed = %v, %v", i+1, aside, err)
		}
	}
	e := start(t, newEngine(t, k, opts))
	w.until(t, "the run asks", func() bool { return load(t, k, run).State == pipeline.StateWaiting && idle(t, k, run) })
	if g := load(t, k, run).Gate(); g.Guard.Name != pipeline.GuardPublish || !strings.Contains(g.Question, "twice (a panic)") || len(begun) > 0 {
		t.Errorf("the question is %q by %s; shown again: %d", g.Question, g.Guard.Name, len(begun))
	}
	hang = false
	if said, err := e.Tell(t.Context(), run, "x", command.Line{Name: "continue"}, maintainer, "cli"); err != nil {
		t.Fatal(said, err)
	}
	w.untilState(t, k, run, pipeline.StateVerified)
}

// Covers S32: a delivery that ends the process is a dead letter at the second time.
func TestCrashedDelivery(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, k *keeper, mk func(Options) *Engine) {
		opts := options(t)
		opts.Hub, opts.Read = &fakeGitHub{}, readWords
		deliver(t, k, "g1", "start 7")
		deliver(t, k, "g2", "start 8")
		for i := range 2 {
			if aside, err := mk(opts).Crashed(t.Context(), "delivery/g1", "a stack overflow"); err != nil || aside != (i == 1) {
				t.Errorf("crash %d: Crashed = %v, %v", i+1, aside, err)
			}
		}
		if s, _ := outcome(t, k, "g1"); s != record.DeliveryDead {
			t.Errorf("it is %s, want dead", s)
		}
		if s, _ := outcome(t, k, "g2"); s != record.DeliveryWaiting {
			t.Errorf("the other is %s, want waiting", s)
		}
		dead, err := k.DeadDeliveries(t.Context(), 9)
		if err != nil || len(dead) != 1 || dead[0].Error != "the server ended by itself while it worked on this (a stack overflow)" {
			t.Errorf("dead are %+v, %v", dead, err)
		}
	})
}

func TestCrashedElsewhere(t *testing.T) {
	t.Parallel()
	e := newEngine(t, openStore(t), options(t))
	for on, fails := range map[string]bool{"": false, "a page": false, "delivery/gone": false, "run/99": true, "run/x": true} {
		if aside, err := e.Crashed(t.Context(), on, "a panic"); aside || (err != nil) != fails {
			t.Errorf("Crashed(%q) = %v, %v", on, aside, err)
		}
	}
}

// Deliveries are labelled while they are read and handled.
func TestLabelledDelivery(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	opts := options(t)
	labels := make(chan string, 2)
	text := func() string {
		var b strings.Builder
		if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
			t.Error(err)
		}
		return b.String()
	}
	opts.Read = func(event string, payload []byte) (pipeline.Notice, error) {
		labels <- text()
		return readWords(event, payload)
	}
	opts.Hub = &fakeGitHub{asked: func(string) error { labels <- text(); return nil }}
	deliver(t, k, "g1", "start 7")
	m := start(t, newEngine(t, k, opts))
	m.Wake()
	for _, when := range []string{"read", "handled"} {
		if got := <-labels; !strings.Contains(got, `"forge":"delivery/g1"`) {
			t.Errorf("no goroutine has its label while it is %s:\n%.3000s", when, got)
		}
	}
}
