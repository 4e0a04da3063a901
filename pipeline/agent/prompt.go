package agent

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/module"
)

//go:embed prompts/*.md
var promptTexts embed.FS

// system returns the system prompt of a role that works with tools: what holds for all, how
// one works, then its own.
func system(role string) string {
	return promptText("common") + "\n\n" + promptText("working") + "\n\n" + promptText(role)
}

// systemOfWords is that of a role that answers in words.
func systemOfWords(role string) string { return promptText("common") + "\n\n" + promptText(role) }

func promptText(name string) string {
	text, err := promptTexts.ReadFile("prompts/" + name + ".md")
	if err != nil {
		panic("agent: no prompt " + name + ": " + err.Error())
	}
	return strings.TrimSpace(string(text))
}

var closing = lazyregexp.New(`(?i)<(/?)data-`)

// quote puts text between delimiters that mark it as data, and says what it is where nothing
// before it does. The delimiter's number comes from the run's trace, and what looks like a delimiter in the text is
// broken, so text cannot end its own quotation (lessons 15).
func (p *phase) quote(what, text string) string {
	if what != "" {
		what = fmt.Sprintf(" what=%q", what)
	}
	return fmt.Sprintf("<data-%s%s>\n%s\n</data-%s>", p.nonce, what, strings.TrimRight(closing.ReplaceAllString(text, "<${1}data_"), "\n"), p.nonce)
}

// prompt collects the parts of a first message. What stays the same in the whole run
// comes first, then what stays the same in an iteration, then the rest: the provider
// keeps the beginnings that prompts have in common.
type prompt struct {
	p     *phase
	b     strings.Builder
	marks []int
}

func (p *phase) prompt() *prompt { return &prompt{p: p} }

// mark ends a part that other prompts begin with, too.
func (w *prompt) mark() *prompt {
	w.marks = append(w.marks, w.b.Len())
	return w
}

// spec is what a conversation begins with.
func (w *prompt) spec(name string, role config.Role, system string) spec {
	return spec{name: name, role: role, system: system, prompt: w.b.String(), marks: w.marks}
}

// say appends Forge's own words.
func (w *prompt) say(format string, args ...any) *prompt {
	if w.b.Len() > 0 {
		w.b.WriteString("\n\n")
	}
	fmt.Fprintf(&w.b, format, args...)
	return w
}

// data appends somebody else's words under a heading; nothing when there are none.
func (w *prompt) data(heading, text string) *prompt {
	if strings.TrimSpace(text) == "" {
		return w
	}
	return w.say("## %s\n%s", heading, w.p.quote("", text))
}

func (w *prompt) String() string { return w.b.String() }

// task appends what the run is asked to do.
func (w *prompt) task() *prompt {
	t := w.p.job.Run.Task
	body := t.Title + "\n\n" + t.Body
	if strings.HasPrefix(strings.TrimSpace(t.Body), t.Title) { // the title was made of it
		body = t.Body
	}
	return w.data("Task", cutWithWord(Clean(body), maxTask, len(t.Body), "the task"))
}

// notes appends what humans said to the run since it began.
func (w *prompt) notes() *prompt {
	var notes []string
	for _, n := range w.p.job.Run.Notes {
		notes = append(notes, "- "+Clean(n))
	}
	return w.data("Notes of the maintainers, newest last; they go before the task where they differ", strings.Join(notes, "\n"))
}

// plan appends the plan with its criteria.
func (w *prompt) plan() *prompt {
	plan := w.p.job.Run.Plan
	if plan == nil {
		return w
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", plan.Summary)
	for i, s := range plan.Steps {
		fmt.Fprintf(&b, "%d. %s\n", i+1, s)
	}
	for _, r := range plan.Risks {
		fmt.Fprintf(&b, "Risk: %s\n", r)
	}
	w.data("Plan", b.String())
	w.data("Acceptance criteria", criteria(plan))
	return w.decisions().modules()
}

// modules appends, in a run that builds a module, what that is of the whole, and in one
// whose plan is split, how.
func (w *prompt) modules() *prompt {
	run := w.p.job.Run
	var b strings.Builder
	if of := run.Part; of != nil {
		fmt.Fprintf(&b, "You see one module of a larger feature: %s (%s). Others are built at the same time and are not here yet.\n", of.Module.ID, of.Module.Title)
		fmt.Fprintf(&b, "It owns: %s\n", strings.Join(of.Module.Paths, ", "))
		if len(of.Contract) > 0 {
			fmt.Fprintf(&b, "The contract, which it reads and must not change: %s\n", strings.Join(of.Contract, ", "))
		}
		if len(of.Others) > 0 {
			fmt.Fprintf(&b, "Not its own, and refused: %s\n", strings.Join(of.Others, ", "))
		}
		b.WriteString("A file of the repository that no module owns is refused, too: the integration changes it; new files go below the module's own paths.\n")
		writePromises(&b, of.Promises)
		b.WriteString("A test of a promise may fail here, where the other side of it is missing: it is run when both are merged.\n")
		return w.say("## Your module\n%s", w.p.quote("", b.String()))
	}
	s := run.Plan.Split
	if s == nil {
		return w
	}
	for i := range s.Modules {
		m := &s.Modules[i]
		fmt.Fprintf(&b, "%s: %s. Owns %s.\n", m.ID, m.Summary, strings.Join(m.Paths, ", "))
	}
	if len(s.Contract) > 0 {
		fmt.Fprintf(&b, "Contract: %s\n", strings.Join(s.Contract, ", "))
	}
	writePromises(&b, s.Promises)
	for _, step := range s.Wiring {
		fmt.Fprintf(&b, "Wiring: %s\n", step)
	}
	return w.data("Modules of the plan", b.String())
}

func writePromises(b *strings.Builder, list []module.Promise) {
	for _, p := range list {
		fmt.Fprintf(b, "Promise %s, from %s to %s: %s (shown by %s)\n", p.ID, p.From, strings.Join(p.To, ", "), p.Text, p.Probe)
	}
}

func criteria(plan *pipeline.Plan) string {
	if plan == nil {
		return ""
	}
	var b strings.Builder
	for _, c := range plan.Criteria {
		fmt.Fprintf(&b, "%s: %s\n", c.ID, c.Text)
	}
	return b.String()
}

// recall appends what earlier runs taught (L5).
func (w *prompt) recall() *prompt {
	if strings.TrimSpace(w.p.job.Learnings) == "" {
		return w
	}
	return w.data("Learnings from earlier runs; hints, not orders", Clean(w.p.job.Learnings)).
		say("Where one of these learnings changed what you do, name it in the text that you submit, by its id in brackets, such as [L12]. Name no other.")
}

// scratchpad appends the history of the iterations (T4, T5).
func (w *prompt) scratchpad() *prompt {
	run := w.p.job.Run
	if !slices.ContainsFunc(run.Iterations, func(it pipeline.Iteration) bool {
		return it.Impl != nil || it.Review != nil || it.Tests != nil || it.Update != nil
	}) &&
		len(run.PastPlans) == 0 {
		return w // nothing was done yet
	}
	return w.data("Scratchpad: what earlier iterations did; read this first", middleCut(run.Scratchpad(), 12<<10, 24<<10))
}
