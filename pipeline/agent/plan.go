package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/glob"
	"forge/pipeline/module"
	"forge/pipeline/testname"
	"forge/pipeline/text"
)

// planParts are what a plan has.
var planParts = []any{
	"summary", typed("string", "What will be done and why in this way, in two or three sentences."),
	"steps", listOf(typed("string", "One step, with the files that it touches."), "The steps, in order."),
	"criteria", listOf(object("id?", typed("string", "AC1, AC2, …"), "text", typed("string", "One statement that is true or false.")), "The acceptance criteria."),
	"files?", listOf(anyText, "The files that you expect to change."),
	"risks?", listOf(anyText, "What somebody should know before the change is merged."),
	"tests?", listOf(typed("string", "A test, by its name in the list of tests."), "Tests that fail at the base and must pass afterwards, because the task is about them."),
}

// askParts are a question in the place of a plan.
var askParts = []any{
	"question", typed("string", "What a human must decide before work can start."),
	"options?", listOf(anyText, "The answers to choose from."),
}

// loose makes every part of a form optional: what is missing is told by who reads it.
func loose(parts ...any) []any {
	out := slices.Clone(parts)
	for i := 0; i < len(out); i += 2 {
		out[i] = strings.TrimSuffix(out[i].(string), "?") + "?"
	}
	return out
}

// splitSchema is what a plan has as well, where it may be split into modules.
var splitSchema = []any{
	"modules?", listOf(object(
		"id", typed("string", "A short slug, such as auth."),
		"title", typed("string", "What it is, in a few words."),
		"summary", typed("string", "What it does, and for whom."),
		"size", oneOf("S, M or L, for 1, 2 or 4 units of work.", "S", "M", "L"),
		"steps", listOf(typed("string", "One step, with the files that it touches."), "The steps, in order."),
		"paths", listOf(anyText, "Paths and globs of the files that it alone may change, such as auth/**."),
		"needs?", listOf(anyText, "The ids of the modules that must be there before it can begin."),
		"criteria?", listOf(anyText, "The ids of the acceptance criteria that it meets."),
	), "Two or more modules, or none."),
	"contract?", listOf(anyText, "The files with the interfaces, types and tests that hold between modules."),
	"promises?", listOf(object(
		"id", typed("string", "P1, P2, …"),
		"from", typed("string", "The module that keeps the promise."),
		"to", listOf(anyText, "The ids of the modules that rely on it."),
		"text", typed("string", "What can be relied on."),
		"probe", typed("string", "The name of the test that shows it once both sides are there."),
	), "At least one for each module that another one needs."),
	"integration?", listOf(anyText, "The ids of the criteria that no module can meet alone."),
	"wiring?", listOf(anyText, "What is left to do once the modules are merged."),
}

// maySplit reports whether the plan may be split: it is the first one of a run as a whole.
func (p *phase) maySplit() bool {
	run := p.job.Run
	return run.Config.Modules.On() && run.Part == nil && len(run.Iterations) == 0 && len(run.Parts) == 0 && run.Contract == ""
}

func (p *phase) plan(ctx context.Context) (pipeline.Plan, error) {
	w := p.prompt().say("Plan the following task.").task().instructions().files().tests().mark().related().notes().comments().written().recall()
	p.sentBack(w)
	w.lastFault()
	var plan pipeline.Plan
	if p.maySplit() {
		w.say("%s", promptText("planner_modules"))
	}
	if len(p.binding()) > 0 {
		w.say("%s", promptText("planner_written"))
	}
	if len(p.given()) > 0 {
		w.say("The acceptance criteria above are the plan's, word for word and by these ids. Submit no criteria.")
	}
	s := w.spec("planner", rolePlanner, system("planner"))
	form := p.planForm()
	s.tools, s.result = p.examining(), object(slices.Concat(loose(form...), loose(askParts...))...)
	s.forms = []tool{{name: "submit", schema: object(form...)}, {name: "ask", schema: object(askParts...)}}
	s.accept = func(args json.RawMessage) []string {
		var problems []string
		if plan, problems = checkPlan(args, p.given()); plan.Question == "" {
			problems = append(problems, p.checkTests(plan.Tests)...)
			problems = append(problems, p.required(&plan)...)
		}
		if p.maySplit() && plan.Question == "" {
			problems = append(problems, p.split(args, &plan)...)
		}
		return problems
	}
	err := p.converse(ctx, s)
	if err != nil {
		return pipeline.Plan{}, err
	}
	plan.Excerpts = p.excerpts(plan.Files)
	return plan, nil
}

