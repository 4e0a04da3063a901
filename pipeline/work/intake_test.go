package work

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"forge/pipeline"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// intake runs the intake alone until all deliveries that wait are done or dead.
func intake(t *testing.T, k *keeper, opts Options) *Engine {
	t.Helper()
	if opts.Read == nil {
		opts.Read = readWords
	}
	if opts.Hub == nil {
		opts.Hub = &fakeGitHub{}
	}
	opts.Tick = time.Second
	e := newDriven(t, k, opts)
	var loop sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	loop.Go(func() { e.takeIn(ctx) })
	for {
		list, err := k.Deliveries(t.Context(), store.DeliveryFilter{State: record.DeliveryWaiting, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		time.Sleep(opts.Tick) // of the bubble's clock
	}
	cancel()
	stop(t, e)
	loop.Wait()
	return e
}

// Covers lessons 18: every delivery has an outcome.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ payload, want, reply string }{
		{"none", "ignored: test", ""},
		{"start 7", "run 3 started by mia", ""},
		{"start 5", "run 1 is already working on it", ""},
		{"start 6", "run 3 started by mia", ""}, // the earlier run of issue 6 has ended
		{"start 7 by eve", "ignored: eve may not start runs (needs write)", "@eve has not got it"},
		{"start 7 by ci[bot]", "ignored: ci[bot] is a bot, and bots start nothing", ""},
		{"start 8", "not started: .github/forge.yml: line 3", "Forge did not start: .github/forge.yml: line 3"},
		{"command 5 stop", "run 1: stop", ""},
		{"command 5 stop by eve", "ignored: eve may not command Forge (needs write)", ""},
		{"command 5 stop by ci[bot]", "ignored: ci[bot] is a bot, and Forge does not listen to bots", ""},
		{"command 5 wrong", "answered: there is no such command", "there is no such command"},
		{"command 5 continue 2", "run 1: answered: Nothing waits for an answer", "Nothing waits for an answer"},
		{"command 9 stop", "answered: no run here", "There is no run here"},
		{"command 9 help", "answered: help", "/forge status"},
		{"command 9 memory errors", "memory: answered: memory of acme/shop: \"errors\"", "memory of acme/shop: \"errors\""},
		{"command 9 remember this", "remember: answered: mia says at run 0: \"this\"", "mia says"},
		{"command 5 remember this", "remember: answered: mia says at run 1: \"this\"", "mia says"},
		{"command 6 forget 12", "forget: answered: mia forgets 12: \"\"", "mia forgets"},
		{"command 9 remember this by eve", "ignored: eve may not command Forge (needs write)", ""},
		{"command 9 forget 12 by ci[bot]", "ignored: ci[bot] is a bot, and Forge does not listen to bots", ""},
		{"command 9 incident 12", "incident: answered: mia answers in acme/shop: \"12\"", "mia answers"},
		{"command 5 incident 12", "incident: answered: mia answers in acme/shop: \"12\"", "mia answers"},
		{"command 9 ship stop", "ship: answered: This server knows nothing to do about \"ship\".", "nothing to do"},
		{"command 9 incident 12 by eve", "ignored: eve may not command Forge (needs write)", ""},
		{"command 9 incident 12 by ci[bot]", "ignored: ci[bot] is a bot, and Forge does not listen to bots", ""},
		{"unlabel 5", "run 1: run cancelled", ""},
		{"unlabel 6", "run 2: run 2 has ended", ""},
		{"edit 5 better", "run 1: noted: the run plans again", ""},
		{"push forge/issue-5 cafe", "run 1: the run goes on from cafe", ""},
		{"review forge/issue-5 changes_requested shorter", "run 1: 1 change requested: the work goes back with it", ""},
		{"review forge/issue-5 changes_requested shorter by eve", "run 1: nothing that the run has to act on", ""},
		{"review forge/issue-5 approved", "run 1: a review without requested changes", ""},
		{"review forge/issue-5 commented nice", "run 1: nothing that the run has to act on", ""},
		{"review forge/issue-6 changes_requested late", "run 2: run 2 has ended", ""},
		{"base cafe", "run 1: noted: it is taken in", ""},
		{"base base", "ignored: no run waits for it (push to main)", ""},
		{"checks cafe", "ignored: no run waits for it (check build: success)", ""},
		{"push main cafe", "ignored: no run is about it (push)", ""},
	} {
		t.Run(tc.payload, func(t *testing.T) {
			k := openStore(t)
			synctest.Test(t, func(t *testing.T) {
				opts := options(t)
				h := &fakeGitHub{may: map[string]string{"eve": "read"}}
				h.prepare = func(n pipeline.Notice) (pipeline.Start, error) {
					if n.Issue == 8 {
						return pipeline.Start{}, &pipeline.Fault{Class: pipeline.FaultGitHub, Message: ".github/forge.yml: line 3: no such key", Final: true}
					}
					return newStart(n.Issue), nil
				}
				opts.Hub, opts.Memory, opts.Outside = h, h, map[string]Outside{"incident": h}
				newRun(t, k, 5)
				ended := newRun(t, k, 6)
				if strings.Contains(tc.payload, "6") { // of the others, none looks at it
					if err := newDriven(t, k, options(t)).Drive(t.Context(), ended); err != nil {
						t.Fatal(err)
					}
				}
				deliver(t, k, "g1", tc.payload)
				intake(t, k, opts)
				state, got := outcome(t, k, "g1")
				if state != record.DeliveryDone || !strings.HasPrefix(got, tc.want) {
					t.Errorf("%s: %q, want done: %q", state, got, tc.want)
				}
				said := strings.Join(h.said(), "\n")
				if !strings.Contains(said, tc.reply) || tc.reply == "" && said != "" {
					t.Errorf("replies %q, want %q", said, tc.reply)
				}
				if tc.reply != "" && !strings.Contains(said, "g1") {
					t.Errorf("the reply's key is not the delivery's: %q", said)
				}
			})
		})
	}
}

