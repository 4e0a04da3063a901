package pipeline_test

import (
	"testing"
	"time"

	. "forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/pipelinetest"

	"github.com/google/go-cmp/cmp"
)

// Covers I3, I4: steps and tools are counted, and what they cost is booked.
func TestSteps(t *testing.T) {
	t.Parallel()
	p := pipelinetest.New(config.Default(), Task{Issue: 1})
	p.Append(
		Event{Type: EventAgentIteration, Data: Data{Step: &Step{Phase: PhasePlan, Usage: Usage{Calls: 1, Input: 10, CachedInput: 4, CacheWrite: 2, Output: 5, MicroUSD: 7}}}},
		Event{Type: EventToolExecuted, Data: Data{Tool: &ToolUse{Tool: "read", OK: true, Millis: 3}}},
		Event{Type: EventToolExecuted, Data: Data{Tool: &ToolUse{Tool: "read", Millis: 4}}},
		Event{Type: EventPublishCompleted, Data: Data{Publication: &Publication{Rev: 1, Pull: &PullRef{Number: 3}, Artefacts: map[string]Artefact{"status": {ID: 9}}, Calls: 2}}},
	)
	want := map[string]ToolStat{"read": {Calls: 2, OK: 1, Millis: 7}}
	if diff := cmp.Diff(want, p.Run.Tools); diff != "" {
		t.Errorf("Tools(-want +got):\n%s", diff)
	}
	if p.Run.Steps[PhasePlan] != 1 || p.Run.Usage.MicroUSD != 7 || p.Run.Spent[PhasePlan].Output != 5 {
		t.Errorf("steps %v, usage %+v, spent %+v", p.Run.Steps, p.Run.Usage, p.Run.Spent)
	}
	if p.Run.Published.Pull.Number != 3 || p.Run.Published.Artefacts["status"].ID != 9 {
		t.Errorf("published %+v", p.Run.Published)
	}
}

func TestAnswerToAWrongCommand(t *testing.T) {
	t.Parallel()
	p := pipelinetest.New(config.Default(), Task{Issue: 1})
	events, reply := p.Run.Answer(command.Line{Error: "did you mean `status`?"}, Actor{Login: "ann"}, "comment", 1, p.Now)
	if len(events) != 0 || reply != "did you mean `status`?" {
		t.Errorf("Answer = %v, %q", events, reply)
	}
}

// A look at what a phase waits for never comes after its time limit.
func TestLateLook(t *testing.T) {
	t.Parallel()
	p := pipelinetest.New(config.Default(), Task{Issue: 1})
	if err := p.Play("plan ok\nimplement a\nreview error x\nimplement b\nreview ok\n"); err != nil {
		t.Fatal(err)
	}
	p.Step()
	late := p.Now.Add(5 * time.Minute)
	p.Append(Event{Type: EventPhaseWaiting, Data: Data{Phase: p.Run.Active, Await: &Await{What: "checks", Next: late.Add(time.Hour), Until: late}}})
	if at, _ := p.Run.Alarm(); !at.Equal(late) {
		t.Errorf("Alarm = %v, want %v", at, late)
	}
}
