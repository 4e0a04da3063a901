package work

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
	"forge/pipeline/command"
)

// newer is a server of a version that knows one more event.
type newer struct{ *keeper }

const ofTheFuture pipeline.EventType = "run.approved_by_robot"

func (n newer) Load(ctx context.Context, id int64) (*pipeline.Run, error) {
	run, err := n.keeper.Load(ctx, id)
	if err == nil {
		run.Unknown = ""
	}
	return run, err
}

// future is what a newer server wrote.
func future(id string) pipeline.Event {
	return pipeline.Event{ID: id, Type: ofTheFuture, Source: "forge", Time: time.Now()}
}

// Covers reliability 21: of two servers on one schema, the older one works on no run whose
// log has events that it does not know, and takes in nothing that is said about it: what
// these mean for the run is not in what it sees. Both wait for the newer one.
func TestEventsOfANewerServer(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, k *keeper, mk func(Options) *Engine) {
		opts := options(t)
		older, hub := &fakePhases{}, &fakeGitHub{}
		opts.Executor, opts.Hub, opts.Read = older, hub, readWords
		w := watchEvents(&opts)
		foreign, own := newRun(t, k, 7), newRun(t, k, 8)
		if err := k.Append(t.Context(), load(t, k, foreign), []pipeline.Event{future("a")}, nil); err != nil {
			t.Fatal(err)
		}
		m := mk(opts)
		start(t, m)
		deliver(t, k, "stop", "command 7 stop")
		deliver(t, k, "help", "command 8 help")
		w.untilState(t, k, own, pipeline.StateVerified) // what it knows goes on
		w.until(t, "the other delivery is taken in", func() bool {
			state, _ := outcome(t, k, "help")
			return state == "done"
		})
		for _, key := range older.did() {
			if strings.HasPrefix(key, fmt.Sprintf("run/%d/", foreign)) {
				t.Errorf("the older server did %s", key)
			}
		}
		if run := load(t, k, foreign); run.Seq != 2 || run.Unknown != ofTheFuture {
			t.Errorf("the run is at %d, unknown %q; want nothing behind what the newer server wrote", run.Seq, run.Unknown)
		}
		if state, words := outcome(t, k, "stop"); state != "waiting" {
			t.Errorf("the delivery about it is %s: %q", state, words)
		}
		w.until(t, "it is free for another server", func() bool {
			due, _, err := k.Due(t.Context(), time.Now(), 10)
			return err == nil && len(due) == 1 && due[0] == foreign
		})
	})
}

// A newer server that takes in what people say while the older one works on the run ends
// that work: the older one learns of it when it looks again.
func TestNewerServerWritesMeanwhile(t *testing.T) {
	t.Parallel()
	k := openStore(t)
	opts := options(t)
	id := newRun(t, k, 7)
	c := &fakePhases{}
	opts.Executor = c
	first := true
	opts.OnEvents = func(run *pipeline.Run, events []pipeline.Event) {
		if first {
			first = false
			if err := k.Append(context.WithoutCancel(t.Context()), load(t, k, id), []pipeline.Event{future("a")}, nil); err != nil {
				t.Error(err)
			}
		}
	}
	e := newDriven(t, k, opts)
	if v, err := e.advance(t.Context(), id, false); err != nil || v.due {
		t.Fatalf("advance: %+v, %v", v, err)
	}
	run := load(t, k, id)
	if run.State.Ended() || run.Unknown != ofTheFuture {
		t.Errorf("the run is %s, unknown %q", run.State, run.Unknown)
	}
	seen := &leased{id: id, run: load(t, k, id)} // as it was before that
	seen.run.Seq, seen.run.Unknown = 1, ""
	if err := e.catchUp(t.Context(), seen); !isForeign(err) {
		t.Errorf("to catch up with it: %v", err)
	}
	at := run.Seq
	if v, err := e.advance(t.Context(), id, false); err != nil || v.due || load(t, k, id).Seq != at {
		t.Errorf("again: %+v, %v", v, err)
	}
	if _, err := e.Tell(t.Context(), id, "x", command.Line{Name: "stop"}, maintainer, "dashboard"); err == nil || !strings.Contains(err.Error(), "upgrade this server") {
		t.Errorf("Tell: %v", err)
	}
	n, err := New[*Tx](nil, nil, newer{k}, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Drive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if run := load(t, k, id); run.State != pipeline.StateVerified {
		t.Errorf("the newer server left it %s", run.State)
	}
}