// What people requested of a run that was cancelled before it was done is a note for the next
// one of the issue.
func TestRequestsOutliveTheirRun(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		opts := options(t)
		h := &fakeGitHub{prepare: func(n pipeline.Notice) (pipeline.Start, error) { return newStart(n.Issue), nil }}
		opts.Hub = h
		newRun(t, k, 5)
		for i, payload := range []string{"review forge/issue-5 changes_requested shorter", "unlabel 5", "start 5"} {
			deliver(t, k, fmt.Sprint("g", i), payload)
			intake(t, k, opts)
			if state, got := outcome(t, k, fmt.Sprint("g", i)); state != record.DeliveryDone {
				t.Fatalf("%s: %s %s", payload, state, got)
			}
		}
		run := load(t, k, 2)
		if want := []string{"mia, in a review: shorter"}; !slices.Equal(run.Notes, want) {
			t.Errorf("notes %q, want %q", run.Notes, want)
		}
	})
}

// Covers T8: who may not write changes nothing of what somebody else has requested.
func TestRequestsAreEdited(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]string{"": "longer", " by eve": "shorter", " by ci[bot]": "shorter"} {
		k := openStore(t)
		synctest.Test(t, func(t *testing.T) {
			opts := options(t)
			opts.Hub = &fakeGitHub{may: map[string]string{"eve": "read"}}
			newRun(t, k, 5)
			for i, payload := range []string{"numbered forge/issue-5 submitted shorter", "numbered forge/issue-5 edited longer" + by} {
				deliver(t, k, fmt.Sprint("g", i), payload)
				intake(t, k, opts)
			}
			if asked := load(t, k, 1).Requested; len(asked) != 1 || asked[0].Message != want {
				t.Errorf("edited%s: asked for %+v, want %q", by, asked, want)
			}
		})
	}
}

// A run that the server's own rules ask for begins once for its key, and not beside
// another one on its issue.
func TestBegin(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		opts := options(t)
		h := &fakeGitHub{}
		opts.Hub, opts.Read = h, readWords
		e := newDriven(t, k, opts)
		n := pipeline.Notice{Kind: pipeline.NoticeStart, Repo: testRepo, Issue: 9, Task: pipeline.Task{Issue: 9}}
		first, err := e.Begin(t.Context(), "incident/1/run", n)
		if err != nil || first == 0 {
			t.Fatalf("%d, %v", first, err)
		}
		for _, key := range []string{"incident/1/run", "incident/2/run"} {
			if again, err := e.Begin(t.Context(), key, n); again != first || err != nil {
				t.Errorf("%s: run %d, %v; want %d", key, again, err, first)
			}
		}
		h.prepare = func(pipeline.Notice) (pipeline.Start, error) {
			return pipeline.Start{}, &pipeline.Fault{Final: true, Message: "no such key"}
		}
		n.Issue = 10
		var fault *pipeline.Fault
		if id, err := e.Begin(t.Context(), "incident/3/run", n); id != 0 || !errors.As(err, &fault) {
			t.Errorf("run %d, %v", id, err)
		}
	})
}

