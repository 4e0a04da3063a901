// Package reflect is the pure part of looking back at a run (L1–L4): when it is
// done, what the model is shown, what it may cost, and what is taken from its
// answer. The call of the model and the storing happen elsewhere; it stores
// nothing.
package reflect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"forge/learn"
	"forge/pipeline"
)

// Trigger is a reason to look back at a run (L1). ID names it within the run, so
// that each is followed once; it is what Reflection.Trigger says.
type Trigger struct {
	ID  string // "run_ended", "bounced_twice/review", "half_budget", "errors", "override/2"
	Now bool   // at once, for the run that is going on; else when the run has ended
	Why string // for people and for the prompt
}

// TriggerEnded is the trigger of every run that ended.
const TriggerEnded = "run_ended"

// errorsFrom is the number of events from which their share of errors says
// something: of five events one is more than 10 %.
const errorsFrom = 20

// Triggers returns what asks for a look back at a run and has not had one: the
// run ended, a phase bounced twice, over 50 % of the budget is spent, more than
// 10 % of the events are errors, a human decided against Forge. events are all of
// the run's. When the run has ended, what was at once is part of its end.
func Triggers(run *pipeline.Run, events []pipeline.Event) []Trigger {
	done := map[string]bool{}
	failed, overrides := 0, 0
	for _, e := range events {
		switch {
		case e.Type == pipeline.EventReflection && e.Data.Reflection != nil:
			done[e.Data.Reflection.Trigger] = true
		case e.Type == pipeline.EventGateOverride:
			overrides++
		case isError(e):
			failed++
		}
	}
	var out []Trigger
	add := func(id string, now bool, format string, args ...any) {
		if !done[id] {
			out = append(out, Trigger{id, now, fmt.Sprintf(format, args...)})
		}
	}
	if overrides > 0 {
		add(fmt.Sprintf("override/%d", overrides), false, "a human decided against Forge's verdict")
	}
	if run.State.Ended() {
		add(TriggerEnded, false, "the run ended: %s", run.State)
		return out
	}
	bounces := map[pipeline.Phase]int{}
	for _, b := range run.Bounces {
		if bounces[b.Phase]++; bounces[b.Phase] == 2 {
			add("bounced_twice/"+string(b.Phase), true, "%s sent the work back twice", b.Phase)
		}
	}
	if limit := run.CostLimit(); limit > 0 && run.Usage.MicroUSD*2 > limit {
		add("half_budget", true, "$%.2f of the budget of $%.2f are spent", usd(run.Usage.MicroUSD), usd(limit))
	}
	if n := len(events); n >= errorsFrom && failed*10 > n {
		add("errors", true, "%d of %d events are errors", failed, n)
	}
	return out
}

func isError(e pipeline.Event) bool {
	switch e.Type {
	case pipeline.EventPhaseFailed, pipeline.EventPublishFailed:
		return true
	case pipeline.EventToolExecuted:
		return e.Data.Tool != nil && !e.Data.Tool.OK
	}
	return false
}

func usd(micro int64) float64 { return float64(micro) / 1e6 }

// The limits of a reflection's cost (L4).
const (
	maxMicroUSD = 500_000
	maxShare    = 10 // per cent of what the run has cost, reflections aside
)

// Cap returns what one reflection on a run may cost, in micro-dollars: $0.50, and
// at most 10 % of what the run has cost. spent is what the run's reflections cost
// so far; it does not count as the run's own.
func Cap(run *pipeline.Run, spent int64) int64 {
	return Capped((run.Usage.MicroUSD - spent) * maxShare / 100)
}

// Capped limits what one reflection may cost, whatever it is about.
func Capped(micro int64) int64 { return max(0, min(maxMicroUSD, micro)) }

// OverCap says why a reflection of that cost is refused; "" when it is not. Ask
// before the call with an estimate, and after it with what it cost: then nothing
// is stored.
func OverCap(limit, cost int64) string {
	if cost <= limit {
		return ""
	}
	return fmt.Sprintf("over budget: $%.4f, and a reflection on this run may cost $%.4f ($0.50, and at most 10 %% of the run)", usd(cost), usd(limit))
}

// Limits of a model's answer.
const (
	maxAnswer    = 64 << 10 // bytes
	maxLearnings = 7
	maxContent   = 600 // bytes
	maxContext   = 300
	maxTags      = 8
	maxTag       = 60

	// surest is the most that a reflection may say of its own learning: nobody else has said
	// it yet.
	surest = 0.5
)

// draft is a learning as the model writes it.
type draft struct {
	Type       string   `json:"type"`
	Category   string   `json:"category"`
	Content    string   `json:"content"`
	Context    string   `json:"context"`
	Confidence *float64 `json:"confidence"`
	Tags       []string `json:"tags"`
	Paths      []string `json:"paths"`
	Stands     string   `json:"stands"`
}

