package work

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
)

// A stack that overflows, a panic on a goroutine of its own, or memory that is used up end the
// process, and whatever did it would do it again after the next start. So goroutines carry a label
// that says what they work on, and those that they start carry it on; the runtime writes it into
// the text that the process ends with. The next one reads it there, and tells [Engine.Crashed].
//
// An end from outside, as by kill -9 or a power cut, leaves no such text and counts for nothing.

// workLabel is the label's key.
const workLabel = "forge"

// The values of labels: run/NUMBER, run/NUMBER/publish, delivery/GUID; what else has one is its
// owner's to set aside.
const (
	labelRun      = "run/"
	labelDelivery = "delivery/"
	labelPublish  = "/publish"
)

// Working labels the goroutine until done is called.
func Working(ctx context.Context, on string) (labelled context.Context, done func()) {
	labelled = pprof.WithLabels(ctx, pprof.Labels(workLabel, on))
	pprof.SetGoroutineLabels(labelled)
	return labelled, func() { pprof.SetGoroutineLabels(ctx) }
}

var (
	firstGoroutine = lazyregexp.New(`(?m)^goroutine \d+ .*$`)
	itsLabel       = lazyregexp.New(`labels:\{.*"` + workLabel + `": "([^"\\]+)"`)
)

// WorkedOn reads out of the text that a process ended with what it was working on: the first
// goroutine in it is the one that ended it. Empty: nothing of the engine's.
func WorkedOn(text string) string {
	m := itsLabel.FindStringSubmatch(firstGoroutine.FindString(text))
	if m == nil {
		return ""
	}
	return m[1]
}

// crashed begins what is said of a crash.
const crashed = "the server ended by itself while it worked on this"

// Crashed takes in, before Start, that an earlier process ended by itself while it was working on
// something, as WorkedOn says. It is tried once more. At the second time without a result in
// between it is set aside: a run asks a human, a delivery is a dead letter. how names the end in a
// few words, which people on GitHub may read. aside says which it is.
func (e *Engine) Crashed(ctx context.Context, on, how string) (aside bool, err error) {
	if guid, ok := strings.CutPrefix(on, labelDelivery); ok {
		aside, err = e.crashedDelivery(ctx, guid, how)
	} else if rest, ok := strings.CutPrefix(on, labelRun); ok {
		number, publishing := strings.CutSuffix(rest, labelPublish)
		var run int64
		if run, err = strconv.ParseInt(number, 10, 64); err == nil {
			aside, err = e.crashedRun(ctx, run, publishing, how)
		}
	}
	if err != nil {
		return false, fmt.Errorf("take in that the server ended while it worked on %s: %w", on, err)
	}
	return aside, nil
}

// crashedRun makes a fault of it. Nobody is told of the events: who listens may be what ended it.
func (e *Engine) crashedRun(ctx context.Context, id int64, publishing bool, how string) (aside bool, err error) {
	for try := 1; ; try++ {
		run, err := e.store.Load(ctx, id)
		if err != nil {
			return false, err
		}
		aside = run.Fault != nil && run.Fault.Class == pipeline.FaultCrash
		f := &pipeline.Fault{Class: pipeline.FaultCrash, Final: aside, Message: crashed + " (" + how + ")"}
		if aside {
			f.Message = fmt.Sprintf("%s, twice (%s), so that it is set aside, and all else goes on. The server's log has more", crashed, how)
		}
		ev := pipeline.Event{ID: fmt.Sprintf("run/%d/crashed/%d", id, run.Seq), Type: pipeline.EventPublishFailed, Source: "forge", Time: e.now(), Data: pipeline.Data{Fault: f}}
		if run.Active != nil && !publishing {
			ref := *run.Active
			ev.Type, ev.Data.Phase = pipeline.EventPhaseFailed, &ref
		}
		err = e.store.Append(ctx, run, []pipeline.Event{ev}, nil)
		if err == nil || !isConflict(err) || try == tries { // another server has taken it over
			return aside, err
		}
	}
}

func (e *Engine) crashedDelivery(ctx context.Context, guid, how string) (aside bool, err error) {
	list, err := e.store.WaitingDeliveries(ctx, e.now(), 10*intakeBatch)
	if err != nil {
		return false, err
	}
	for _, d := range list {
		if d.GUID != guid {
			continue
		}
		left := 1
		if aside = strings.HasPrefix(d.Error, crashed); aside {
			left = tries - d.Attempts
		}
		for range left {
			if err := e.store.FailDelivery(ctx, guid, fmt.Sprintf("%s (%s)", crashed, how), e.now()); err != nil {
				return aside, err
			}
		}
	}
	return aside, nil
}