// reserved are words that no module may be called by: comments name a module before a
// command, "all" stands for every one, and reports and documents are called by the tiers.
func reserved(word string) bool {
	return slices.Contains([]string{"all", pipeline.TierIntegration, pipeline.TierSystem, "module", "contract"}, word) ||
		word == command.Slug || command.Find(word).Name != ""
}

// split reads the modules of a plan into it. A split that can be built, but does not pay,
// is dropped, and the plan says why.
func (p *phase) split(args json.RawMessage, plan *pipeline.Plan) []string {
	var in module.Split
	if err := decode(args, &in); err != nil {
		return []string{err.Error()}
	}
	if len(in.Modules) == 0 {
		return nil
	}
	var ids []string
	for _, c := range plan.Criteria {
		ids = append(ids, c.ID)
	}
	cfg := p.job.Run.Config.Modules
	var passing []string
	if base := p.baseline(); base != nil {
		passing = base.Names
	}
	in.Literal(p.job.Tree)
	bad := in.Check(module.Limits{Passing: passing, Match: glob.Match, Overlap: glob.Overlap, Same: testname.Same,
		Max: cfg.Max, Criteria: ids, Tree: p.job.Tree, Reserved: reserved})
	if len(bad) > 0 {
		return bad
	}
	if plan.Unsplit = cmp.Or(in.Pays(cfg.Parallel, cfg.MinGain), p.poor(&in), p.untested(&in)); plan.Unsplit == "" {
		plan.Split = &in
	}
	return nil
}

// leastAnswers is how many answers of the implementer at their longest a module's share of
// the budget must reach for: what is set aside for one, beside what was used before it.
const leastAnswers = 2

// poor says why the budget does not reach for that many modules, or "": each of them would
// stop and ask for more before it had done anything.
func (p *phase) poor(s *module.Split) string {
	_, name, err := p.agent.model(p.job.Run, config.RoleImplementer)
	if err != nil {
		return "" // that is said where it is needed
	}
	answer := int64(outputTokens)
	if most := p.agent.limits(name).OutputTokens; most > 0 {
		answer = min(answer, int64(most))
	}
	least := pipeline.Usage{Output: leastAnswers * answer}
	price, priced := p.agent.prices.Find(name)
	for _, m := range s.Modules {
		cost, tokens := p.job.Run.PartBudget(s.Share(m.ID))
		switch need := price.cost(least); {
		case tokens > 0 && tokens < least.Output:
			return fmt.Sprintf("of the budget (limits.tokens) %d modules would leave the module %s %d tokens, and two answers of %s can take %d",
				len(s.Modules), m.ID, tokens, name, least.Output)
		case priced && cost < need:
			return fmt.Sprintf("of the budget (limits.cost_usd) %d modules would leave the module %s %s, and two answers of %s can cost %s",
				len(s.Modules), m.ID, text.USD(cost), name, text.USD(need))
		}
	}
	return ""
}

// untested says why modules would show nothing, or "": no test runs at the base, and the
// contract between them brings none. Each would ask whether it may do without.
func (p *phase) untested(s *module.Split) string {
	if base := p.baseline(); base != nil && base.None != "" && len(s.Promises) == 0 {
		return "no test runs here, and what the modules promise each other brings none, so that nothing would show that they fit"
	}
	return ""
}