// Form is what the model is told about its answer's form.
const Form = `Answer with one JSON object and nothing else:
{"learnings": [{"type": "episodic|semantic|procedural", "category": "style|security|correctness|performance|compliance|tests", "content": "...", "context": "when it matters", "confidence": 0.0, "tags": ["..."], "paths": ["..."], "stands": "ask|how|fact"}]}
Give 3 to 7 learnings, none if nothing was notable. A learning must help in a later run of this repository: no retelling, no praise, nothing that the code says by itself. content has at most 600 characters, confidence is 0 to 1. stands says what it stands for: reviews should ask for it, how something is done, how something is. What reviews need not ask for, or may let pass, is for people to say: no learning. Of how something is, put names of code in backquotes; the files in which all of them and all numbers stand are its paths. Name in each sentence the code, file or command that it is about: what cannot be looked up is told to nobody until another run teaches it, too.`

// Parse takes a model's answer apart: 0 to 7 learnings of the run, which are
// stored under the keys KEY#1, KEY#2 …. task are the words that people gave the run.
// An answer that is not of the form is an error, whole: nothing of it is to be stored. A
// learning of it that cannot be taken is left out, and left says why; the others stay, the
// first 7 of them, and that none does is an error. Secrets and hidden text are taken out. Where the model gave
// no type, or one that does not exist, it is a fact.
func Parse(answer, task, scope, key string, run int64, now time.Time) (list []pipeline.Learning, left []string, err error) {
	text := unfence(strings.TrimSpace(answer))
	if len(text) > maxAnswer {
		return nil, nil, fmt.Errorf("reflection: the answer has %d bytes, over %d", len(text), maxAnswer)
	}
	dec := json.NewDecoder(strings.NewReader(text))
	var doc struct { // what else the model adds is left out
		Learnings *[]draft `json:"learnings"`
	}
	if err := dec.Decode(&doc); err != nil {
		return nil, nil, fmt.Errorf("reflection: the answer is not the JSON that was asked for: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("reflection: there is text after the answer's JSON")
	}
	if doc.Learnings == nil {
		return nil, nil, errors.New(`reflection: the answer has no "learnings"`)
	}
	for i, d := range *doc.Learnings {
		if n := len(*doc.Learnings) - i; len(list) == maxLearnings {
			left = append(left, fmt.Sprintf("the last %d of %d: a look back teaches at most %d", n, n+i, maxLearnings))
			break
		}
		l, err := d.learning()
		if err == nil {
			err = refuse(&l, task)
		}
		if err != nil {
			left = append(left, fmt.Sprintf("learning %d: %v", i+1, err))
			continue
		}
		l.Key, l.Scope, l.Run, l.Created, l.Touched = fmt.Sprintf("%s#%d", key, i+1), scope, run, now, now
		list = append(list, l)
	}
	if len(list) == 0 && len(left) > 0 {
		return nil, nil, fmt.Errorf("reflection: %s", strings.Join(left, "; "))
	}
	return list, left, nil
}

// unfence takes off a Markdown fence around the whole answer.
func unfence(s string) string {
	body, ok := strings.CutPrefix(s, "```")
	if !ok {
		return s
	}
	body, ok = strings.CutSuffix(body, "```")
	if !ok {
		return s
	}
	return strings.TrimSpace(strings.TrimPrefix(body, "json"))
}

func (d draft) learning() (pipeline.Learning, error) {
	content := learn.Tidy(d.Content, 4*maxContent)
	switch {
	case content == "":
		return pipeline.Learning{}, errors.New("it has no content")
	case len(content) > maxContent:
		return pipeline.Learning{}, fmt.Errorf("its content has %d bytes, over %d", len(content), maxContent)
	case d.Confidence == nil || !(*d.Confidence >= 0 && *d.Confidence <= 1):
		return pipeline.Learning{}, errors.New("its confidence is not a number from 0 to 1")
	case len(d.Tags) > maxTags || len(d.Paths) > maxTags:
		return pipeline.Learning{}, fmt.Errorf("it has more than %d tags or paths", maxTags)
	}
	l := pipeline.Learning{
		Type: pipeline.LearningType(d.Type), Content: content, Context: learn.Tidy(d.Context, maxContext), Source: pipeline.SourceReflection, Weight: 1,
		Base: min(surest, *d.Confidence), Confidence: min(surest, *d.Confidence), State: pipeline.LearningActive,
	}
	switch l.Type {
	case pipeline.LearningEpisodic, pipeline.LearningSemantic, pipeline.LearningProcedural:
	default:
		l.Type = pipeline.LearningSemantic
	}
	if c := pipeline.Category(strings.ToLower(strings.TrimSpace(d.Category))); c != pipeline.CategoryHuman && slices.Contains(pipeline.Categories(), c) {
		l.Category = c
	}
	if t := learn.Stand(strings.ToLower(strings.TrimSpace(d.Stands))).Tag(); t != "" {
		l.Tags = append(l.Tags, t)
	}
	for _, list := range []struct {
		from []string
		to   *[]string
	}{{d.Tags, &l.Tags}, {d.Paths, &l.Paths}} {
		for _, s := range list.from {
			if s = strings.Join(strings.Fields(learn.Tidy(s, maxTag)), " "); s != "" && !slices.Contains(*list.to, s) {
				*list.to = append(*list.to, s)
			}
		}
	}
	return l, nil
}

// Digest summarises a run's events for a model (L2): phases, findings, bounces,
// failures, what people did, errors, and how the tools fared, the most telling
// first; at most limit bytes (some four to a token). Words of people and of
// agents are in it: quote it as data.
func Digest(run *pipeline.Run, events []pipeline.Event, limit int) string {
	var b bytes.Buffer
	left := 0
	for _, line := range lines(run, events) {
		line = strings.Join(strings.Fields(learn.Tidy(line, maxLine)), " ")
		if b.Len()+len(line)+len(leftOut)+8 > limit {
			left++
			continue
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	if left > 0 && b.Len()+len(leftOut)+8 <= limit {
		fmt.Fprintf(&b, leftOut, left)
	}
	return b.String()
}

const (
	maxLine = 400
	leftOut = "(%d more lines were left out)\n"
)

func lines(run *pipeline.Run, events []pipeline.Event) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	say("task: %s", run.Task.Title)
	say("state: %s after %d iterations, %d events, $%.2f, %d s of work", run.State, len(run.Iterations), len(events), usd(run.Usage.MicroUSD), run.Worked()/1000)
	if run.Ended != "" {
		say("ended: %s", run.Ended)
	}
	for _, b := range run.Bounces {
		say("bounce: %s sent iteration %d back for %d issues, resolved: %v", b.Phase, b.Iteration, b.Count, b.Resolved)
	}
	for _, e := range events {
		sayHuman(say, e)
	}
	for _, i := range run.Findings {
		f := i.Finding
		say("finding: %s %s in %s, %s, seen in iterations %d to %d: %s", f.Severity, f.Category, f.File, i.State, i.First, i.Last, f.Message)
	}
	for _, i := range run.Failures {
		f := i.Failure
		say("failure: %s, %s, seen in iterations %d to %d: %s %s", f.Test, i.State, i.First, i.Last, f.Error, f.Analysis)
	}
	for _, e := range events {
		switch {
		case e.Data.Fault != nil:
			say("error: %s: %s", e.Type, e.Data.Fault.Message)
		case e.Type == pipeline.EventToolExecuted && e.Data.Tool != nil && !e.Data.Tool.OK:
			say("tool error: %s %s in %s: %s", e.Data.Tool.Tool, e.Data.Tool.Subject, e.Data.Tool.Phase, e.Data.Tool.Error)
		case e.Data.Guard != nil:
			say("guard: %s: %s", e.Data.Guard.Name, e.Data.Guard.Detail)
		case e.Data.Step != nil && e.Data.Step.Advice != "":
			say("stagnation in %s, advice: %s", e.Data.Step.Phase, e.Data.Step.Advice)
		}
	}
	inner := learn.Measure(events)
	for _, p := range inner.Phases {
		say("phase: %s ran %d times, %d turns, %d s, $%.4f", p.Name, p.Runs, p.Turns, p.Millis/1000, usd(p.MicroUSD))
	}
	for _, t := range inner.Tools {
		say("tool: %s, %d calls, %.0f %% succeeded, %.0f ms each", t.Name, t.Calls, 100*t.Success, t.MeanMS)
	}
	for _, it := range run.Iterations {
		if it.Impl != nil {
			say("iteration %d (%s, %s): %s", it.Number, it.Mode, it.Result, it.Impl.Summary)
		}
	}
	return out
}

// sayHuman tells what a person did.
func sayHuman(say func(format string, args ...any), e pipeline.Event) {
	switch d := e.Data; {
	case d.Answer != nil:
		say("human: %s chose %s %s", d.Answer.By.Login, d.Answer.Choice, d.Answer.Text)
	case d.Signal != nil && d.Signal.Weight > 0:
		say("human: %s, %s on %s: %s", d.Signal.Actor.Login, d.Signal.Kind, d.Signal.File, d.Signal.Text)
	}
}
