package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline"
	"forge/pipeline/agent/edit"
	"forge/pipeline/config"
	"forge/pipeline/proof"
	"forge/pipeline/text"
)

// The forms in which a model is asked.
const (
	FormTools = "tools" // in conversations, with tools
	FormPlain = "plain" // for code alone: see plain
)

const (
	smallModel  = 8     // billions of parameters; a model with fewer is asked in the plain form
	smallWindow = 8_192 // tokens; a model that holds no more is, too
)

// form is how the model with this name is asked: as its limits say, else as its window and
// its size do, which small models carry in their name, or their server tells. why is for people, of the plain form.
func (l Limits) form(ctx context.Context, name string, m Model) (form, why string) {
	if l.Form != "" {
		return l.Form, "model_limits says so"
	}
	known, params := described(ctx, m)
	if window := cmp.Or(int64(l.ContextTokens), known); window > 0 && window <= smallWindow {
		return FormPlain, fmt.Sprintf("its context holds %d tokens", window)
	}
	if size := cmp.Or(sizeOf(name), float64(params)/1000); size > 0 && size < smallModel {
		return FormPlain, fmt.Sprintf("it has %.3gb parameters", size)
	}
	return FormTools, ""
}

// plain reports whether a model is asked in the plain form.
func (a *Agent) plain(ctx context.Context, name string, m Model) bool {
	form, _ := a.limits(name).form(ctx, name, m)
	return form == FormPlain
}

// described is how many tokens a model holds, and its parameters in millions; 0 for what is
// not known. Its server is asked before the first request, whose form depends on it.
func described(ctx context.Context, m Model) (window, params int64) {
	switch m := m.(type) {
	case *remote:
		m.described(ctx)
		return m.window.tokens.Load(), m.window.params.Load()
	case queued:
		return described(ctx, m.Model)
	case chosen:
		return described(ctx, m.Model)
	}
	return 0, 0
}

// sizeOf is the number of parameters that a model's name tells, in billions: 1.5 of
// "qwen2.5-coder:1.5b-instruct"; 0 where it tells none. Of several the largest counts.
func sizeOf(name string) (size float64) {
	for part := range strings.FieldsFuncSeq(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("-_:/ @", r) }) {
		for unit, times := range map[string]float64{"b": 1, "m": 0.001} {
			if n, err := strconv.ParseFloat(strings.TrimSuffix(part, unit), 64); err == nil && strings.HasSuffix(part, unit) {
				size = max(size, n*times)
			}
		}
	}
	return size
}

// plain reports whether a role's model is asked in the plain form, and returns its name. A
// small model plans, judges and calls tools badly, and writes code well enough: so the
// program finds the files, one request holds them, and the answer is code. The plan is the
// task's own sentences, nobody reviews, and both is said.
func (p *phase) plain(ctx context.Context, role config.Role) (name string, ok bool) {
	m, name, err := p.agent.model(p.job.Run, role)
	return name, err == nil && m != nil && p.agent.plain(ctx, name, m)
}

// codeAlone says it for people.
const codeAlone = "is asked for code alone (form: plain in model_limits)"

// plainPlan is a plan that no model made.
func (p *phase) plainPlan(ctx context.Context, model string) pipeline.Plan {
	run := p.job.Run
	l := p.locate(ctx)
	plan := pipeline.Plan{Summary: run.Task.Title, Files: l.files, Criteria: p.given(), Requirements: p.wanted(),
		Risks: []string{model + " " + codeAlone + ": it has made no plan, the acceptance criteria are the task's sentences, and it reviews nothing"}}
	plan.Steps = []string{"Change what the task is about"}
	if len(l.files) > 0 {
		plan.Steps[0] = "Change " + strings.Join(l.files, ", ") + ": what the task's words and the failing tests lead to"
	}
	for _, f := range p.aboutTask(ctx) {
		plan.Tests = append(plan.Tests, f.Test)
	}
	if len(plan.Criteria) > 0 {
		return plan
	}
	traced := run.Traces() && len(plan.Requirements) == 0
	for i, s := range sentences(run.Task) {
		c := pipeline.Criterion{ID: fmt.Sprintf("AC%d", i+1), Text: s}
		if traced {
			r := proof.Requirement{ID: fmt.Sprintf("REQ%d", i+1), Text: s, Quote: s}
			plan.Requirements = append(plan.Requirements, r)
			c.For = r.ID
		}
		plan.Criteria = append(plan.Criteria, c)
	}
	return plan
}

// mostSentences is how many criteria a task's sentences make.
const mostSentences = 7

// sentences are what a task says, code aside; its title where it says no more.
func sentences(t pipeline.Task) (out []string) {
	code := false
	for line := range strings.Lines(Clean(t.Body)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if code || strings.HasPrefix(line, "```") || strings.HasPrefix(line, "#") {
			continue
		}
		for s := range strings.SplitSeq(strings.TrimLeft(line, "-*> "), ". ") {
			if s = strings.TrimSpace(strings.TrimSuffix(s, ".")); len(s) > 3 && !slices.Contains(out, text.Clip(s, 300)) {
				out = append(out, text.Clip(s, 300))
			}
		}
	}
	if len(out) == 0 {
		return []string{t.Title}
	}
	return out[:min(len(out), mostSentences)]
}