func TestWithoutMemory(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		opts := options(t)
		h := &fakeGitHub{}
		opts.Hub = h
		deliver(t, k, "g1", "command 9 remember this")
		intake(t, k, opts)
		if _, got := outcome(t, k, "g1"); got != "remember: answered: This server remembers nothing." || !strings.Contains(strings.Join(h.said(), ""), "remembers nothing") {
			t.Errorf("outcome %q, replies %q", got, h.said())
		}
	})
}

// A delivery that cannot be handled is tried five times, with growing waits, and
// then left to a human; the others go on. Redriven, it has all its tries again.
func TestPoison(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		opts := options(t)
		h := &fakeGitHub{}
		var mu sync.Mutex
		var asked []time.Time
		sick := true
		h.asked = func(login string) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case !sick || !strings.HasPrefix(login, "sick"):
				return nil
			case login == "sick2":
				panic("oh no")
			}
			asked = append(asked, time.Now())
			return errors.New("GitHub is away")
		}
		opts.Hub, opts.Rand, opts.Tick = h, func() float64 { return 0.5 }, 500*time.Millisecond
		deliver(t, k, "poison", "panic")
		deliver(t, k, "junk", "gibberish")
		deliver(t, k, "panic", "start 2 by sick2")
		deliver(t, k, "away", "start 3 by sick")
		deliver(t, k, "good", "start 4")
		e := intake(t, k, opts)
		if s, o := outcome(t, k, "good"); s != record.DeliveryDone {
			t.Errorf("the good one: %s %q", s, o)
		}
		dead, err := e.Dead(t.Context())
		if err != nil || len(dead) != 4 {
			t.Fatalf("dead letters: %+v, %v; want 4", dead, err)
		}
		for _, d := range dead {
			if d.Attempts != 5 || d.Error == "" {
				t.Errorf("dead letter %+v; want 5 attempts and why", d)
			}
		}
		var waits []time.Duration
		for i := 1; i < len(asked); i++ {
			waits = append(waits, asked[i].Sub(asked[i-1]).Round(time.Second))
		}
		if got, want := fmt.Sprint(waits), "[1s 4s 16s 1m4s]"; got != want {
			t.Errorf("waits %s, want %s", got, want)
		}
		sick = false
		if err := e.Redrive(t.Context(), "delivery/away"); err != nil {
			t.Fatal(err)
		}
		intake(t, k, opts)
		if s, o := outcome(t, k, "away"); s != record.DeliveryDone || !strings.Contains(o, "started") {
			t.Errorf("redriven: %s %q", s, o)
		}
		for _, id := range []string{"delivery/nobody", "job/x", "nonsense"} {
			if err := e.Redrive(t.Context(), id); err == nil {
				t.Errorf("Redrive(%q): no error", id)
			}
		}
	})
}

// Covers lessons 18: a start that failed too often is told where it was asked for,
// once, and not to strangers who comment.
func TestDeadStart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ payload, asked, prepared, want string }{
		{"start 7", "GitHub is away", "", "#7 0 g1/dead: Forge could not start. It tried 5 times, the last time it ended with: permission of mia"},
		{"start 7", "", "no such branch", "no such branch"},
		{"start 7 commented", "", "no such branch", "#7 98 g1/dead: Forge could not start"},
		{"start 7 commented", "GitHub is away", "", ""},
	} {
		t.Run(tc.payload+tc.asked, func(t *testing.T) {
			k := openStore(t)
			synctest.Test(t, func(t *testing.T) {
				fails := func(text string) error {
					if text == "" {
						return nil
					}
					return errors.New(text)
				}
				h := &fakeGitHub{asked: func(string) error { return fails(tc.asked) }}
				h.prepare = func(n pipeline.Notice) (pipeline.Start, error) { return newStart(n.Issue), fails(tc.prepared) }
				opts := options(t)
				opts.Hub = h
				deliver(t, k, "g1", tc.payload)
				intake(t, k, opts)
				if s, _ := outcome(t, k, "g1"); s != record.DeliveryDead {
					t.Fatalf("the delivery is %s, want dead", s)
				}
				said := h.said()
				if tc.want == "" && len(said) == 0 {
					return
				}
				if len(said) != 1 || tc.want == "" || !strings.Contains(said[0], tc.want) {
					t.Errorf("replies %q, want one with %q", said, tc.want)
				}
			})
		})
	}
}

