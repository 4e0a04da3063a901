package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"

	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// How much of a tape is shown at once.
const (
	callsShown  = 50
	answerShown = 32 << 10 // bytes of a model's answer
	stepsRead   = 20_000   // of a run's steps, to know what a call took
)

// tapeData is the model calls of a run.
type tapeData struct {
	store.RunRow
	Calls          []callRow
	All            int
	From, To       int
	Newer, Older   string // addresses
	Call           *callRow
	Part, Parts    int
	Before, After  string
	Pruned, Silent bool
}

// callRow is a model call.
type callRow struct {
	N            int // on the tape, from 1
	Key          string
	Phase        string // "implement 2", with its iteration
	Conversation string
	Step         int
	Hash         string // of what was asked
	Model        string
	Usage        pipeline.Usage
	Booked       bool // its cost and time are known
	Millis       int64
	Tools        []string
	Stop         string
	Bytes        int
	Text         string
}

func (p *Pages) tape(w http.ResponseWriter, r *http.Request, v Viewer) error {
	row, err := p.row(r, v)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	call, err := natural(q, "call", 0)
	if err != nil {
		return err
	}
	after, err := natural(q, "after", 0)
	if err != nil {
		return err
	}
	bill, err := p.bill(r.Context(), row.ID)
	if err != nil {
		return err
	}
	d := tapeData{RunRow: row, All: len(bill.keys)}
	title := fmt.Sprintf("Tape of run %d", row.ID)
	if call > 0 {
		if err := p.oneCall(r, &d, call, bill); err != nil {
			return err
		}
		return p.render(w, r, v, "run_tape.html", page{Title: title, Nav: "/runs", Data: d})
	}
	list, err := p.DB.TapePage(r.Context(), row.ID, after, callsShown)
	if err != nil {
		return err
	}
	d.From, d.To = after+1, after+len(list)
	for i, t := range list {
		d.Calls = append(d.Calls, callOf(after+i+1, t, bill))
	}
	if after > 0 {
		d.Newer = pageAt(q, "after", max(0, after-callsShown))
	}
	if d.To < d.All {
		d.Older = pageAt(q, "after", d.To)
	}
	d.Pruned, d.Silent = d.All == 0 && len(bill.steps) > 0, d.All == 0 && len(bill.steps) == 0
	return p.render(w, r, v, "run_tape.html", page{Title: title, Nav: "/runs", Live: fmt.Sprintf("run/%d", row.ID), Data: d})
}

// oneCall shows one call's answer, in parts when it is long.
func (p *Pages) oneCall(r *http.Request, d *tapeData, n int, bill *bill) error {
	q := r.URL.Query()
	part, err := natural(q, "part", 1)
	if err != nil {
		return err
	}
	list, err := p.DB.TapePage(r.Context(), d.ID, n-1, 1)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return notFound(fmt.Sprintf("There is no call %d on the tape of run %d: it has %d.", n, d.ID, d.All))
	}
	data := list[0].Data
	d.Parts = max(1, (len(data)+answerShown-1)/answerShown)
	if part < 1 || part > d.Parts {
		return notFound(fmt.Sprintf("Call %d has %s.", n, text.Plural(d.Parts, "part", "parts")))
	}
	d.Part = part
	c := callOf(n, list[0], bill)
	c.Text = string(bytes.ToValidUTF8(data[(part-1)*answerShown:min(len(data), part*answerShown)], []byte("\uFFFD")))
	d.Call = &c
	if part > 1 {
		d.Before = pageAt(q, "part", part-1)
	}
	if part < d.Parts {
		d.After = pageAt(q, "part", part+1)
	}
	return nil
}

// bill says what a run's calls cost and how long they took, which its log knows and
// its tape does not.
type bill struct {
	keys  []string // of the tape, in its order
	steps map[stepKey]pipeline.Step
}

// stepKey names a step of an agent: the steps of a phase are numbered through all
// the conversations of its iteration.
type stepKey struct {
	phase     pipeline.Phase
	iteration int
	number    int
}

func (p *Pages) bill(ctx context.Context, run int64) (*bill, error) {
	keys, err := p.DB.TapeKeys(ctx, run)
	if err != nil {
		return nil, err
	}
	list, err := p.DB.Log(ctx, run, 0, pipeline.EventAgentIteration, stepsRead)
	if err != nil {
		return nil, err
	}
	out := &bill{keys, map[stepKey]pipeline.Step{}}
	for _, e := range list {
		var d struct{ Step *pipeline.Step }
		if json.Unmarshal(e.Data, &d) != nil || d.Step == nil {
			continue
		}
		key := stepKey{d.Step.Phase, d.Step.Iteration, d.Step.Number}
		// a step that was played back cost nothing
		if was, ok := out.steps[key]; !ok || was.Usage.MicroUSD+was.Usage.Unpriced < d.Step.Usage.MicroUSD+d.Step.Usage.Unpriced {
			out.steps[key] = *d.Step
		}
	}
	return out, nil
}

// step finds the step that made the n-th call of the tape, from 1.
func (b *bill) step(n int) (pipeline.Step, bool) {
	if n > len(b.keys) {
		return pipeline.Step{}, false
	}
	of := path.Dir(b.keys[n-1]) // the phase's execution
	key, ok := phaseOf(b.keys[n-1])
	if !ok {
		return pipeline.Step{}, false
	}
	for _, k := range b.keys[:n] {
		if path.Dir(k) == of && !strings.HasSuffix(k, lookingBack) {
			key.number++
		}
	}
	s, ok := b.steps[key]
	return s, ok && !strings.HasSuffix(b.keys[n-1], lookingBack)
}

// phaseOf reads the phase of a conversation's key, "run/7/iter/2/review/quality"; a
// look back at the whole run belongs to none.
func phaseOf(key string) (k stepKey, ok bool) {
	var run int64
	_, err := fmt.Sscanf(path.Dir(key), "run/%d/iter/%d/%s", &run, &k.iteration, &k.phase)
	return k, err == nil
}

// lookingBack ends the name of a conversation in which a model looks back at an
// agent's last steps: its cost is part of the step that it belongs to.
const lookingBack = ".reflection"

// callOf reads a call of the tape. Of one that this version cannot read it knows
// only what stands beside it.
func callOf(n int, t store.TapeEntry, b *bill) callRow {
	c := callRow{N: n, Key: t.Key, Conversation: path.Base(t.Key), Step: t.Step, Hash: t.Hash, Bytes: len(t.Data)}
	if k, ok := phaseOf(t.Key); ok {
		c.Phase = strings.TrimSuffix(fmt.Sprintf("%s %d", k.phase, k.iteration), " 0")
	}
	if conversation, resp, ok := agent.ReadCall(t.Data); ok {
		c.Conversation, c.Model, c.Usage, c.Stop = conversation, resp.Model, resp.Usage, resp.Stop
		for _, call := range resp.Calls {
			c.Tools = append(c.Tools, call.Name)
		}
	}
	if s, ok := b.step(n); ok {
		c.Booked, c.Millis, c.Usage.MicroUSD, c.Usage.Unpriced = true, s.Millis, s.Usage.MicroUSD, s.Usage.Unpriced
	}
	return c
}
