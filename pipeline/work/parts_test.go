package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/module"
	"forge/pipeline/store"
)

// modular are phases of a feature of three modules, the third of which needs the first.
func modular(_ context.Context, run *pipeline.Run, act pipeline.Action, _ Emit) ([]pipeline.Event, error) {
	d := pipeline.Data{Phase: act.Phase}
	switch act.Phase.Phase {
	case pipeline.PhasePlan:
		if d.Plan = run.Given; d.Plan == nil {
			d.Plan = &pipeline.Plan{Summary: "a plan", Split: &module.Split{Contract: []string{"api.go"}}}
			for _, id := range []string{"a", "b", "c"} {
				d.Plan.Split.Modules = append(d.Plan.Split.Modules, module.Module{ID: id, Size: "M", Paths: []string{id + "/**"}})
			}
			d.Plan.Split.Modules[2].Needs = []string{"a"}
		}
	case pipeline.PhaseContract:
		d.Implementation = &pipeline.Implementation{Summary: "agreed", Parent: run.Head, Head: "contract"}
	case pipeline.PhaseMerge:
		i := slices.IndexFunc(run.Parts, func(p module.Part) bool { return p.ID == act.Phase.Part })
		d.Update = &pipeline.Update{Base: run.Parts[i].Head, Parent: run.Head, Head: run.Head + "+" + act.Phase.Part}
	default:
		return nil, nil
	}
	return []pipeline.Event{{ID: act.Key + "/completed", Type: pipeline.EventPhaseCompleted, Source: "agent", Data: d}}, nil
}

func withModules(s *pipeline.Start) {
	s.Config.Modules.Mode = "auto"
	s.Config.Modules.Parallel = 3
}

// mortal is a store that dies after a number of writes: the last one is in the
// database, and nobody hears of it.
type mortal struct {
	*keeper
	left int
	die  context.CancelFunc

	mu sync.Mutex
}

var errDead = errors.New("the process has died")

func (m *mortal) write(do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left == 0 {
		return errDead
	}
	if err := do(); err != nil {
		return err
	}
	if m.left--; m.left == 0 {
		m.die()
		return errDead
	}
	return nil
}

func (m *mortal) Append(ctx context.Context, run *pipeline.Run, events []pipeline.Event, also func(context.Context, *Tx) error) error {
	return m.write(func() error { return m.keeper.Append(ctx, run, events, also) })
}

func (m *mortal) CreateRun(ctx context.Context, key string, start pipeline.Start, at time.Time, trace string, also func(context.Context, *Tx, int64) error) (run *pipeline.Run, err error) {
	err = m.write(func() error {
		run, err = m.keeper.CreateRun(ctx, key, start, at, trace, also)
		return err
	})
	return run, err
}

// checkFamily wants the run verified, with each of its modules built by one run and
// merged once.
func checkFamily(t *testing.T, k *keeper, id int64) {
	t.Helper()
	run := load(t, k, id)
	if run.State != pipeline.StateVerified || len(run.Parts) != 3 {
		t.Fatalf("the run is %s with %d modules: %s", run.State, len(run.Parts), run.Ended)
	}
	merged := strings.Split(run.Head, "+")
	sort.Strings(merged)
	if !slices.Equal(merged, []string{"a", "b", "c", fmt.Sprintf("sha-%d-1", id)}) && !slices.Equal(merged, []string{"a", "b", "c", "contract"}) {
		t.Errorf("the head is %s", run.Head)
	}
	list, err := k.Runs(t.Context(), store.Filter{Parent: id})
	if err != nil || len(list) != 3 {
		t.Errorf("%d runs build modules, %v", len(list), err)
	}
	types := eventTypes(t, k, id)
	if n := count(types, pipeline.EventModuleStarted); n > 3 {
		t.Errorf("%d modules were started", n)
	}
	for i := range run.Parts {
		p := &run.Parts[i]
		if child := load(t, k, p.Run); child.State != pipeline.StateVerified || child.Head != p.Merged || child.Part.Module.ID != p.ID {
			t.Errorf("module %s is %s at %s, merged at %s", p.ID, child.State, child.Head, p.Merged)
		}
	}
}

