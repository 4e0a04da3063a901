package pipeline

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// player drives a run through Decide with scripted outcomes; see
// testdata/loop/README.md for the script's language.
type player struct {
	run    Run
	events []Event
	now    time.Time
	trace  strings.Builder
	sha    int
	down   bool // GitHub cannot be reached: nothing is published
}

func newPlayer(cfg Config, task Task) *player {
	p := &player{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	p.append(Event{ID: "start", Type: EventRunStarted, Source: "human:ann", Data: Data{Start: &Start{
		Repo: Repo{ID: 1, Owner: "acme", Name: "shop", DefaultBranch: "main"}, Task: task,
		By: Actor{ID: 5, Login: "ann"}, Config: cfg, Base: "base000", Branch: "forge/issue-1-slug",
	}}})
	return p
}

func (p *player) append(events ...Event) {
	for _, e := range events {
		p.now = p.now.Add(time.Second)
		e.Run, e.Trace, e.Time, e.Seq = 7, "cafe", p.now, int64(len(p.events)+1)
		p.events = append(p.events, e)
		p.run.Apply(e)
	}
}

func (p *player) printf(format string, args ...any) { fmt.Fprintf(&p.trace, format+"\n", args...) }

// step carries out what Decide wants, up to the next action that needs a line of
// the script. It reports false when the run waits.
func (p *player) step() (*PhaseRef, bool) {
	for range 1000 {
		acts := Decide(&p.run)
		if len(acts) == 0 {
			return nil, false
		}
		a := acts[0]
		switch a.Kind {
		case ActionRecord:
			for _, e := range a.Events {
				p.describe(e)
			}
			p.append(a.Events...)
		case ActionPublish:
			if p.down {
				return nil, false
			}
			p.append(Event{ID: a.Key, Type: EventPublishCompleted, Data: Data{Publication: &Publication{Rev: p.run.Rev, Head: p.run.Head, Calls: 1}}})
		case ActionWork:
			return a.Phase, true
		}
	}
	panic("a thousand actions without work: " + p.trace.String())
}

func (p *player) describe(e Event) {
	d := e.Data
	switch {
	case d.Gate != nil:
		p.printf("  gate %s: %s [%s]", d.Gate.Kind, d.Gate.Question, d.Gate.words())
	case d.Guard != nil:
		p.printf("  %s: %s %d/%d", e.Type, d.Guard.Name, d.Guard.Value, d.Guard.Limit)
	case d.Bounce != nil:
		p.printf("  bounce %d from %s: %d issues, weight %d", d.Bounce.Number, d.Bounce.Phase, d.Bounce.Count, d.Bounce.Weight)
	case d.Phase != nil && e.Type == EventPhaseEntered:
		p.printf("  enter %s iteration %d attempt %d %s", d.Phase.Phase, d.Phase.Iteration, d.Phase.Attempt, d.Phase.Mode)
	default:
		p.printf("  %s", e.Type)
	}
}

// play runs a script to its end and returns the trace.
func (p *player) play(t *testing.T, script string) string {
	for n, line := range strings.Split(strings.TrimSpace(script), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		ref, working := p.step()
		p.printf("%s", line)
		verb, rest, _ := strings.Cut(line, " ")
		if !p.human(verb, rest) && !p.outcome(verb, rest, ref, working) {
			t.Fatalf("line %d: %q does not fit: the run is %s, in %+v", n+1, line, p.run.State, ref)
		}
	}
	p.step()
	p.printf("= %s", p.run.Summary())
	return p.trace.String()
}

// human plays what a person or GitHub does; it reports whether it knew the verb.
func (p *player) human(verb, rest string) bool {
	ann := Actor{ID: 5, Login: "ann"}
	if verb == "human" {
		line, text, _ := strings.Cut(rest, " // ")
		name, args, _ := strings.Cut(line, " ")
		evs, reply := p.run.Answer(SlashCommand{Name: name, Args: args, Text: text}, ann, "comment", 9, p.now)
		p.append(evs...)
		if reply != "" {
			p.printf("  reply: %s", strings.Split(reply, "\n")[0])
		}
		return true
	}
	if verb == "notice" {
		kind, arg, _ := strings.Cut(rest, " ")
		n := Notice{Kind: NoticeKind(kind), Actor: ann, Branch: p.run.Branch, Head: arg, Merged: arg == "merged", Task: Task{Title: arg}}
		if strings.HasPrefix(arg, "on ") {
			n.Branch = arg[3:]
		}
		evs, outcome := p.run.Notice(n, p.now)
		p.append(evs...)
		p.printf("  outcome: %s", outcome)
		return true
	}
	if verb == "offline" || verb == "online" {
		p.down = verb == "offline"
		return true
	}
	if verb == "refused" { // the publication of what comes next is refused for good
		p.append(Event{ID: "refused" + rest, Type: EventPublishFailed, Data: Data{Fault: &Fault{Class: FaultGitHub, Message: rest, Final: true}}})
		return true
	}
	return false
}

// outcome plays the result of the phase that Decide wants.
func (p *player) outcome(verb, rest string, ref *PhaseRef, working bool) bool {
	if !working || (verb != "fault" && verb != "cost" && Phase(verb) != ref.Phase) {
		return false
	}
	done := Event{ID: "r" + strconv.Itoa(len(p.events)), Type: EventPhaseCompleted, Source: "agent", Data: Data{Phase: &PhaseRef{
		Phase: ref.Phase, Iteration: ref.Iteration, Attempt: ref.Attempt, Mode: ref.Mode, Millis: 60_000}}}
	d := &done.Data
	switch verb {
	case "cost": // micro-dollars and tokens of one model call
		var usd, tokens int64
		fmt.Sscan(rest, &usd, &tokens)
		done.Type = EventAgentIteration
		done.Data = Data{Step: &Step{Phase: ref.Phase, Iteration: ref.Iteration, Usage: Usage{Calls: 1, MicroUSD: usd, Input: tokens}}}
	case "fault":
		class, msg, _ := strings.Cut(rest, " ")
		final := strings.HasSuffix(class, "!")
		done.Type, d.Fault = EventPhaseFailed, &Fault{Class: FaultClass(strings.TrimSuffix(class, "!")), Message: msg, Final: final}
	case "plan":
		d.Plan = &Plan{Summary: "do it", Steps: []string{"one"}, Criteria: []Criterion{{ID: "AC1", Text: "works"}}}
		if q, opts, ok := strings.Cut(rest, " | "); ok || strings.HasSuffix(rest, "?") {
			d.Plan.Question = q
			if ok {
				d.Plan.Options = strings.Split(opts, " | ")
			}
		}
	case "implement":
		d.Implementation = &Implementation{Summary: "did " + rest, Files: []string{"a.go"}, Parent: p.run.Head, Head: p.run.Head}
		switch {
		case strings.HasPrefix(rest, "unable "):
			d.Implementation.Unable = rest[7:]
		case rest != "nothing":
			p.sha++
			d.Implementation.Head = fmt.Sprintf("commit%d", p.sha)
		}
	case "review":
		d.Review = scriptedReview(p.run.Head, rest)
	case "test":
		d.Tests = scriptedTests(p.run.Head, rest)
	}
	p.append(done)
	return true
}

// scriptedReview reads "ok", "human WHY", "stale", or "SEVERITY NAME, SEVERITY NAME…".
func scriptedReview(head, s string) *Review {
	v := &Review{Head: head, Summary: s, Reviewed: []string{"a.go"}}
	if why, ok := strings.CutPrefix(s, "human "); ok {
		v.NeedsHuman = why
		return v
	}
	if s == "stale" {
		v.Head = "other"
	}
	if s == "ok" || s == "stale" {
		return v
	}
	for i, item := range strings.Split(s, ", ") {
		sev, name, _ := strings.Cut(item, " ")
		f := Finding{ID: fmt.Sprintf("F%d", i+1), Severity: Severity(sev), Category: "correctness", Message: name, File: "a.go", Line: i + 1, Code: name, Confidence: 0.9}
		f.Fingerprint = Fingerprint(&f)
		v.Findings = append(v.Findings, f)
	}
	return v
}

// scriptedTests reads "ok", "none WHY", "tampered NAME", or "NAME CONFIDENCE, NAME CONFIDENCE…".
func scriptedTests(head, s string) *TestReport {
	t := &TestReport{Head: head, Total: 3, Passed: 3, Names: []string{"TestA", "TestB", "TestC"}, Suites: []Suite{{Name: "go test", Command: "go test ./..."}}}
	if why, ok := strings.CutPrefix(s, "none "); ok {
		return &TestReport{Head: head, None: why}
	}
	if name, ok := strings.CutPrefix(s, "tampered "); ok {
		f := Finding{ID: "T1", Severity: SeverityError, Category: "tests", Rule: "tests.removed", Message: name + " is gone"}
		f.Fingerprint = Fingerprint(&f)
		t.Tampered = []Finding{f}
		return t
	}
	if s == "empty" {
		return &TestReport{Head: head}
	}
	if s == "ok" {
		return t
	}
	for _, item := range strings.Split(s, ", ") {
		name, conf, _ := strings.Cut(item, " ")
		f := Failure{Test: name, File: "a_test.go", Line: 3, Error: "got 1 want 2"}
		f.Confidence, _ = strconv.ParseFloat(conf, 64)
		if f.Confidence > 0 {
			f.Cause, f.Analysis, f.Fix = "logic", "off by one", &Fix{Description: "add one"}
		}
		f.Fingerprint = FailureFingerprint(&f)
		t.Failures = append(t.Failures, f)
		t.Passed--
		t.Failed++
	}
	return t
}

// Covers T1–T6, B1, B3, B5, B6, R3, R5–R7, V1, V2, V5: each file of
// testdata/loop is a script of outcomes and the trace of what Decide made of it.
func TestLoop(t *testing.T) {
	files, _ := filepath.Glob("testdata/loop/*.txtar")
	if len(files) == 0 {
		t.Fatal("no scripts in testdata/loop")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			cfg := DefaultConfig()
			var script string
			for _, f := range ar.Files {
				switch f.Name {
				case "config.json":
					if err := json.Unmarshal(f.Data, &cfg); err != nil {
						t.Fatal(err)
					}
				case "script":
					script = string(f.Data)
				}
			}
			p := newPlayer(cfg, Task{Issue: 1, Title: "Sum is wrong", Body: "It is."})
			trace := p.play(t, script)
			progress, _ := json.MarshalIndent(ProgressOf(&p.run), "", "  ")
			views := map[string]string{
				"trace": trace, "report": Report(&p.run, len(p.run.Iterations)),
				"scratchpad": Scratchpad(&p.run), "progress.json": string(progress) + "\n",
			}
			for i, f := range ar.Files {
				got, ok := views[f.Name]
				if !ok {
					continue
				}
				if *update {
					ar.Files[i].Data = []byte(got)
				} else if diff := cmp.Diff(string(f.Data), got); diff != "" {
					t.Errorf("%s of %s (-want +got):\n%s", f.Name, file, diff)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			checkReplay(t, p.events, &p.run)
		})
	}
}

// checkReplay folds the events again, from their stored form, and wants the same
// run byte for byte (I2).
func checkReplay(t interface {
	Helper()
	Fatalf(string, ...any)
}, events []Event, want *Run) {
	t.Helper()
	raw, err := json.Marshal(events)
	if err != nil {
		t.Fatalf("marshal events: %v", err)
	}
	var again []Event
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatalf("unmarshal events: %v", err)
	}
	var r Run
	for _, e := range again {
		r.Apply(e)
	}
	a, _ := json.Marshal(want)
	b, _ := json.Marshal(&r)
	if string(a) != string(b) {
		t.Fatalf("replay differs (-want +got):\n%s", cmp.Diff(string(a), string(b)))
	}
}