// Covers lessons 11: deliveries that come twice, in any order, have one effect
// each, and one issue gets one run.
func TestManyDeliveries(t *testing.T) {
	t.Parallel()
	n := 300
	if thorough {
		n = 1000
	}
	inBubble(t, func(t *testing.T, k *keeper) {
		rnd := rand.New(rand.NewPCG(1, 2))
		var list []record.Delivery
		edits := 0
		for i := range n {
			issue := rnd.IntN(20) + 1
			payload := "none"
			switch rnd.IntN(4) {
			case 0:
				payload = fmt.Sprintf("start %d", issue)
			case 1:
				payload = fmt.Sprintf("edit %d title-%d", issue, i)
				edits++
			}
			d := record.Delivery{GUID: fmt.Sprint("guid-", i), Event: "test", Received: time.Now(), Payload: []byte(payload)}
			list = append(list, d)
			if rnd.IntN(10) < 3 {
				list = append(list, d)
			}
		}
		rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for len(list) > 0 {
			part := list[:min(500, len(list))]
			list = list[len(part):]
			if err := k.KeepDeliveries(t.Context(), part); err != nil {
				t.Fatal(err)
			}
		}
		opts := options(t)
		opts.Read, opts.Hub = readWords, &fakeGitHub{}
		// Two servers on one database.
		var loops sync.WaitGroup
		var both []*Engine
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			e := newDriven(t, k, opts)
			both = append(both, e)
			loops.Go(func() { e.takeIn(ctx) })
		}
		w := &watcher{c: make(chan struct{})}
		w.until(t, "all deliveries are done", func() bool {
			waiting, err := k.Deliveries(t.Context(), store.DeliveryFilter{State: record.DeliveryWaiting, Limit: 1})
			return err == nil && len(waiting) == 0
		})
		cancel()
		for _, e := range both {
			stop(t, e)
		}
		loops.Wait()

		done, err := k.Deliveries(t.Context(), store.DeliveryFilter{State: record.DeliveryDone, Limit: 2 * n})
		if err != nil || len(done) != n {
			t.Fatalf("%d of %d deliveries done, %v", len(done), n, err)
		}
		started, noted := 0, 0
		for _, d := range done {
			switch {
			case strings.Contains(d.Outcome, "started by"):
				started++
			case strings.Contains(d.Outcome, "noted: the run plans again"):
				noted++
			case d.Outcome == "":
				t.Errorf("delivery %s has no outcome", d.GUID)
			}
		}
		runs, err := k.Runs(t.Context(), store.Filter{Limit: 1000})
		if err != nil || len(runs) != 20 || started != 20 {
			t.Errorf("%d runs, %d started, %v; want one for each of 20 issues", len(runs), started, err)
		}
		events := 0
		for _, r := range runs {
			events += count(eventTypes(t, k, r.ID), pipeline.EventIssueEdited)
		}
		if events != noted || noted == 0 || noted > edits {
			t.Errorf("%d edits took effect, %d were noted, %d sent", events, noted, edits)
		}
	})
}

// A delivery that another server has handled meanwhile leaves no trace of this one's work.
func TestHandledMeanwhile(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	opts := options(t)
	opts.Read = readWords
	id := newRun(t, k, 5)
	h := &fakeGitHub{asked: func(string) error {
		return k.Tx(t.Context(), func(ctx context.Context, tx *Tx) error {
			_, err := k.FinishDelivery(ctx, tx, "g1", "by the other one", false, time.Now())
			return err
		})
	}}
	opts.Hub = h
	e := newDriven(t, k, opts)
	deliver(t, k, "g1", "command 5 stop")
	q := &intakeQueue{known: map[string]bool{}, busy: map[string]bool{}}
	if _, err := e.fetch(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	e.accept(t.Context(), q.next())
	if _, o := outcome(t, k, "g1"); o != "by the other one" {
		t.Errorf("outcome %q", o)
	}
	if run := load(t, k, id); run.State != pipeline.StateRunning {
		t.Errorf("run is %s", run.State)
	}
}

// Deliveries of one issue keep their order; those of others pass them.
func TestIntakeOrder(t *testing.T) {
	t.Parallel()
	q := &intakeQueue{known: map[string]bool{}, busy: map[string]bool{}}
	for _, s := range []string{"a1", "a2", "b1", "a3", "c1"} {
		q.waiting = append(q.waiting, &inbound{Delivery: record.Delivery{GUID: s}, key: s[:1]})
	}
	next := func() string {
		if p := q.next(); p != nil {
			return p.GUID
		}
		return ""
	}
	got := []string{next(), next(), next(), next()}
	q.finished(&inbound{Delivery: record.Delivery{GUID: "a1"}, key: "a"})
	got = append(got, next(), next())
	if want := "[a1 b1 c1  a2 ]"; fmt.Sprint(got) != want {
		t.Errorf("order %v, want %s", got, want)
	}
}
