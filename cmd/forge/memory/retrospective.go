package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"forge/learn"
	"forge/learn/impact"
	"forge/learn/reflect"
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/record"
	"forge/pipeline/store"
)

// looks are how much of a run a reflector is told, in bytes, and how long its answer may
// be, in tokens: where the first could cost more than a look back may (L4), the next does.
var looks = []struct {
	digest int
	answer int64
}{{12 << 10, 2500}, {5 << 10, 1500}, {2 << 10, 800}}

// What is told of runs that are looked back at together, and how many they are at most.
const (
	gatheredBytes = 2 << 10 // of each
	gatheredRuns  = 10
	gatherLater   = "; looked back at with the next runs of this repository"
)

// retrospectiveWithin is how long ago a run may have ended that nobody has looked back
// at, when the server starts.
const retrospectiveWithin = 7 * 24 * time.Hour

// catchUp finds runs that ended while nobody was there to look back at them.
func (m *Learner) catchUp(ctx context.Context) error {
	rows, err := m.o.DB.Runs(ctx, store.Filter{Limit: 200})
	if err != nil {
		return err
	}
	for _, r := range rows {
		if !r.State.Ended() || m.o.Now().Sub(r.Updated) > retrospectiveWithin {
			continue
		}
		seen, err := m.o.DB.Cursor(ctx, cursorReflect, r.ID)
		if err != nil {
			return err
		}
		if seen == 0 {
			m.endsMu.Lock()
			m.ends = append(m.ends, r.ID)
			m.endsMu.Unlock()
		}
	}
	return nil
}

// RunEnded keeps what became of a run, which says what its learnings were worth, and
// looks back at it.
func (m *Learner) RunEnded(ctx context.Context, id int64) error {
	run, err := m.o.DB.Load(ctx, id)
	if err != nil {
		return err
	}
	if err := m.o.DB.PutOutcome(ctx, nil, outcomeOf(run)); err != nil {
		return err
	}
	if err := m.retrospective(ctx, id, false); err != nil {
		return err
	}
	if err := m.readAnswers(ctx, id); err != nil {
		return err
	}
	return m.o.DB.AdvanceCursor(ctx, nil, cursorReflect, id, run.Seq)
}

func outcomeOf(run *pipeline.Run) record.Outcome {
	o := record.Outcome{Run: run.ID, Bounces: len(run.Bounces), MicroUSD: run.Usage.MicroUSD, At: run.Updated, Holdout: run.Holdout}
	if len(run.Iterations) > 0 {
		v := run.Iterations[0].Review
		o.FirstPass = v != nil && len(v.Blocking()) == 0
	}
	confirmed := 0 // less those that were not
	for _, i := range run.Findings {
		if i.Phase == pipeline.PhaseReview && i.First == 1 && i.Finding.Category != pipeline.CategoryHuman {
			switch i.State {
			case pipeline.IssueFixed, pipeline.IssueAccepted:
				confirmed++
			case pipeline.IssueDismissed, pipeline.IssueWithdrawn:
				confirmed--
			}
		}
		o.Findings++
		if i.State == pipeline.IssueDismissed {
			o.Dismissed++
		}
	}
	o.Caught = confirmed > 0
	return o
}

// ReflectNow follows what asks for a look back at once, so that the phase that is
// about to begin has it. It never fails the phase.
func (m *Learner) ReflectNow(ctx context.Context, run int64) {
	if err := m.retrospective(ctx, run, true); err != nil && ctx.Err() == nil {
		m.o.Log.WarnContext(ctx, "look back at a run", "run", run, "error", err)
	}
}

