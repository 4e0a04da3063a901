package agent

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"forge/pipeline"
	"forge/pipeline/text"
)

// readsAtOnce is how many calls that only read are carried out at the same time.
const readsAtOnce = 4

// done is what came of a call.
type done struct {
	outcome
	why    string // what was wrong with the call, for its event
	err    error  // ends the phase
	millis int64
}

// useAll carries out the calls of an answer. Those that only read and stand beside
// each other go side by side; whatever changes something has its turn, so that the
// outcome is that of one call after the other.
func (c *conversation) useAll(ctx context.Context, r Response, log *turnLog) (results []ToolResult, accepted bool, err error) {
	calls := r.Calls
	for i := 0; i < len(calls); {
		if why := notDone(r, i); why != "" {
			results = append(results, ToolResult{ID: calls[i].ID, Error: true, Text: why})
			i++
			continue
		}
		n := 1
		for c.reads(calls[i]) && i+n < len(calls) && notDone(r, i+n) == "" && c.reads(calls[i+n]) {
			n++
		}
		for k, d := range c.carryOut(ctx, calls[i:i+n]) {
			call := calls[i+k]
			results = append(results, c.book(call, d, log))
			if d.err != nil || c.handsIn(call.Name) && d.ok {
				return results, d.ok && d.err == nil, d.err
			}
		}
		i += n
	}
	return results, false, nil
}

// notDone says why a call of an answer is not carried out, or "".
func notDone(r Response, i int) string {
	switch {
	case i >= callsPerTurn:
		return fmt.Sprintf("not done: at most %d calls in one answer", callsPerTurn)
	case r.Stop == StopLength && i == len(r.Calls)-1:
		return "not done: your answer was cut off at its limit, so this call may be incomplete; make it again, in smaller parts if it is long (of a long file, write the beginning and add to it by edit)"
	}
	return ""
}

// reads reports whether a call changes nothing.
func (c *conversation) reads(call ToolCall) bool {
	t, known := c.find(call.Name)
	return known && t.reads
}

// carryOut carries out calls, side by side when there are several.
func (c *conversation) carryOut(ctx context.Context, calls []ToolCall) []done {
	out := make([]done, len(calls))
	if len(calls) == 1 {
		out[0] = c.use(ctx, calls[0])
		return out
	}
	var wg sync.WaitGroup
	room := make(chan struct{}, readsAtOnce)
	for i, call := range calls {
		room <- struct{}{}
		wg.Go(func() {
			out[i] = c.use(ctx, call)
			<-room
		})
	}
	wg.Wait()
	return out
}

// use carries out one call.
func (c *conversation) use(ctx context.Context, call ToolCall) done {
	start := c.p.agent.opts.Clock()
	var d done
	t, known := c.find(call.Name)
	switch {
	case call.Name == c.other:
		d.outcome = misuse("your result goes into %s, not into %s", c.own(), c.other)
	case c.handsIn(call.Name):
		d = c.handIn(call)
	case !known:
		d.outcome = misuse("there is no tool %q; there are %s", text.ClipBytes(call.Name, 60), c.toolNames())
	default:
		args, problems := fitTool(t.schema, call.Args)
		if len(problems) > 0 {
			d.why = strings.Join(problems, "; ")
			d.outcome = misuse("%s", d.why)
			break
		}
		d.outcome, d.err = t.run(ctx, &c.box, args)
	}
	d.millis = c.p.agent.opts.Clock().Sub(start).Milliseconds()
	return d
}

// handIn judges a result.
func (c *conversation) handIn(call ToolCall) done {
	problems := c.submit(call.Args)
	if len(problems) == 0 {
		return done{outcome: outcome{ok: true, text: "accepted"}}
	}
	list := "- " + strings.Join(problems, "\n- ")
	d := done{why: strings.Join(problems, "; "), outcome: misuse("The result is not accepted:\n%s\nCorrect it and call %s again.", list, call.Name)}
	if c.repairs++; c.repairs > maxRepairs {
		d.err = c.p.ends("its result was not in order", "not verified: the result of the %s was not acceptable, also after %d repairs: %s", c.who(), maxRepairs, text.ClipBytes(strings.Join(problems, "\n- "), 1500))
	}
	return d
}

// book notes what came of a call, and returns it as the model is told.
func (c *conversation) book(call ToolCall, d done, log *turnLog) ToolResult {
	t, _ := c.find(call.Name)
	use := pipeline.ToolUse{Phase: c.p.phase, Iteration: c.p.job.Ref.Iteration, Step: c.p.steps, Tool: text.ClipBytes(call.Name, 60),
		Subject: t.about(call.Args), OK: d.ok, Millis: d.millis, Bytes: len(d.text), Digest: digest(denoise(d.text))}
	use.Tokens = tokens(len(denoise(d.text))) // the same when it is played back
	use.MicroUSD = int64(float64(use.Tokens) * c.price.Input)
	if !d.ok {
		use.Error = text.ClipBytes(firstOf(d.why, errorText(d.err), text.FirstLine(d.text)), 200)
	}
	if call.Name == "read" && d.ok {
		c.p.noteRead(call.Args)
	}
	log.tools = append(log.tools, use)
	log.step.Progress = c.progress(d.outcome) || log.step.Progress
	return ToolResult{ID: call.ID, Text: c.p.resultText(d.outcome), Error: !d.ok}
}