// Covers V6: modules are built side by side by runs that Drive advances, and those of a
// server.
func TestModules(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, k *keeper) {
		id := newRun(t, k, 1, withModules)
		opts := options(t)
		opts.Executor = &fakePhases{do: modular}
		if err := newDriven(t, k, opts).Drive(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		checkFamily(t, k, id)
		id = newRun(t, k, 2, withModules)
		w := watchEvents(&opts)
		start(t, newEngine(t, k, opts))
		w.untilState(t, k, id, pipeline.StateVerified)
		checkFamily(t, k, id)
	})
}

// Covers V6 and reliability: wherever the process dies, what follows finds what was
// done, and nothing of it is done twice.
func TestModulesSurvive(t *testing.T) {
	t.Parallel()
	opts := options(t)
	opts.Executor = &fakePhases{do: modular}
	ended, stride := false, 37 // writes between the deaths that are tried
	if thorough {
		stride = 11
	}
	for n := 1; !ended; n += stride {
		k := openStore(t)
		id := newRun(t, k, 1, withModules)
		ctx, die := context.WithCancel(t.Context())
		m := &mortal{keeper: k, left: n, die: die}
		dying, err := New[*Tx](nil, nil, m, opts)
		if err != nil {
			t.Fatal(err)
		}
		ended = dying.Drive(ctx, id) == nil
		die()
		if err := k.ClearLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := newDriven(t, k, opts).Drive(t.Context(), id); err != nil {
			t.Fatalf("after %d writes: %v", n, err)
		}
		checkFamily(t, k, id)
		if t.Failed() {
			t.Fatalf("after %d writes", n)
		}
		if n > 500 {
			t.Fatal("it writes without end")
		}
	}
}

// Covers V6, S-rows of stopping: a stop, and the end, of a run reach its modules.
func TestModulesAreStopped(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, k *keeper) {
		id := newRun(t, k, 1, withModules)
		opts := options(t)
		working := make(chan int64, 10)
		opts.Executor = &fakePhases{do: func(ctx context.Context, run *pipeline.Run, act pipeline.Action, emit Emit) ([]pipeline.Event, error) {
			if run.Part != nil && act.Phase.Phase == pipeline.PhaseImplement {
				working <- run.ID
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return modular(ctx, run, act, emit)
		}}
		w := watchEvents(&opts)
		e := start(t, newEngine(t, k, opts))
		first, second := <-working, <-working
		say := func(words string) {
			events, _ := load(t, k, id).Answer(command.Line{Name: words}, maintainer, "cli", 0, time.Now())
			if err := e.Record(t.Context(), id, prefix(words, events), nil); err != nil {
				t.Fatal(err)
			}
		}
		say("stop")
		for _, child := range []int64{first, second} {
			w.untilState(t, k, child, pipeline.StateStopped)
		}
		say("resume")
		<-working
		<-working
		say("cancel")
		for _, child := range []int64{first, second} {
			w.untilState(t, k, child, pipeline.StateCancelled)
		}
	})
}