// retrospective follows what asks for a look back at the run (L1): what cannot wait when
// it is to be now, else what the end of the run brings.
func (m *Learner) retrospective(ctx context.Context, id int64, now bool) error {
	if !m.o.Reflection {
		return nil
	}
	run, err := m.o.DB.Load(ctx, id)
	if err != nil {
		return err
	}
	events, err := m.o.DB.Events(ctx, id, 0)
	if err != nil {
		return err
	}
	for _, t := range reflect.Triggers(run, events) {
		if t.Now != now || !t.Now && !run.State.Ended() {
			continue
		}
		err := m.reflect(ctx, run, events, t)
		if errors.Is(err, agent.ErrNoReflector) {
			m.o.Log.DebugContext(ctx, "nobody looks back at the run", "run", id, "why", err)
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.ID, err)
		}
		// What this one cost and left is part of what the next one sees.
		if run, err = m.o.DB.Load(ctx, id); err != nil {
			return err
		}
		if events, err = m.o.DB.Events(ctx, id, 0); err != nil {
			return err
		}
	}
	return m.refresh(ctx)
}

// reflect looks back once and keeps what came of it, or why nothing did (L2, L4).
func (m *Learner) reflect(ctx context.Context, run *pipeline.Run, events []pipeline.Event, t reflect.Trigger) error {
	done, spent := 0, run.Spent[pipeline.PhaseReflect].MicroUSD
	for _, e := range events {
		if e.Type == pipeline.EventReflection && e.Data.Reflection != nil {
			done++
		}
	}
	worth, err := looked(ctx, m.o.DB, "")
	if err != nil {
		return err
	}
	model := m.o.Reflector.Reflects(run)
	part := impact.ShareOf(worth, t.ID, model) // of the budget, by what such looks back were worth so far
	limit, key := int64(part*float64(reflect.Cap(run, spent))), fmt.Sprintf("run/%d/reflect/%s", run.ID, t.ID)
	job := reflectJob(run, key)
	begun := m.o.Now()
	q := agent.Retrospective{Number: done + 1, Why: t.Why, Form: reflect.Form, Limit: limit}
	text, usage, err := m.look(ctx, job, q, run, events, nil)
	late, of := false, []*pipeline.Run{run} // what this run alone cannot pay for, several can
	if t.ID == reflect.TriggerEnded && dear(err, usage) {
		runs, earlier, more, lookErr := m.gathered(ctx, run)
		if lookErr != nil {
			return lookErr
		}
		of = append(of, runs...)
		if late = true; len(earlier) > 0 {
			limit = reflect.Capped(limit + int64(part*float64(more)))
			q.Limit, q.Why = limit, fmt.Sprintf("%s; with %d earlier ones that were too small alone", t.Why, len(earlier))
			text, usage, err = m.look(ctx, job, q, run, events, earlier)
			late = dear(err, usage)
		}
	}
	result := pipeline.Reflection{Trigger: t.ID, Now: t.Now, Usage: usage}
	var fault *pipeline.Fault
	switch {
	case errors.As(err, &fault) && (fault.Class == pipeline.FaultBudget || fault.Class == pipeline.FaultAgent):
		if result.Refused = fault.Message; late {
			result.Refused += gatherLater
		}
	case err != nil:
		return err
	default:
		result.Refused = reflect.OverCap(limit, usage.MicroUSD)
	}
	if result.Refused == "" {
		if err := m.taught(ctx, of, text, impact.LookKey(run.Trace, t.ID, model), &result); err != nil {
			return err
		}
	}
	m.o.Log.InfoContext(ctx, "looked back at a run", "run", run.ID, "trigger", t.ID, "learnings", len(result.Learnings), "refused", result.Refused)
	made := []pipeline.Event{{ID: key, Type: pipeline.EventReflection, Source: "agent:reflector", Data: pipeline.Data{Reflection: &result}}}
	made = append(m.booked(job, "agent:reflector", done+1, usage, begun, result.Refused == ""), made...)
	return m.o.Record(ctx, run.ID, made, func(ctx context.Context, tx *store.Tx) error {
		return m.o.DB.RecordReflection(ctx, tx, run.ID, t.ID, result, m.o.Now())
	})
}

