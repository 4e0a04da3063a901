package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
)

// fixTape is an implementation in four steps. Its commands tell the process id
// as a duration: noise that differs each time.
const fixTape = `
-- implementer 1/1 --
@usage input=100 output=10
>>> read
path: a.txt
-- implementer 1/2 --
@usage input=200 output=10
>>> write
path: a.txt
content: |
  two
>>> run
command: echo "ok pkg 0.$$s"; cat a.txt
-- implementer 1/3 --
@expect two
@usage input=300 output=10
>>> edit
path: a.txt
old: two
new: three
-- implementer 1/4 --
@usage input=400 output=10
>>> submit
summary: three it is
`

var implementRef = pipeline.PhaseRef{Phase: pipeline.PhaseImplement, Iteration: 1, Attempt: 1, Mode: pipeline.ModeFresh}

// counted counts the calls of a model, and lets some of them break.
type counted struct {
	Model
	calls  int
	breaks func(call int) error
}

func (c *counted) Complete(ctx context.Context, r Request) (Response, error) {
	c.calls++
	if c.breaks != nil {
		if err := c.breaks(c.calls); err != nil {
			return Response{}, err
		}
	}
	return c.Model.Complete(ctx, r)
}

// brokenTape lets the recording of a call fail.
type brokenTape struct {
	*memoryTape
	records int
	at      int
}

func (b *brokenTape) TapeRecord(ctx context.Context, run int64, key string, step int, hash string, data []byte) error {
	if b.records++; b.records == b.at {
		return errors.New("disk full")
	}
	return b.memoryTape.TapeRecord(ctx, run, key, step, hash, data)
}

// TestCrashPlayback ends a phase at every step, in each of three places, and runs
// it again on a fresh workspace: the result, the events and what the run books
// are those of an undisturbed phase, and no recorded call is made twice.
// Covers I2; reliability 19.
func TestCrashPlayback(t *testing.T) {
	t.Parallel()
	const price = "openai/gpt-6-sol"
	plain := &eventLog{}
	want, _, err := newAgent(t, price, tapeModel(t, fixTape)).Implement(t.Context(), job(newRun(), implementRef, newWorkspace(t, map[string]string{"a.txt": "one\n"}), plain))
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"before the call", "before the record", "before the events"} {
		for at := 1; at <= 4; at++ {
			t.Run(fmt.Sprintf("%s of step %d", place, at), func(t *testing.T) {
				tape, log := &memoryTape{}, &eventLog{}
				m := &counted{Model: tapeModel(t, fixTape)}
				broken := &brokenTape{memoryTape: tape}
				a := newAgent(t, price, m, func(o *Options) { o.Tape = broken })
				j := job(newRun(), implementRef, newWorkspace(t, map[string]string{"a.txt": "one\n"}), nil)
				steps := 0
				j.Emit = func(ctx context.Context, e ...pipeline.Event) error {
					if steps++; place == "before the events" && steps == at {
						return errors.New("killed")
					}
					return log.emit(ctx, e...)
				}
				extra := 0
				switch place {
				case "before the call":
					extra = 1 // the call that broke is made again; it brought nothing
					m.breaks = func(call int) error {
						if call == at {
							return context.Canceled
						}
						return nil
					}
				case "before the record":
					broken.at, extra = at, 1
				}
				if _, _, err := a.Implement(t.Context(), j); err == nil {
					t.Fatal("the crash did not happen")
				}
				m.breaks = nil
				ws := newWorkspace(t, map[string]string{"a.txt": "one\n"})
				got, usage, err := newAgent(t, price, m, func(o *Options) { o.Tape = tape }).Implement(t.Context(), job(newRun(), implementRef, ws, log))
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("result (-want +got):\n%s", d)
				}
				if m.calls != 4+extra {
					t.Errorf("%d calls, want %d", m.calls, 4+extra)
				}
				if log.usage() != plain.usage() || usage != plain.usage() {
					t.Errorf("booked %+v and returned %+v, want %+v", log.usage(), usage, plain.usage())
				}
				if got, want := strings.ReplaceAll(log.String(), " (played back from the tape)", ""), plain.String(); got != want {
					t.Errorf("events:\n%s\nwant:\n%s", got, want)
				}
				if s := ws.files(t)["a.txt"]; s != "three\n" {
					t.Errorf("a.txt is %q", s)
				}
			})
		}
	}
}

// TestPlaybackMismatch changes the world between two executions: the tape is cut
// where the request differs, and the model is asked.
func TestPlaybackMismatch(t *testing.T) {
	t.Parallel()
	tape := &memoryTape{}
	m := &counted{Model: tapeModel(t, fixTape)}
	a := newAgent(t, "tape:x", m, func(o *Options) { o.Tape = tape })
	for i, tt := range []struct {
		content string
		calls   int
	}{{"one\n", 4}, {"one\n", 4}, {"uno\n", 7}, {"uno\n", 7}} {
		log := &eventLog{}
		ws := newWorkspace(t, map[string]string{"a.txt": tt.content})
		if _, _, err := a.Implement(t.Context(), job(newRun(), implementRef, ws, log)); err != nil {
			t.Fatal(err)
		}
		if m.calls != tt.calls {
			t.Errorf("execution %d, with %q: %d calls in all, want %d", i+1, tt.content, m.calls, tt.calls)
		}
	}
	if n := len(tape.all()); n != 4 {
		t.Errorf("%d calls on the tape, want 4", n)
	}
}

