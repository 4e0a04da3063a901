package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"golang.org/x/tools/txtar"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
)

// Tape keeps the model calls of runs. A key names a conversation, a step a call
// in it. Data is one section of a tape; see ReadTape and WriteTape. The store
// implements it.
type Tape interface {
	TapeLookup(ctx context.Context, run int64, key string, step int) (hash string, data []byte, ok bool, err error)
	TapeRecord(ctx context.Context, run int64, key string, step int, hash string, data []byte) error
	TapeCut(ctx context.Context, run int64, key string, from int) error // forgets the steps from that one on
}

// attemptSuffix is how pipeline.Run.Key marks a repeated execution. The tape is
// shared by all of them, so that a phase that a provider's fault ended goes on
// where it stopped.
var attemptSuffix = lazyregexp.New(`/attempt/\d+$`)

// recorded is what came of one call.
type recorded struct {
	response Response
	replayed bool // played back: paid for before
	earlier  bool // by an earlier attempt, whose events have the cost already
}

// record makes a call, or plays back the recorded answer to the very same
// request. Where the request differs from the recorded one, the rest of the
// conversation's tape is cut: it answered questions that are no longer asked.
func (p *phase) record(ctx context.Context, m Model, key string, req Request, reserve func() error) (recorded, error) {
	run, hash := p.job.Run.ID, requestHash(req)
	tape := p.agent.opts.Tape
	if tape != nil {
		known, data, ok, err := tape.TapeLookup(ctx, run, key, req.Step)
		if err != nil {
			return recorded{}, fmt.Errorf("look up %s step %d on the tape: %w", key, req.Step, err)
		}
		if ok {
			if s := readSection(data); s != nil && known == hash && (s.name.attempt == req.Attempt || p.resumable) {
				return recorded{response: s.response, replayed: true, earlier: s.name.attempt != req.Attempt}, nil
			}
			if err := tape.TapeCut(ctx, run, key, req.Step); err != nil {
				return recorded{}, fmt.Errorf("cut the tape of %s at step %d: %w", key, req.Step, err)
			}
		}
	}
	if err := reserve(); err != nil {
		return recorded{}, err
	}
	r, err := m.Complete(ctx, req)
	if err != nil {
		return recorded{}, err
	}
	if tape != nil {
		s := section{name: callName{part: req.Part, role: req.Role, iteration: req.Iteration, attempt: req.Attempt, step: req.Step}, hash: hash, response: r}
		// What was paid for is kept also when the phase is being stopped.
		if err := tape.TapeRecord(context.WithoutCancel(ctx), run, key, req.Step, hash, formatSection(&s)); err != nil {
			return recorded{}, fmt.Errorf("record %s step %d on the tape: %w", key, req.Step, err)
		}
	}
	return recorded{response: r}, nil
}

// ReadCall reads one section of a tape: the conversation that the call belongs to and
// what came back. ok is false for what is no section.
func ReadCall(data []byte) (conversation string, r Response, ok bool) {
	s := readSection(data)
	if s == nil {
		return "", Response{}, false
	}
	return s.name.role, s.response, true
}

func readSection(data []byte) *section {
	ar := txtar.Parse(data)
	if len(ar.Files) != 1 {
		return nil
	}
	s, err := parseSection(ar.Files[0])
	if err != nil {
		return nil // asking again is always right
	}
	if s.response.Usage.Calls == 0 {
		s.response.Usage.Calls = 1
	}
	return s
}

// noise is what differs from one execution to the next without meaning anything:
// durations, times, addresses, temporary paths, amounts of money.
var noise = []*lazyregexp.Regexp{
	lazyregexp.New(`<state [^>]*/>`),
	lazyregexp.New(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`),
	lazyregexp.New(`\b\d\d:\d\d:\d\d(\.\d+)?\b`),
	lazyregexp.New(`\b\d+(\.\d+)?(ns|µs|us|ms|s|m)\b`),
	lazyregexp.New(`\b\d+(\.\d+)? (nanoseconds|milliseconds|seconds|minutes)\b`),
	lazyregexp.New(`0x[0-9a-f]{6,}`),
	lazyregexp.New(`/tmp/[^\s:"']+`),
	lazyregexp.New(`\$\d+\.\d{4}\b`),
}

func denoise(s string) string {
	for _, re := range noise {
		s = re.ReplaceAllString(s, "~")
	}
	return s
}

// requestHash identifies a request: 32 hex digits over everything that the model
// sees, noise left out.
func requestHash(req Request) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	_ = enc.Encode([]any{req.Role, req.System, req.Force, req.Tools}) // plain values always encode
	for _, m := range req.Messages {
		_ = enc.Encode([]string{m.Role, denoise(m.Text)})
		for _, c := range m.Calls {
			_ = enc.Encode([]string{c.Name, canonical(c.Args)})
		}
		for _, r := range m.Results {
			_ = enc.Encode([]any{denoise(r.Text), r.Error})
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// canonical writes JSON in one way, whatever its source; what is no JSON stays.
func canonical(args json.RawMessage) string {
	var v any
	if json.Unmarshal(args, &v) != nil {
		return string(args)
	}
	out, _ := json.Marshal(v) // came out of JSON
	return string(out)
}

// tapeKey names a conversation for all attempts.
func (p *phase) tapeKey(conversation string) string {
	return attemptSuffix.ReplaceAllString(p.job.Key, "") + "/" + conversation
}

// resumes reports whether a repeated phase may use what its predecessor got: only
// when that one was cut off from outside, and did not end in nonsense. The fault may
// be settled by now, as a budget is that was raised.
func resumes(j Job) bool {
	f := j.Run.Fault
	return j.Ref.Resumed || f != nil && f.Class != pipeline.FaultAgent
}