// taught keeps what a look back at runs taught, those of the first, and notes in the result which
// that are and why others are left out.
func (m *Learner) taught(ctx context.Context, runs []*pipeline.Run, text, key string, result *pipeline.Reflection) error {
	run := runs[0]
	trusted, err := m.trusted(ctx, runs)
	if err != nil {
		return err
	}
	learnings, left, err := reflect.Parse(text, run.Task.Title+"\n"+run.Task.Body, run.Repo.Scope(), key, run.ID, m.o.Now().UTC().Truncate(time.Microsecond))
	if err == nil {
		var record string
		if record, err = m.recordOf(ctx, runs); err != nil {
			return err
		}
		kept, unfounded := m.quoted(ctx, run, learnings, record)
		learnings, left = kept, append(left, unfounded...)
		if len(kept) == 0 && len(unfounded) > 0 {
			err = errors.New("reflection: " + strings.Join(left, "; "))
		}
	}
	if len(left) > 0 {
		m.o.Log.InfoContext(ctx, "leave out learnings", "run", run.ID, "trigger", result.Trigger, "why", strings.Join(left, "; "))
	}
	if err != nil {
		result.Refused = err.Error()
		return nil
	}
	for i := range learnings {
		if !trusted {
			learnings[i].Weight = 0
		}
	}
	result.Left = left
	result.Learnings, err = m.save(ctx, learnings)
	return err
}

// trusted reports whether people with write access wrote all tasks of the runs. What a model
// learns of another may be what its writer wants to have learnt, in whatever words.
func (m *Learner) trusted(ctx context.Context, runs []*pipeline.Run) (bool, error) {
	for _, run := range runs {
		if m.o.Weight == nil || run.Repo.Installation == 0 {
			continue // whoever runs it here
		}
		weight, err := m.o.Weight(ctx, run.Repo, run.Task.Author)
		if err != nil || !(weight > 0) {
			return false, err
		}
	}
	return true, nil
}

// reflectJob is what a look back at a run, or at an answer in it, is asked for as.
func reflectJob(run *pipeline.Run, key string) agent.Job {
	iteration := 0
	if it := run.Current(); it != nil {
		iteration = it.Number
	}
	return agent.Job{Run: run, Ref: pipeline.PhaseRef{Phase: pipeline.PhaseReflect, Iteration: iteration}, Key: key}
}

// booked is the event that books what looking back cost, as with every call; none when
// nobody was asked.
func (m *Learner) booked(job agent.Job, source string, number int, usage pipeline.Usage, begun time.Time, progress bool) []pipeline.Event {
	if usage.Calls == 0 {
		return nil
	}
	step := pipeline.Step{Phase: pipeline.PhaseReflect, Iteration: job.Ref.Iteration, Number: number, Usage: usage,
		Millis: m.o.Now().Sub(begun).Milliseconds(), Progress: progress}
	return []pipeline.Event{{ID: job.Key + "/step", Type: pipeline.EventAgentIteration, Source: source, Data: pipeline.Data{Step: &step}}}
}

// dear reports whether a look back was not begun because it could cost too much.
func dear(err error, spent pipeline.Usage) bool {
	var fault *pipeline.Fault
	return errors.As(err, &fault) && fault.Class == pipeline.FaultBudget && spent.Calls == 0
}

// look asks the reflector, with as much as its limit allows. earlier are the digests of
// runs that are looked back at with this one.
func (m *Learner) look(ctx context.Context, job agent.Job, q agent.Retrospective, run *pipeline.Run, events []pipeline.Event,
	earlier []string) (text string, usage pipeline.Usage, err error) {
	for _, size := range looks {
		q.Answer = size.answer
		q.Digest = strings.Join(append([]string{reflect.Digest(run, events, size.digest)}, earlier...), "\n\n")
		if text, usage, err = m.o.Reflector.Reflect(ctx, job, q); !dear(err, usage) {
			break
		}
	}
	return text, usage, err
}

