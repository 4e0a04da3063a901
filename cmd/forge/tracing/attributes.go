package tracing

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
)

// The attributes that are Forge's own. Where the semantic conventions have a name,
// that one is used.
const (
	keyRun        = attribute.Key("forge.run")
	keyIssue      = attribute.Key("forge.issue")
	keyPull       = attribute.Key("forge.pull")
	keyState      = attribute.Key("forge.state")
	keyIterations = attribute.Key("forge.iterations")
	keyBounces    = attribute.Key("forge.bounces")
	keyCost       = attribute.Key("forge.cost_usd") // of the model calls
	keyCalls      = attribute.Key("forge.model_calls")
	keyWorked     = attribute.Key("forge.worked_ms") // waiting for people is not in it
	keyPhase      = attribute.Key("forge.phase")
	keyIteration  = attribute.Key("forge.iteration")
	keyAttempt    = attribute.Key("forge.attempt")
	keyMode       = attribute.Key("forge.mode")
	keyOutcome    = attribute.Key("forge.outcome") // of a phase: completed, failed, dropped; of a publication: completed, failed
	keyFindings   = attribute.Key("forge.findings")
	keyBlocking   = attribute.Key("forge.findings.blocking")
	keyPassed     = attribute.Key("forge.tests.passed")
	keyFailed     = attribute.Key("forge.tests.failed")
	keyStep       = attribute.Key("forge.step")
	keyProgress   = attribute.Key("forge.progress")
	keyReplayed   = attribute.Key("forge.replayed") // played back from the tape: paid for before
	keyBytes      = attribute.Key("forge.output_bytes")
	keyGuard      = attribute.Key("forge.guard")
	keyValue      = attribute.Key("forge.guard.value")
	keyLimit      = attribute.Key("forge.guard.limit")
	keyGate       = attribute.Key("forge.gate")
	keyChoice     = attribute.Key("forge.choice")
	keyVia        = attribute.Key("forge.via")
	keyRev        = attribute.Key("forge.rev")
	keyGitHub     = attribute.Key("forge.github_calls")
	keyCount      = attribute.Key("forge.issues")
)

func runAttributes(r *pipeline.Run) []attribute.KeyValue {
	out := []attribute.KeyValue{
		keyRun.Int64(r.ID), semconv.VCSRepositoryName(r.Repo.Name), keyState.String(string(r.State)),
		keyIterations.Int(len(r.Iterations)), keyBounces.Int(len(r.Bounces)), keyWorked.Int64(r.Worked()), keyCalls.Int(r.Usage.Calls),
	}
	if r.Repo.Owner != "" {
		out = append(out, semconv.VCSOwnerName(r.Repo.Owner))
	}
	if r.Task.Issue > 0 {
		out = append(out, keyIssue.Int(r.Task.Issue))
	}
	if p := r.Published.Pull; p != nil {
		out = append(out, keyPull.Int(p.Number))
	}
	if r.State == pipeline.StateFailed {
		out = append(out, semconv.ErrorTypeKey.String("guard"))
	}
	return append(out, usage(r.Usage)...)
}

func phaseAttributes(r *pipeline.Run, p pipeline.PhaseRef) []attribute.KeyValue {
	out := []attribute.KeyValue{
		keyRun.Int64(r.ID), keyPhase.String(string(p.Phase)), keyIteration.Int(p.Iteration), keyAttempt.Int(p.Attempt), keyBounces.Int(len(r.Bounces)),
	}
	if p.Mode != "" {
		out = append(out, keyMode.String(string(p.Mode)))
	}
	return out
}

// result says what came of the open phase.
func (f *Fold) result(e pipeline.Event) []attribute.KeyValue {
	mine := e.Data.Phase != nil && same(*e.Data.Phase, f.ref)
	switch {
	case mine && e.Type == pipeline.EventPhaseFailed:
		return []attribute.KeyValue{keyOutcome.String("failed"), errorType(e.Data.Fault)}
	case !mine || e.Type != pipeline.EventPhaseCompleted:
		return []attribute.KeyValue{keyOutcome.String("dropped")}
	}
	out := []attribute.KeyValue{keyOutcome.String("completed")}
	if v := e.Data.Review; v != nil {
		out = append(out, keyFindings.Int(len(v.Findings)), keyBlocking.Int(len(v.Blocking())))
	}
	if t := e.Data.Tests; t != nil {
		out = append(out, keyPassed.Int(t.Passed), keyFailed.Int(t.Failed))
	}
	return out
}

func chatAttributes(e pipeline.Event) []attribute.KeyValue {
	s := e.Data.Step
	by, model := provider(s.Model)
	out := []attribute.KeyValue{
		semconv.GenAIOperationNameChat, semconv.GenAIProviderNameKey.String(by),
		keyPhase.String(string(s.Phase)), keyIteration.Int(s.Iteration), keyStep.Int(s.Number), keyProgress.Bool(s.Progress),
	}
	if model != "" {
		out = append(out, semconv.GenAIRequestModel(model))
	}
	if e.Data.Note != "" {
		out = append(out, keyReplayed.Bool(true))
	}
	return append(append(out, role(e)...), usage(s.Usage)...)
}