// Covers V9: a command is for the module that it names, or for the only one that asks.
func TestAddressed(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	e := newDriven(t, k, options(t))
	a, b := newRun(t, k, 2), newRun(t, k, 3)
	gate := &pipeline.Gate{ID: "gate/1", Kind: pipeline.GateClarification, Question: "how?", Choices: []pipeline.Choice{{Name: "choose", Arg: "ANSWER"}}}
	if err := e.Record(t.Context(), b, []pipeline.Event{{ID: "ask", Type: pipeline.EventGateRequested, Data: pipeline.Data{Gate: gate}}}, nil); err != nil {
		t.Fatal(err)
	}
	run := &pipeline.Run{ID: 9, Parts: []module.Part{{ID: "a", Run: a, Question: "why?"}, {ID: "b", Run: b}},
		Plan: &pipeline.Plan{Split: &module.Split{Modules: []module.Module{{ID: "a"}, {ID: "b"}, {ID: "c", Needs: []string{"a"}}}}}}
	for _, tt := range []struct {
		cmd   command.Line
		both  bool // modules ask
		to    int64
		words string
	}{
		{cmd: command.Line{Name: "continue", Part: "b"}, to: b},
		{cmd: command.Line{Name: "continue"}, to: a},
		{cmd: command.Line{Name: "status"}, to: 9},
		{cmd: command.Line{Name: "stop"}, to: 9},
		{cmd: command.Line{Name: "continue", Args: "2"}, both: true, words: "2 modules ask, so it is not clear which one this answers: a, b. Name it:\n\n- a: why?\n- b: how? Choices: `/forge b choose ANSWER`."},
		{cmd: command.Line{Name: "b", Error: "There is no command"}, words: "It waits for a human: how? Choices: `"},
		{cmd: command.Line{Name: "continue", Part: "x"}, words: "There is no module"},
		{cmd: command.Line{Name: "b", Args: "chose red", Error: "There is no command"}, words: `Nothing was done: "chose" is no command. Did you mean ` + "`/forge b choose`?"},
		{cmd: command.Line{Name: "cancel", Part: "c"}, to: 9},
	} {
		run.Parts[1].Question = map[bool]string{true: "how?"}[tt.both]
		to, words, err := e.addressed(t.Context(), run, tt.cmd)
		if err != nil || !strings.Contains(words, tt.words) || (words != "") != (tt.words != "") || to != nil && to.ID != tt.to {
			t.Errorf("%+v goes to %v, %q, %v", tt.cmd, to, words, err)
		}
	}
	run.State = pipeline.StateStopped
	if to, words, err := e.addressed(t.Context(), run, command.Line{Name: "resume", Part: "b"}); err != nil || to != nil || !strings.Contains(words, "stays stopped, too. `/forge resume`") {
		t.Errorf("with the whole run stopped, b is let go on: %v, %q, %v", to, words, err)
	}
	run.State = pipeline.StateRunning
	run.Parts[1].Question, run.Config.Mode = "", config.ModeManual
	for args, want := range map[string]int64{"all": 9, "": a} { // all steps are the run's, whichever module asks
		if to, words, err := e.addressed(t.Context(), run, command.Line{Name: "approve", Args: args}); err != nil || words != "" || to.ID != want {
			t.Errorf("in manual mode approve %s goes to %v, %q, %v", args, to, words, err)
		}
	}
	run.Parts[0] = module.Part{ID: "a", Run: a, State: "accepted", By: "alice", Head: "1234567890", Merged: "1234567890"}
	run.Parts[1] = module.Part{ID: "b", Run: b, State: "verified", Head: "7654321"}
	asPart := func(id int64, name string) int64 {
		return newRun(t, k, 10+int(id), func(s *pipeline.Start) { s.Part = &module.Of{Run: run.ID, Module: module.Module{ID: name}} })
	}
	a, b = asPart(a, "a"), asPart(b, "b")
	for _, id := range []int64{a, b} {
		if err := e.Record(t.Context(), id, []pipeline.Event{{ID: "end", Type: pipeline.EventRunVerified}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	run.Parts[0].Run, run.Parts[1].Run = a, b
	for _, tt := range []struct {
		cmd   command.Line
		ended bool // the run itself
		to    int64
		words string
	}{
		{cmd: command.Line{Name: "continue", Part: "a", Text: "say it louder"}, ended: true, words: "Run 9, which planned it, has ended"},
		{cmd: command.Line{Name: "continue", Args: "2", Part: "a"}, words: "The module a was accepted by alice, and is merged as 1234567"},
		{cmd: command.Line{Name: "retry", Part: "a"}, words: "`/forge a continue` with words on further lines sends it back to work"},
		{cmd: command.Line{Name: "continue", Part: "b"}, words: "The module b is verified, and waits to be merged"},
		{cmd: command.Line{Name: "continue", Part: "a", Text: "say it louder"}, to: a},
		{cmd: command.Line{Name: "accept", Part: "a"}, to: a}, // its own run says what that does
		{cmd: command.Line{Name: "later", Part: "a"}, to: a},
		{cmd: command.Line{Name: "later", Part: "b"}, to: 9}, // not merged yet
		{cmd: command.Line{Name: "cancel", Part: "b"}, to: 9},
		{cmd: command.Line{Name: "accept", Part: "b"}, to: b},
		{cmd: command.Line{Name: "later", Part: "b"}, ended: true, words: "so `later` changes nothing. Run 9, which planned it, has ended"},
		{cmd: command.Line{Name: "accept", Part: "a"}, ended: true, words: "so `accept` changes nothing. Run 9, which planned it, has ended"},
	} {
		run.State = map[bool]pipeline.State{true: pipeline.StateVerified, false: pipeline.StateRunning}[tt.ended]
		to, words, err := e.addressed(t.Context(), run, tt.cmd)
		if err != nil || !strings.Contains(words, tt.words) || (words != "") != (tt.words != "") || words == "" && to.ID != tt.to {
			t.Errorf("of a module that has passed, %+v goes to %v, %q, %v", tt.cmd, to, words, err)
		}
	}
	if _, words, _ := e.addressed(t.Context(), &pipeline.Run{}, command.Line{Name: "status", Part: "x"}); !strings.Contains(words, "neither a command nor a module") {
		t.Errorf("without modules it says %q", words)
	}
}

// minutes are those that each of five modules works, d after a and b, e after a and c.
var minutes = map[string]float64{"a": 4, "b": 3, "c": 7.25, "d": 3.75, "e": 6}

// paced are phases of modules that take the time of their work, three quarters of it to
// build and the rest to review and test, and merges that are tested for half a minute
// where something was merged since the module began.
func paced(split *module.Split, takes map[string]float64) *fakePhases {
	share := map[pipeline.Phase]float64{pipeline.PhaseImplement: 0.75, pipeline.PhaseReview: 0.15, pipeline.PhaseTest: 0.1}
	return &fakePhases{do: func(ctx context.Context, run *pipeline.Run, act pipeline.Action, emit Emit) ([]pipeline.Event, error) {
		wait := 0.0
		if run.Part != nil {
			wait = takes[run.Part.Module.ID] * share[act.Phase.Phase]
		} else if act.Phase.Phase == pipeline.PhaseMerge && module.Find(run.Parts, act.Phase.Part).Base != run.Head {
			wait = 0.5
		}
		time.Sleep(time.Duration(wait * float64(time.Second)))
		events, err := modular(ctx, run, act, emit)
		if run.Part == nil && act.Phase.Phase == pipeline.PhasePlan {
			events[0].Data.Plan.Split = split
		}
		return events, err
	}}
}

// buildStage, in which a minute is a second, is how long the modules take to be built and merged by a server, by the
// clock of the bubble that the test runs in: what the machine takes is not in it.
func buildStage(t *testing.T, split *module.Split, takes map[string]float64, parallel int) time.Duration {
	k := openStore(t)
	id := newRun(t, k, 1, withModules, func(s *pipeline.Start) { s.Config.Modules.Parallel = parallel })
	ended := make(chan struct{})
	opts := Options{Executor: paced(split, takes), Publisher: &billboard{}, Logger: testLog(t)}
	opts.OnEvents = func(run *pipeline.Run, _ []pipeline.Event) {
		if run.ID == id && run.State == pipeline.StateVerified && run.Published.Rev == run.Rev {
			close(ended)
		}
	}
	e := newEngine(t, k, opts)
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-ended
	stop(t, e)
	events, err := k.Events(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	var first, last time.Time
	for _, ev := range events {
		switch p := ev.Data.Phase; {
		case ev.Type == pipeline.EventModuleStarted && first.IsZero():
			first = ev.Time
		case ev.Type == pipeline.EventPhaseCompleted && p.Phase == pipeline.PhaseMerge:
			last = ev.Time
		}
	}
	return last.Sub(first)
}

// Covers V6: by the clock of their work alone, modules take hardly longer than the longest
// way through them, and six that need nothing are built three at once at least 2.5 times
// as fast as one after the other.
func TestPaceOfModules(t *testing.T) {
	t.Parallel()
	split := func(ids ...string) *module.Split {
		s := &module.Split{}
		for _, id := range ids {
			s.Modules = append(s.Modules, module.Module{ID: id, Size: "M", Paths: []string{id + "/**"}})
		}
		return s
	}
	five := split("a", "b", "c", "d", "e")
	five.Modules[3].Needs, five.Modules[4].Needs = []string{"a", "b"}, []string{"a", "c"}
	six, same := split("a", "b", "c", "d", "e", "f"), map[string]float64{"a": 4, "b": 4, "c": 4, "d": 4, "e": 4, "f": 4}
	synctest.Test(t, func(t *testing.T) {
		three, longest := buildStage(t, five, minutes, 3), 13250*time.Millisecond // c, then e
		if float64(three) > 1.15*float64(longest) {
			t.Errorf("five modules took %s, %.2f × the longest way", three, float64(three)/float64(longest))
		}
	})
	faster := 0.0
	for range 3 { // chance decides how long a worker that has nothing to do waits
		synctest.Test(t, func(t *testing.T) {
			one, three := buildStage(t, six, same, 1), buildStage(t, six, same, 3)
			faster = max(faster, float64(one)/float64(three))
		})
		if faster >= 2.5 {
			return
		}
	}
	t.Errorf("six modules are built %.2f × as fast as one at a time", faster)
}
