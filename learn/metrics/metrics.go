// Package metrics measures how well Forge's feedback loops work, from the event
// log (requirements I3, B9, V6, M1, M2).
//
// [Of] measures one run: it returns what the run adds to each day. Those sums add
// up, over runs, days and repositories, so that a period is the sum of its days
// and nothing has to be read twice: when a run has gone on, what it adds now less
// what it added before is what is new. [Compute] turns the sums of a period into
// figures with intervals, trends and targets. Both are pure; the database keeps
// the sums as daily snapshots, which outlive the events.
//
// An observation counts on the day on which what it is about began: a bounce that
// is resolved later, a finding that is dismissed later, a question that is
// answered later changes the figures of the day of the bounce, the finding, the
// question. So a share never exceeds 1, whatever the period. Runs count on the
// day of their end. Days are UTC.
package metrics

import "time"

// Kind says how the sums of a metric become a figure.
type Kind string

// The kinds of metrics.
const (
	Share Kind = "share" // of observations that are so: 0 to 1
	Mean  Kind = "mean"  // of the observations' values
)

// Definition says what a metric is.
type Definition struct {
	Key    string `json:"key"`
	Loop   int    `json:"loop"` // 1 inner, 2 phases, 3 memory, 4 people; 0 across the loops
	Name   string `json:"name"`
	Text   string `json:"definition"`
	Kind   Kind   `json:"kind"`
	Unit   string `json:"unit"`             // "share", "ms", "micro-USD", or what is counted
	By     string `json:"by,omitempty"`     // what its labels are: phase, tool, category
	Better int    `json:"better,omitempty"` // 1: more is better; -1: less is; 0: neither
	Dist   bool   `json:"-"`                // its distribution is kept, for the median and the 90th percentile
	Whole  bool   `json:"-"`                // its labels are parts of one observation, which is counted by itself, with the label ""
}

// The keys of the metrics.
const (
	PhaseIterations  = "phase_iterations"
	PhaseTurns       = "phase_turns"
	PhaseDuration    = "phase_duration"
	ToolSuccess      = "tool_success"
	ToolDuration     = "tool_duration"
	ToolCost         = "tool_cost"
	ModelTokens      = "model_tokens"
	ModelAdapted     = "model_adapted"
	Stagnation       = "stagnation"
	Bounces          = "bounces"
	BounceResolution = "bounce_resolution"
	FirstPass        = "first_pass"
	Diminishing      = "diminishing_returns"
	IterationFixes   = "iteration_fixes"
	IterationTime    = "iteration_time"
	Learnings        = "learnings"
	Application      = "learning_application"
	Precision        = "memory_precision"
	Dismissal        = "finding_dismissal"
	Override         = "human_override"
	Response         = "human_response"
	Success          = "success"
	QuickPass        = "quick_pass"
	Escalation       = "escalation"
	Cost             = "cost"
	PublishFailure   = "publish_failure"
	Proved           = "proved"
	SkillSuccess     = "skill_success"
	ModuleSpeedup    = "module_speedup"
	ModuleCritical   = "module_critical_path"
	ModuleRounds     = "module_rounds"
	ModuleConflicts  = "module_conflicts"
	ModulesLeftOut   = "modules_left_out"
	QualityFailure   = "quality_failure"
	QualityRecovered = "quality_recovered"

	Upstream           = "upstream"
	UpstreamResponse   = "upstream_response"
	UpstreamEscalation = "upstream_escalation"
	UpstreamHeld       = "upstream_held"

	TrackResult = "track_result"
	Rework      = "rework"
	LensMended  = "lens_mended"
)