func toolAttributes(e pipeline.Event) []attribute.KeyValue {
	t := e.Data.Tool
	out := []attribute.KeyValue{
		semconv.GenAIOperationNameExecuteTool, semconv.GenAIToolName(toolName(t.Tool)), semconv.GenAIToolType("function"),
		keyPhase.String(string(t.Phase)), keyIteration.Int(t.Iteration), keyStep.Int(t.Step), keyBytes.Int(t.Bytes),
	}
	if !t.OK {
		out = append(out, semconv.ErrorTypeKey.String("tool_error"))
	}
	return append(out, role(e)...)
}

func gateAttributes(g pipeline.Gate) []attribute.KeyValue {
	out := []attribute.KeyValue{keyGate.String(string(g.Kind))}
	if g.Guard != nil {
		out = append(out, guardAttributes(*g.Guard)...)
	}
	return out
}

func guardAttributes(g pipeline.Guard) []attribute.KeyValue {
	return []attribute.KeyValue{keyGuard.String(string(g.Name)), keyValue.Int64(g.Value), keyLimit.Int64(g.Limit)}
}

// answerAttributes say how a gate was closed: with a choice, never with words.
func answerAttributes(e pipeline.Event, g pipeline.Gate) []attribute.KeyValue {
	n := len(g.Answers)
	switch e.Type {
	case pipeline.EventGateAnswered, pipeline.EventRunReset:
		if n == 0 {
			break
		}
		a := g.Answers[n-1]
		choice := "other"
		for _, c := range append(g.Choices, pipeline.Choice{Name: "reset"}) {
			if c.Name == a.Choice {
				choice = c.Name
			}
		}
		out := []attribute.KeyValue{keyChoice.String(choice)}
		if word.MatchString(a.Via) {
			out = append(out, keyVia.String(a.Via))
		}
		return out
	}
	return []attribute.KeyValue{keyChoice.String("none")} // the run ended without
}

func publishAttributes(e pipeline.Event) []attribute.KeyValue {
	out := []attribute.KeyValue{keyOutcome.String("completed")}
	if e.Type == pipeline.EventPublishFailed {
		out = []attribute.KeyValue{keyOutcome.String("failed"), errorType(e.Data.Fault)}
	}
	if p := e.Data.Publication; p != nil {
		out = append(out, keyRev.Int64(p.Rev), keyGitHub.Int(p.Calls))
	}
	return out
}

// markAttributes describe an event that shows on the root span.
func markAttributes(e pipeline.Event) ([]attribute.KeyValue, bool) {
	switch e.Type {
	case pipeline.EventBounce:
		if b := e.Data.Bounce; b != nil {
			return []attribute.KeyValue{keyPhase.String(string(b.Phase)), keyIteration.Int(b.Iteration), keyCount.Int(b.Count)}, true
		}
	case pipeline.EventDiminishing, pipeline.EventGuardFired:
		if g := e.Data.Guard; g != nil {
			return guardAttributes(*g), true
		}
	case pipeline.EventRunStopped, pipeline.EventRunResumed, pipeline.EventRunReset, pipeline.EventRunVerified, pipeline.EventRunAccepted,
		pipeline.EventRunCancelled, pipeline.EventRunFailed, pipeline.EventRunSkipped, pipeline.EventBranchMoved, pipeline.EventBaseMoved:
		return nil, true
	}
	return nil, false
}

// usage is what model calls took; input tokens include the cached ones, as the
// conventions have it.
func usage(u pipeline.Usage) []attribute.KeyValue {
	out := []attribute.KeyValue{
		semconv.GenAIUsageInputTokens(int(u.Input)), semconv.GenAIUsageOutputTokens(int(u.Output)), keyCost.Float64(float64(u.MicroUSD) / 1e6),
	}
	if u.CachedInput > 0 {
		out = append(out, semconv.GenAIUsageCacheReadInputTokens(int(u.CachedInput)))
	}
	if u.CacheWrite > 0 {
		out = append(out, semconv.GenAIUsageCacheCreationInputTokens(int(u.CacheWrite)))
	}
	return out
}

// role is the agent's, from the event's source.
func role(e pipeline.Event) []attribute.KeyValue {
	if name, ok := strings.CutPrefix(e.Source, "agent:"); ok && word.MatchString(name) {
		return []attribute.KeyValue{semconv.GenAIAgentName(name)}
	}
	return nil
}

func errorType(f *pipeline.Fault) attribute.KeyValue {
	if f == nil || f.Class == "" {
		return semconv.ErrorTypeOther
	}
	return semconv.ErrorTypeKey.String(string(f.Class))
}

// provider splits the name of a model. A tape's is a path, which stays here.
func provider(name string) (by, model string) {
	if strings.HasPrefix(name, "tape:") {
		return "tape", "tape"
	}
	by, model, ok := strings.Cut(name, "/")
	if !ok {
		return "_OTHER", name
	}
	return by, model
}

// word is a name as Forge gives them.
var word = lazyregexp.New(`^[a-z][a-z0-9_-]{0,31}$`)

// toolName is the name of a tool. A model can call one that does not exist, and
// what it then says is no name.
func toolName(name string) string {
	if word.MatchString(name) {
		return name
	}
	return "other"
}