// gathered are the repository's runs since the last look back that were too small to be
// looked back at alone, their digests, and what a look back at all of them may cost.
func (m *Learner) gathered(ctx context.Context, run *pipeline.Run) (runs []*pipeline.Run, digests []string, limit int64, err error) {
	rows, err := m.o.DB.Runs(ctx, store.Filter{Repo: run.Repo.FullName(), Before: run.ID, Limit: 2 * gatheredRuns})
	if err != nil {
		return nil, nil, 0, err
	}
	for _, row := range rows {
		list, err := m.o.DB.Reflections(ctx, row.ID)
		if err != nil {
			return nil, nil, 0, err
		}
		spent, waits := int64(0), false
		for _, r := range list {
			spent += r.Usage.MicroUSD
			waits = waits || strings.HasSuffix(r.Refused, gatherLater)
			if r.Trigger == reflect.TriggerEnded && r.Refused == "" {
				return runs, digests, limit, nil // those before were gathered with it
			}
		}
		if !waits {
			continue
		}
		past, err := m.o.DB.Load(ctx, row.ID)
		if err != nil {
			return nil, nil, 0, err
		}
		events, err := m.o.DB.Events(ctx, row.ID, 0)
		if err != nil {
			return nil, nil, 0, err
		}
		runs = append(runs, past)
		digests, limit = append(digests, reflect.Digest(past, events, gatheredBytes)), limit+reflect.Cap(past, spent)
		if len(digests) == gatheredRuns {
			break
		}
	}
	return runs, digests, limit, nil
}

// recordedBytes is how much of the record of a run is looked at for what is taught of it.
const recordedBytes = 64 << 10

// recordOf is what Forge wrote down of runs, which what they teach is looked up in.
func (m *Learner) recordOf(ctx context.Context, runs []*pipeline.Run) (string, error) {
	var out []string
	for _, run := range runs {
		events, err := m.o.DB.Events(ctx, run.ID, 0)
		if err != nil {
			return "", err
		}
		out = append(out, reflect.Digest(run, events, recordedBytes))
		if run.Plan != nil {
			out = append(out, run.Plan.Files...)
		}
	}
	return strings.Join(out, "\n"), nil
}

// quotedBytes is how large a file may be that a learning cites.
const quotedBytes = 1 << 20

// quoted notes the code that learnings are about, as it is at the run's head. What cannot
// be read is not cited; what tells of something that is nowhere in that code is left out,
// and left says why; what cannot be looked up there or in the record is marked so.
func (m *Learner) quoted(ctx context.Context, run *pipeline.Run, list []pipeline.Learning, record string) (kept []pipeline.Learning, left []string) {
	type file struct {
		text        string
		there, gone bool
	}
	files := map[string]file{}
	look := func(path string) file {
		f, ok := files[path]
		if !ok && m.o.File != nil {
			data, err := m.o.File(ctx, run.Repo, run.Head, path)
			f = file{string(data), err == nil && len(data) <= quotedBytes, errors.Is(err, fs.ErrNotExist)}
			files[path] = f
		}
		return f
	}
	read := func(path string) (string, bool) { f := look(path); return f.text, f.there }
	known := func(path string) (string, bool) { f := look(path); return f.text, f.there || f.gone } // in a file that is not there is nothing
	for i := range list {
		l := &list[i]
		if absent := learn.Unfounded(l, known); len(absent) > 0 {
			left = append(left, fmt.Sprintf("%s is nowhere in %s: %s", strings.Join(absent, ", "), strings.Join(l.Paths, ", "), OneLine(l.Content, 120)))
			continue
		}
		learn.Quote(l, read)
		about := ""
		for _, p := range l.Paths {
			if text, ok := read(p); ok {
				about += p + "\n" + text + "\n"
			}
		}
		learn.MarkUnchecked(l, record, about)
		kept = append(kept, *l)
	}
	return kept, left
}

func (m *Learner) save(ctx context.Context, learnings []pipeline.Learning) (ids []int64, err error) {
	err = m.o.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		ids, err = m.o.DB.SaveLearnings(ctx, tx, learnings)
		return err
	})
	return ids, err
}