// TestAttempts repeats a phase after a fault: a provider's fault lets it go on
// where it stopped, at no cost, the agent's own nonsense is not played again.
func TestAttempts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault pipeline.FaultClass
		calls int
		note  int // steps played back
	}{{pipeline.FaultProvider, 2 + 1 + 2, 2}, {pipeline.FaultAgent, 2 + 1 + 4, 0}} {
		tape, log := &memoryTape{}, &eventLog{}
		m := &counted{Model: tapeModel(t, fixTape), breaks: func(call int) error {
			if call == 3 {
				return &pipeline.Fault{Class: tt.fault, Message: "broke"}
			}
			return nil
		}}
		a := newAgent(t, "openai/gpt-6-sol", m, func(o *Options) { o.Tape = tape })
		run, files := newRun(), map[string]string{"a.txt": "one\n"}
		_, first, err := a.Implement(t.Context(), job(run, implementRef, newWorkspace(t, files), log))
		wantFault(t, err, tt.fault, "broke")
		run.Fault = &pipeline.Fault{Class: tt.fault}
		run.Usage = first
		again := implementRef
		again.Attempt = 2
		_, second, err := a.Implement(t.Context(), job(run, again, newWorkspace(t, files), log))
		if err != nil {
			t.Fatal(err)
		}
		if m.calls != tt.calls {
			t.Errorf("after a fault of class %s: %d calls, want %d", tt.fault, m.calls, tt.calls)
		}
		if n := strings.Count(log.String(), "played back"); n != tt.note || log.twice > 0 {
			t.Errorf("after a fault of class %s: %d steps played back, want %d; %d events twice:\n%s", tt.fault, n, tt.note, log.twice, log)
		}
		sum := first
		sum.Add(second)
		if log.usage() != sum {
			t.Errorf("after a fault of class %s: booked %+v, returned %+v", tt.fault, log.usage(), sum)
		}
		// What was recorded in two attempts plays as one tape.
		replayed, _, err := newAgent(t, "tape:x", tapeModel(t, string(WriteTape(tape.all()...)))).Implement(t.Context(), job(newRun(), implementRef, newWorkspace(t, files), nil))
		if err != nil || replayed.Summary != "three it is" {
			t.Errorf("replay gives %+v, %v", replayed, err)
		}
	}
}

// TestExport replays every script from what it recorded, without its own tape.
func TestExport(t *testing.T) {
	t.Parallel()
	tape := &memoryTape{}
	files := map[string]string{"a.txt": "one\n"}
	log, again := &eventLog{}, &eventLog{}
	ws, wsAgain := newWorkspace(t, files), newWorkspace(t, files)
	want, _, err := newAgent(t, "tape:x", tapeModel(t, fixTape), func(o *Options) { o.Tape = tape }).Implement(t.Context(), job(newRun(), implementRef, ws, log))
	if err != nil {
		t.Fatal(err)
	}
	exported := string(WriteTape(tape.all()...))
	if !strings.Contains(exported, "content: |\n  two\n") {
		t.Errorf("a text of several lines is not written as such:\n%s", exported)
	}
	got, _, err := newAgent(t, "tape:x", tapeModel(t, exported)).Implement(t.Context(), job(newRun(), implementRef, wsAgain, again))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" || log.String() != again.String() || !maps.Equal(ws.files(t), wsAgain.files(t)) {
		t.Errorf("replay differs:\n%s\n%s\n%s", d, log, again)
	}
}

// TestTapeErrors checks that a store that breaks ends the phase with its error.
func TestTapeErrors(t *testing.T) {
	t.Parallel()
	run := newRun()
	for what, tape := range map[string]Tape{
		"look up": failingTape{lookup: errors.New("no disk")},
		"cut":     failingTape{known: true, cut: errors.New("no disk")},
	} {
		_, _, err := newAgent(t, "tape:x", tapeModel(t, fixTape), func(o *Options) { o.Tape = tape }).Implement(t.Context(), job(run, implementRef, newWorkspace(t, nil), nil))
		if err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "no disk") {
			t.Errorf("error %v, want it to say %q and no disk", err, what)
		}
	}
}

type failingTape struct {
	known       bool
	lookup, cut error
}

func (f failingTape) TapeLookup(context.Context, int64, string, int) (string, []byte, bool, error) {
	return "other", []byte("no tape"), f.known, f.lookup
}
func (f failingTape) TapeRecord(context.Context, int64, string, int, string, []byte) error {
	return nil
}
func (f failingTape) TapeCut(context.Context, int64, string, int) error { return f.cut }

// TestRequestHash checks what counts as the same request.
func TestRequestHash(t *testing.T) {
	t.Parallel()
	req := func(text, args string) Request {
		return Request{Role: "r", Messages: []Message{{Text: text, Calls: []ToolCall{{Name: "n", Args: []byte(args)}}}}}
	}
	base := requestHash(req("took 12ms, at 2026-01-02T03:04:05Z, $0.1234 <state step=\"1\"/> /tmp/x1/a", `{"a":1,"b":2}`))
	if h := requestHash(req("took 3.5s, at 2027-11-12 13:14:15.1+02:00, $9.0000 <state step=\"2\"/> /tmp/y22/b", `{ "b": 2, "a": 1 }`)); h != base {
		t.Error("noise changes the hash")
	}
	for _, r := range []Request{req("took 12ms", `{"a":1,"b":2}`), req("took 12ms, at 2026-01-02T03:04:05Z, $0.1234 <state step=\"1\"/> /tmp/x1/a", `{"a":1,"b":3}`)} {
		if requestHash(r) == base {
			t.Errorf("%+v has the hash of another request", r)
		}
	}
}