// Catalogue lists all metrics, in the order in which they are shown.
func Catalogue() []Definition {
	return []Definition{
		{PhaseTurns, 1, "agent turns", "turns of the agent in an execution of a phase that ended with a result", Mean, "turns", "phase", -1, false, false},
		{PhaseDuration, 1, "phase duration", "working time of an execution of a phase that ended with a result", Mean, "ms", "phase", -1, true, false},
		{ToolSuccess, 1, "tool success", "share of an agent's tool calls that succeeded", Share, "share", "tool", 1, false, false},
		{ToolDuration, 1, "tool duration", "duration of a tool call", Mean, "ms", "tool", -1, false, false},
		{ToolCost, 1, "tool cost", "cost of the model's turn that asked for the tool call, shared by the calls of the turn", Mean, "micro-USD",
			"tool", -1, false, false},
		{ModelTokens, 1, "model tokens", "tokens of an agent's turn; in all, and apart: input, input that the provider's cache served, output, and reasoning", Mean, "tokens", "kind", -1, false, true},
		{ModelAdapted, 1, "adapted answers", "share of an agent's turns in which the model's answer or its request had to be adapted; in all, and by how", Share, "share", "how", -1, false, true},
		{Stagnation, 1, "stagnation", "share of executions of a phase by an agent in which it stagnated: it was given advice after steps without progress", Share, "share", "phase", -1, false, false},

		{PhaseIterations, 2, "iterations", "executions of a phase with a result, in a run that ended; in all: its iterations of implement, review and test", Mean, "executions", "phase", -1, false, true},
		{Bounces, 2, "bounces", "times that a phase sent the work back, in a run that ended", Mean, "bounces", "phase", -1, false, true},
		{BounceResolution, 2, "bounce resolution", "share of bounces after which nothing of what they were for was left at the next look; one counts when it is resolved, followed by another of its phase, or its run has ended", Share, "share", "phase", 1, false, false},
		{FirstPass, 2, "first-pass approval", "share of runs whose first review was approved, without a bounce or a question", Share, "share", "", 1, false, false},
		{Diminishing, 2, "diminishing returns", "share of runs that ended in which a bounce left no less than the one before", Share, "share", "", -1, false, false},
		{IterationFixes, 2, "iterations that fix", "share of bounces after which at least one thing that they were for was gone at the next look",
			Share, "share", "", 1, false, false},
		{IterationTime, 2, "iteration time", "working time of an iteration; waiting for people is not in it", Mean, "ms", "", -1, true, false},

		{Proved, 2, "proved criteria", "share of the acceptance criteria of runs that ended, for which a named test passed on the last head that was tested, and not without the change",
			Share, "share", "", 1, false, false},

		{SkillSuccess, 2, "success with a skill", "share of runs that ended verified, of those whose agents read the skill; beside success, what it may have helped",
			Share, "share", "skill", 1, false, false},

		{TrackResult, 2, "success by track", "share of runs that ended verified, of those whose track people or a score chose",
			Share, "share", "track", 1, false, false},

		{Rework, 2, "rework by place", "times that the work was sent back, in a run that ended, for each folder at the top whose files it changes", Mean, "bounces", "folder", -1,
			false, false},
		{LensMended, 2, "mended findings of a lens", "share of the findings that a lens alone had, in runs that ended, that were mended there", Share, "share", "lens", 1, false, false},

		{ModuleSpeedup, 2, "speed-up by modules", "work of a run's modules and merges by the time from the first one's begin to the last one's merge, in which not all waited for people: 100 per cent is one after the other", Mean, "per cent", "", 1, false, false},
		{ModuleCritical, 2, "critical path of modules",
			"work of the modules that need each other and take longest, by the same time: at 100 per cent it cannot be faster", Mean, "per cent", "", 1,
			false, false},
		{ModuleRounds, 2, "rounds of a module", "times that the integration sent work back to a module that is merged", Mean, "rounds", "", -1, false, false},
		{ModuleConflicts, 2, "conflicts of modules", "share of merges of modules that conflicted, or broke a test", Share, "share", "", -1, false, false},
		{QualityFailure, 2, "missed quality gates", "share of measures of a quality gate on tested work that missed its bounds or had no value", Share, "share", "gate", -1, false, false},
		{QualityRecovered, 2, "recovered quality gates", "share of quality gates that a run's work once missed and met when they were last measured", Share, "share", "gate", 1, false, false},
		{Upstream, 2, "feedback between agents", "matters that agents of a run that ended told the planner, where the settings let them; in all, and by kind",
			Mean, "matters", "kind", 0, false, true},
		{UpstreamResponse, 2, "time to an answer between agents", "time from a feedback between agents until the planner begins with it", Mean, "ms", "kind", -1, true, false},
		{UpstreamEscalation, 2, "escalated feedback", "share of the feedback between agents that a person was asked about", Share, "share", "kind", -1, false, false},
		{UpstreamHeld, 2, "decisions that held", "share of decisions on feedback between agents with which the run was verified, and the same matter was not raised again",
			Share, "share", "kind", 1, false, false},
		{ModulesLeftOut, 2, "modules left out", "share of modules that a run ended without", Share, "share", "", -1, false, false},

		{Learnings, 3, "learnings", "learnings that reflections on a run gave, of runs that ended", Mean, "learnings", "", 0, false, false},
		{Application, 3, "learning application", "share of executions of a phase that were given learnings and used at least one", Share, "share",
			"", 1, false, false},
		{Precision, 3, "memory precision", "share of the learnings given to agents that they used", Share, "share", "", 1, false, false},

		{Dismissal, 4, "finding dismissal", "share of the reviewer's findings that a person dismissed", Share, "share", "category", -1, false, false},
		{Override, 4, "human override", "share of answered questions in which a person decided against Forge's verdict; the approvals of manual mode are not in it", Share, "share", "", -1, false, false},
		{Response, 4, "time to human response", "time from a question to its first answer", Mean, "ms", "", -1, true, false},

		{Success, 0, "success", "share of runs that ended verified", Share, "share", "", 1, false, false},
		{QuickPass, 0, "verified in 1–2 iterations", "share of runs that ended verified after one or two iterations", Share, "share", "", 1, false, false},
		{Escalation, 0, "escalation", "share of runs that ended in which going on did not help, tests were stuck or the budget was used up, and a person was asked", Share, "share", "", -1, false, false},
		{Cost, 0, "cost", "cost of the model calls of a run that ended; those of reflections are not in it, nor runs with a model that has no price", Mean, "micro-USD", "", -1, true, false},
		{PublishFailure, 0, "publish failure", "share of attempts to show a run on GitHub that failed", Share, "share", "", -1, false, false},
	}
}

// definitions are the catalogue's, by key.
var definitions = func() map[string]Definition {
	out := map[string]Definition{}
	for _, d := range Catalogue() {
		out[d.Key] = d
	}
	return out
}()

// DayOf numbers the day of a time (UTC) as rows have it: 20260102.
func DayOf(t time.Time) int64 {
	y, m, d := t.UTC().Date()
	return int64(y*10_000 + int(m)*100 + d)
}

// timeOf returns the beginning of a day.
func timeOf(day int64) time.Time {
	return time.Date(int(day/10_000), time.Month(day/100%100), int(day%100), 0, 0, 0, 0, time.UTC)
}