// sentBack appends why there has to be another plan (R1, R2).
func (p *phase) sentBack(w *prompt) {
	run := p.job.Run
	if run.Plan == nil {
		return
	}
	if p.job.Ref.Mode == pipeline.ModeWithout {
		w.plan()
		p.without(w)
		w.data("You asked before, and the notes have the answer", run.Plan.Question)
		return
	}
	if run.Plan.Question != "" {
		w.data("You asked before, and the notes have the answer", run.Plan.Question)
		return
	}
	w.plan()
	fb := openFeedback(run)
	switch {
	case p.job.Ref.Mode == pipeline.ModeResearch:
		w.say("The plan above was carried out, but not what the task means. Find out what is wanted: read the task, the notes and the code again with the findings in mind. Ask one question if only a human can know. Then make another plan, with criteria that hold what you found out.")
	case p.job.Ref.Mode == pipeline.ModeReplan && len(fb.findings)+len(fb.failures) > 0:
		w.say("The plan above was carried out, but its approach does not hold. Make another one that deals with what is listed below, keeping of the work what is good.")
	default:
		w.say("The plan above was sent back; the notes say why. Make a better one.")
	}
	w.scratchpad()
	w.data("Findings of the review", findingList(fb.findings, "F", fb.again))
	w.data("Test failures", fb.failureList())
}

// without appends which modules the plan is to be revised without, and why.
func (p *phase) without(w *prompt) {
	var b strings.Builder
	for _, id := range p.job.Run.Without {
		if part := module.Find(p.job.Run.Parts, id); part != nil {
			fmt.Fprintf(&b, "%s: %s\n", id, part.Left)
		}
	}
	w.say("%s", promptText("planner_without")).data("Modules that are left out", b.String())
}

// baseline is how the tests went at the base; nil where they did not run.
func (p *phase) baseline() *pipeline.TestReport {
	if p.job.Baseline != nil {
		return p.job.Baseline
	}
	return p.job.Run.Baseline
}

// checkTests wants the tests that a plan is about to be such that fail at the base.
func (p *phase) checkTests(names []string) []string {
	base := p.baseline()
	known := map[string]bool{}
	if base != nil {
		for _, f := range append(base.Failures[:len(base.Failures):len(base.Failures)], base.Before...) {
			known[f.Test] = true
		}
	}
	var bad []string
	for _, n := range names {
		if !known[n] {
			bad = append(bad, fmt.Sprintf("tests: %q does not fail at the base; name only such, by the names in the list of tests", n))
		}
	}
	return bad
}

// checkPlan reads a plan. Given are criteria that it has, whatever it says.
func checkPlan(args json.RawMessage, given []pipeline.Criterion) (pipeline.Plan, []string) {
	var plan pipeline.Plan
	if err := decode(args, &plan); err != nil {
		return plan, []string{err.Error()}
	}
	plan.Split, plan.Unsplit, plan.LeftOut, plan.Excerpts = nil, "", nil, nil // Forge's own
	plan.Summary, plan.Question = strings.TrimSpace(plan.Summary), strings.TrimSpace(plan.Question)
	plan.Steps, plan.Files, plan.Risks, plan.Options, plan.Tests = trimmed(plan.Steps), trimmed(plan.Files), trimmed(plan.Risks), trimmed(plan.Options), trimmed(plan.Tests)
	if plan.Question != "" {
		return plan, nil
	}
	if len(given) > 0 {
		plan.Criteria = given
	}
	var bad []string
	if len(plan.Options) > 0 {
		bad = append(bad, "there are options but no question")
	}
	if plan.Summary == "" {
		bad = append(bad, "summary is missing")
	}
	if len(plan.Steps) == 0 {
		bad = append(bad, "steps are missing")
	}
	if len(plan.Criteria) == 0 {
		bad = append(bad, "criteria are missing: without them nothing can be verified")
	}
	seen := map[string]bool{}
	for i := range plan.Criteria {
		c := &plan.Criteria[i]
		c.ID, c.Text, c.By = strings.TrimSpace(c.ID), strings.TrimSpace(c.Text), ""
		if c.ID == "" {
			c.ID = fmt.Sprintf("AC%d", i+1)
		}
		if c.Text == "" {
			bad = append(bad, fmt.Sprintf("criterion %s has no text", c.ID))
		}
		if seen[c.ID] {
			bad = append(bad, fmt.Sprintf("criterion %s occurs twice", c.ID))
		}
		seen[c.ID] = true
	}
	return plan, bad
}

// trimmed drops white space around entries, and empty ones.
func trimmed(list []string) []string {
	var out []string
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
