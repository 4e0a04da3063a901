package bus

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/text"
)

// typePrefix is before the type of an event of the log.
const typePrefix = "io.forge."

// private are the types of events that are nobody else's business: steps inside a phase,
// writes to GitHub, and what is remembered. One that ends with a point is a whole group.
var private = []string{string(pipeline.EventAgentIteration), string(pipeline.EventToolExecuted), "publish.", "memory.", "reflection."}

// public reports whether events of a type are told.
func public(t pipeline.EventType) bool {
	for _, p := range private {
		if string(t) == p || strings.HasSuffix(p, ".") && strings.HasPrefix(string(t), p) {
			return false
		}
	}
	return true
}

// Event is an event of a run, or of an incident, as CloudEvents 1.0 has it, in JSON's structured mode.
type Event struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"` // TRACE/SEQ, incident-…/SEQ: the same whenever it is told
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject,omitempty"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Data            Data      `json:"data"`
}

// Data is what is told of an event: names, numbers, titles and questions; no code, no
// prompt and no diff.
type Data struct {
	Repo      string            `json:"repo"`
	Run       int64             `json:"run"`              // 0: it is about an incident
	Seq       int64             `json:"seq"`              // the event's place in its run or incident, from 1
	Parent    int64             `json:"parent,omitempty"` // of a module: the run that planned it
	Module    string            `json:"module,omitempty"`
	Issue     int               `json:"issue,omitempty"`
	Pull      int               `json:"pull,omitempty"`
	Title     string            `json:"title,omitempty"`
	URL       string            `json:"url,omitempty"` // the pull request, or the issue
	State     string            `json:"state"`         // of the run or incident when this is told
	Head      string            `json:"head,omitempty"`
	Phase     string            `json:"phase,omitempty"`
	Iteration int               `json:"iteration,omitempty"`
	Attempt   int               `json:"attempt,omitempty"`
	Millis    int64             `json:"ms,omitempty"`      // how long a phase took
	Count     int               `json:"count,omitempty"`   // of a bounce: what blocks
	Tests     map[string]int    `json:"tests,omitempty"`   // total, passed, failed, skipped
	Finding   map[string]any    `json:"finding,omitempty"` // severity, category, rule, file, line
	Guard     string            `json:"guard,omitempty"`
	Fault     string            `json:"fault,omitempty"` // its class
	Gate      string            `json:"gate,omitempty"`
	Question  string            `json:"question,omitempty"`
	Choices   map[string]string `json:"choices,omitempty"` // command → what it does
	Answer    string            `json:"answer,omitempty"`
	Actor     string            `json:"actor,omitempty"`

	Environment string `json:"environment,omitempty"` // of a deployment of the work
	Deployment  int64  `json:"deployment,omitempty"`  // GitHub's
	Fares       string `json:"fares,omitempty"`       // how it fares there

	Incident int64  `json:"incident,omitempty"` // that it is about, and not a run
	Severity string `json:"severity,omitempty"`
	Why      string `json:"why,omitempty"` // of it, or how a run ended
}

// Lengths of texts, in characters.
const (
	mostTitle = 200
	mostText  = 1500
)

// newEvent makes what is told of an event. hide takes secrets out of a text.
func newEvent(run *pipeline.Run, e *pipeline.Event, hide func(string) string) Event {
	repo := run.Repo.FullName()
	out := Event{
		SpecVersion: "1.0", ID: fmt.Sprintf("%s/%d", e.Trace, e.Seq), Source: (&url.URL{Path: path.Join("/forge", repo, "runs", fmt.Sprint(run.ID))}).EscapedPath(),
		Type: typePrefix + string(e.Type), Time: e.Time.UTC(), DataContentType: "application/json",
	}
	if run.Task.Issue > 0 {
		out.Subject = fmt.Sprintf("%s#%d", repo, run.Task.Issue)
	}
	d := Data{Repo: repo, Run: run.ID, Seq: e.Seq, Issue: run.Task.Issue, Title: hide(text.Clip(run.Task.Title, mostTitle)), URL: run.Task.URL,
		State: string(run.State), Head: e.Data.Head}
	if run.Part != nil {
		d.Parent, d.Module = run.Part.Run, run.Part.Module.ID
	}
	if p := run.Published.Pull; p != nil {
		d.Pull, d.URL = p.Number, p.URL
	}
	d.happened(&e.Data, hide)
	if run.State.Ended() && strings.HasPrefix(string(e.Type), "run.") {
		d.Why = hide(text.Clip(run.Summary(), mostText))
	}
	out.Data = d
	return out
}

// happened takes what an event carries, field by field: what is not named here stays.
func (d *Data) happened(e *pipeline.Data, hide func(string) string) {
	if p := e.Phase; p != nil {
		d.Phase, d.Iteration, d.Attempt, d.Millis = string(p.Phase), p.Iteration, p.Attempt, p.Millis
	}
	if t := e.Tests; t != nil {
		d.Tests = map[string]int{"total": t.Total, "passed": t.Passed, "failed": t.Failed, "skipped": t.Skipped}
	}
	if f := e.Finding; f != nil {
		d.Finding = map[string]any{"severity": string(f.Severity), "category": string(f.Category), "rule": f.Rule, "file": hide(f.File), "line": f.Line}
	}
	if b := e.Bounce; b != nil {
		d.Phase, d.Iteration, d.Count = string(b.Phase), b.Iteration, b.Count
	}
	if g := e.Guard; g != nil {
		d.Guard = string(g.Name)
	}
	if f := e.Fault; f != nil {
		d.Fault = string(f.Class)
	}
	if p := e.Part; p != nil {
		d.Module = p.ID
	}
	if g := e.Gate; g != nil {
		d.Gate, d.Question, d.Choices = g.ID, hide(text.Clip(g.Question, mostText)), map[string]string{}
		for _, c := range g.Choices {
			d.Choices[c.Name] = hide(text.Clip(c.Label, mostTitle))
		}
	}
	if s := e.Ship; s != nil {
		d.Environment, d.Deployment, d.Fares, d.Actor = s.Environment, s.Deployment, string(s.State), s.By
		d.Question, d.Choices = hide(text.Clip(s.Question, mostText)), map[string]string{}
		for words, what := range s.Choices {
			d.Choices[hide(words)] = hide(text.Clip(what, mostText))
		}
	}
	if r := e.Rollout; r != nil {
		d.Environment, d.Deployment, d.Fares = r.Environment, r.Deployment, string(r.State)
	}
	if a := e.Answer; a != nil {
		d.Gate, d.Answer, d.Actor = a.Gate, a.Choice, a.By.Login
	}
	if a := e.Actor; a != nil {
		d.Actor = a.Login
	}
}

func (e Event) bytes() []byte {
	data, err := json.Marshal(e)
	if err != nil {
		panic(err) // unreachable: plain fields
	}
	return data
}
