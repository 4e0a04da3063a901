package agent

import (
	"embed"
	"fmt"
	"regexp"
	"strings"

	"forge/pipeline"
)

//go:embed prompts/*.md
var promptTexts embed.FS

// system returns a role's system prompt: what holds for all, then its own.
func system(role string) string {
	var out []string
	for _, name := range []string{"common", role} {
		text, err := promptTexts.ReadFile("prompts/" + name + ".md")
		if err != nil {
			panic("agent: no prompt for " + role + ": " + err.Error())
		}
		out = append(out, strings.TrimSpace(string(text)))
	}
	return strings.Join(out, "\n\n")
}

var closing = regexp.MustCompile(`(?i)<(/?)data-`)

// quote puts text between delimiters that mark it as data. The delimiter's number
// comes from the run's trace, and what looks like a delimiter in the text is
// broken, so text cannot end its own quotation (lessons 15).
func (p *phase) quote(what, text string) string {
	return fmt.Sprintf("<data-%s what=%q>\n%s\n</data-%s>", p.nonce, what, strings.TrimRight(closing.ReplaceAllString(text, "<${1}data_"), "\n"), p.nonce)
}

// prompt collects the parts of a first message.
type prompt struct {
	p *phase
	b strings.Builder
}

func (p *phase) prompt() *prompt { return &prompt{p: p} }

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
	return w.say("## %s\n%s", heading, w.p.quote(strings.ToLower(heading), text))
}

func (w *prompt) String() string { return w.b.String() }

// task appends what the run is asked to do, and what humans said since.
func (w *prompt) task() *prompt {
	t := w.p.job.Run.Task
	w.data("Task", Clean(t.Title+"\n\n"+t.Body))
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
	return w.data("Acceptance criteria", criteria(plan))
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

// maxTree is how many paths are shown for orientation.
const maxTree = 300

func (w *prompt) tree() *prompt {
	files := w.p.job.Tree
	more := ""
	if len(files) > maxTree {
		more = fmt.Sprintf("\n… and %d more", len(files)-maxTree)
		files = files[:maxTree]
	}
	return w.data("Files of the repository", strings.Join(files, "\n")+more)
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
	if len(run.Iterations) == 0 {
		return w
	}
	pad := pipeline.Scratchpad
	if w.p.agent.opts.Scratchpad != nil {
		pad = w.p.agent.opts.Scratchpad
	}
	return w.data("Scratchpad: what earlier iterations did; read this first", middleCut(pad(run), 12<<10, 24<<10))
}