// aboutTask are the tests that fail at the base and that the task is about, as far as words tell.
func (p *phase) aboutTask(ctx context.Context) (out []pipeline.Failure) {
	base := p.baseline()
	if base == nil {
		return nil
	}
	task := p.job.Run.Task.Title + "\n" + p.job.Run.Task.Body
	words, names := text.KeyWords(task), identifiers(task)
	for _, f := range slices.Concat(base.Failures, base.Before) {
		said := f.Test + "\n" + f.Error
		if source, ok := p.source(ctx, f.File); ok {
			said += "\n" + testSource(source, f)
		}
		named := slices.ContainsFunc(names, func(n string) bool { return strings.Contains(said, n) })
		if named || text.Common(words, text.KeyWords(said)) >= 2 {
			out = append(out, f)
		}
	}
	return out
}

// testSource is the part of a test's file that a failure is about: its test, if that is short.
func testSource(source string, f pipeline.Failure) string {
	lines := splitLines(source)
	if f.Line <= 0 || f.Line > len(lines) {
		return source
	}
	from := f.Line - 1
	for from > 0 && f.Line-from < 20 && (indentOf(lines[from]) != "" || blank(lines[from]) || edit.Declared(lines[from]) == "") {
		from--
	}
	to := f.Line
	for to < len(lines) && to-f.Line < 10 && (indentOf(lines[to]) != "" || strings.HasPrefix(lines[to], "}")) {
		to++
	}
	return strings.Join(lines[from:to], "\n")
}

// source reads a text file of the work tree.
func (p *phase) source(ctx context.Context, file string) (string, bool) {
	if file == "" || p.job.Workspace == nil {
		return "", false
	}
	clean, err := inside(file)
	if err != nil {
		return "", false
	}
	data, err := p.job.Workspace.Read(ctx, clean)
	return string(data), err == nil && isText(data)
}

// unreviewed is the review of a change that nobody reads. When its tests pass, a person has to.
func (p *phase) unreviewed(model string) pipeline.Review {
	run := p.job.Run
	why := model + " " + codeAlone + " and reviews nothing"
	r := pipeline.Review{Head: run.Head, Summary: "Not reviewed: " + why + ". When the tests pass, a person is asked to read it."}
	for _, f := range p.job.Files() {
		r.NotReviewed = append(r.NotReviewed, pipeline.Skipped{Path: f, Why: why})
	}
	return r
}

// plainImplement asks for code and puts it into the work tree.
func (p *phase) plainImplement(ctx context.Context, model string) (pipeline.Implementation, error) {
	switch {
	case p.job.Workspace == nil:
		return pipeline.Implementation{}, &pipeline.Fault{Class: pipeline.FaultSandbox, Message: "the implementer has no workspace"}
	case p.job.Conflict != nil:
		return pipeline.Implementation{Unable: model + " " + codeAlone + ", and cannot merge: merge " + p.job.Conflict.Branch + " by hand"}, nil
	}
	w := &writing{located: p.locate(ctx), conversation: &conversation{p: p, modelName: model,
		spec: spec{name: "implementer", role: roleImplementer}}}
	if len(w.located.files) == 0 {
		return pipeline.Implementation{Unable: "nothing in the repository goes by the words of the task: name the file or the function that it is about"}, nil
	}
	if err := w.write(ctx); err != nil {
		return pipeline.Implementation{}, err
	}
	return w.result(), nil
}

// result says what was done.
func (w *writing) result() pipeline.Implementation {
	p := w.p
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nWritten by %s in answer to one request (form: plain).", p.job.Run.Task.Title, w.modelName)
	if len(w.back) > 0 {
		fmt.Fprintf(&b, " Its answer lacked %s, which was put back.", strings.Join(w.back, ", "))
	}
	for _, s := range w.left {
		fmt.Fprintf(&b, "\n%s", s)
	}
	impl := pipeline.Implementation{Summary: b.String()}
	if w.failed != "" {
		impl.Unable = fmt.Sprintf("%s was asked %d times, and its last answer was not right, either: %s", w.modelName, plainTries, text.ClipBytes(w.failed, 1200))
	}
	titles := w.feedback.titles()
	for id := range strings.SplitSeq(w.feedback.ids(), ", ") {
		if id != "" {
			impl.Addressed = append(impl.Addressed,
				fmt.Sprintf("%s (%s): %s written again with this in the request", id, titles[id], strings.Join(w.changed, ", ")))
		}
	}
	for _, id := range provable(p.job.Run) {
		c := proof.Claim{Criterion: id, Tests: p.job.Run.Plan.Tests}
		if len(c.Tests) == 0 {
			c.Why = "the model is asked for code alone, and names no tests"
		}
		impl.Proofs = append(impl.Proofs, c)
	}
	return impl
}
