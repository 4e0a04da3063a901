package render

import (
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/proof"
	"forge/pipeline/rollout"
	"forge/pipeline/text"
)

// Document is one of the texts that a run leaves behind (V11), in Markdown: what was
// specified, how each iteration of it and of its modules was validated, what was learned,
// where it was deployed.
// Its text is as people and models wrote it.
type Document struct {
	Path  string // "validation/auth-1.md"
	Title string
	Body  string
}

// DocumentsOf lists the documents of a run, in the order in which they came to be. family are the
// runs that build its modules. What is still going on has none.
func DocumentsOf(r *pipeline.Run, family []*pipeline.Run) []Document {
	if r.Plan == nil || r.Plan.Question != "" {
		return nil
	}
	out := []Document{{"specification.md", "Specification", specification(r)}}
	for _, child := range family {
		if child.Part != nil {
			out = append(out, validation(child, child.Part.Module.ID, "module "+child.Part.Module.ID)...)
		}
	}
	name := "iteration"
	if len(family) > 0 {
		name = "integration"
	}
	out = append(out, validation(r, name, name)...)
	if r.State.Ended() {
		out = append(out, Document{"feedback/insights.md", "Insights", insights(r, family)})
	}
	for _, d := range deploymentsOf(r) {
		out = append(out, Document{fmt.Sprintf("deployment/%s-%s.md", notInPaths.ReplaceAllString(d.Environment, "-"), d.At.UTC().Format("20060102-1504")),
			"Deployment to " + text.OneLine(d.Environment), deployment(r, d)})
	}
	return out
}

// deploymentsOf are the deployments of the work: those that were watched, and those that it
// was shipped by.
func deploymentsOf(r *pipeline.Run) []rollout.Status {
	out := slices.Clone(r.Deployed)
	for _, d := range r.Rollouts { // of what was kept before
		if !slices.ContainsFunc(out, func(o rollout.Status) bool { return o.Deployment == d.Deployment }) {
			out = append(out, d)
		}
	}
	for _, s := range r.Shipped {
		if !slices.ContainsFunc(out, func(o rollout.Status) bool { return o.Deployment == s.Deployment }) {
			out = append(out, rollout.Status{Deployment: s.Deployment, Environment: s.Environment, Commit: s.Commit, At: s.Succeeded})
		}
	}
	slices.SortStableFunc(out, func(a, b rollout.Status) int { return a.At.Compare(b.At) })
	return out
}

// notInPaths is what names of environments have that paths should not.
var notInPaths = lazyregexp.New(`[^A-Za-z0-9_]+`)

// deployment is the record of where the work runs: what was brought there, and how it fares.
func deployment(r *pipeline.Run, d rollout.Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n", text.Clip(text.OneLine(r.Task.Title), 240))
	fares := text.OneLine(d.String())
	if d.State == "" {
		fares = fmt.Sprintf("in %s since %s, not watched", text.OneLine(d.Environment), d.At.UTC().Format("2006-01-02 15:04 UTC"))
	}
	lines := []string{"it runs " + fares, "commit " + code(d.Commit)}
	for _, s := range r.Shipped {
		if s.Deployment == d.Deployment {
			by := "with the merge"
			if s.By != "" {
				by = "by " + s.By
			}
			lines = append(lines, fmt.Sprintf("agreed to %s, begun %s", by, s.At.UTC().Format("2006-01-02 15:04 UTC")))
		}
	}
	if d.Deployment != 0 {
		lines = append(lines, fmt.Sprintf("GitHub's deployment %d", d.Deployment))
	}
	if r.Published.Pull != nil {
		lines = append(lines, fmt.Sprintf("pull request #%d", r.Published.Pull.Number))
	}
	if !d.Changed.IsZero() {
		lines = append(lines, "as of "+d.Changed.UTC().Format("2006-01-02 15:04 UTC"))
	}
	writeSection(&b, "Deployment", bullets(lines))
	var done []string
	for _, c := range r.Plan.Criteria {
		done = append(done, fmt.Sprintf("**%s** %s", c.ID, text.OneLine(c.Text)))
	}
	writeSection(&b, "What it brings", bullets(done))
	return b.String()
}

// validation has a document for each iteration that is over.
func validation(r *pipeline.Run, name, title string) (out []Document) {
	for i := range r.Iterations {
		it := &r.Iterations[i]
		system := r.SystemReport(it.Number)
		if body := strings.TrimSuffix(r.Report(it.Number), system); body != "" && it.Result != pipeline.ResultInProgress {
			out = append(out, Document{fmt.Sprintf("validation/%s-%d.md", name, it.Number), fmt.Sprintf("Validation of %s %d", title, it.Number), body})
			if system != "" {
				out = append(out, Document{fmt.Sprintf("validation/system-%d.md", it.Number), fmt.Sprintf("Validation of the system %d", it.Number), system})
			}
		}
	}
	return out
}

func specification(r *pipeline.Run) string {
	var b strings.Builder
	p := r.Plan
	fmt.Fprintf(&b, "### %s\n\n", text.Clip(text.OneLine(r.Task.Title), 240))
	if r.Task.Issue != 0 {
		fmt.Fprintf(&b, "Asked for in #%d.\n\n", r.Task.Issue)
	}
	writeSection(&b, "Task", strings.TrimSpace(r.Task.Body))
	writeSection(&b, "Plan", strings.TrimSpace(p.Summary+"\n\n"+numbered(p.Steps)))
	writeSection(&b, "Requirements", bullets(requirements(p)))
	var criteria []string
	for _, c := range p.Criteria {
		criteria = append(criteria, fmt.Sprintf("**%s** %s", c.ID, text.OneLine(c.Text)))
	}
	for _, c := range p.LeftOut {
		criteria = append(criteria, fmt.Sprintf("**%s** %s (left out)", c.ID, text.OneLine(c.Text)))
	}
	writeSection(&b, "Acceptance criteria", bullets(criteria))
	writeSection(&b, "What shows it", matrix(r))
	writeSection(&b, "Risks", bullets(p.Risks))
	writeSection(&b, "Related issues", bullets(p.Related))
	if s := p.Split; s != nil {
		var modules, promises []string
		for _, m := range s.Modules {
			line := fmt.Sprintf("**%s** (%s): %s Owns %s.", m.ID, m.Size, text.OneLine(m.Summary), strings.Join(m.Paths, ", "))
			if len(m.Needs) > 0 {
				line += " Needs " + strings.Join(m.Needs, ", ") + "."
			}
			modules = append(modules, line)
		}
		for _, pr := range s.Promises {
			promises = append(promises, fmt.Sprintf("**%s** %s → %s: %s (%s)", pr.ID, pr.From, strings.Join(pr.To, ", "), text.OneLine(pr.Text), pr.Probe))
		}
		writeSection(&b, "Modules", bullets(modules))
		writeSection(&b, "Contract", strings.TrimSpace(strings.Join(s.Contract, ", ")+"\n\n"+bullets(promises)))
		writeSection(&b, "Integration", bullets(s.Wiring))
	}
	writeSection(&b, "Decisions", bullets(decisions(r, "")))
	return b.String()
}

func requirements(p *pipeline.Plan) (out []string) {
	for _, q := range p.Requirements {
		out = append(out, fmt.Sprintf("**%s** %s (“%s”)", q.ID, text.OneLine(q.Text), text.OneLine(q.Quote)))
	}
	return out
}

// matrix traces each requirement to its criteria, their tests and the commits that these
// came with, at the newest head that was tested.
func matrix(r *pipeline.Run) string {
	if !r.Config.Loop.Proofs.On() {
		return ""
	}
	var rows []proof.Row
	for i := range r.Iterations {
		if now := r.Proofs(&r.Iterations[i]); now != nil {
			rows = now
		}
	}
	if len(rows) == 0 {
		return ""
	}
	b := "| requirement | criterion | tests | commit | |\n| --- | --- | --- | --- | --- |\n"
	for _, row := range rows {
		var tests []string
		for _, t := range row.Tests {
			tests = append(tests, code(t.Name)+" "+string(t.State))
		}
		mark := "proved"
		if lacks := row.Lacks(); lacks != "" {
			mark = "not proved: " + lacks
		}
		cells := []string{row.For, row.Criterion, strings.Join(tests, ", "), text.ShortSHA(row.Commit), mark}
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(text.OneLine(c), "|", `\|`)
		}
		b += "| " + strings.Join(cells, " | ") + " |\n"
	}
	return b
}

// decisions are what people answered.
func decisions(r *pipeline.Run, who string) (out []string) {
	for i := range r.Gates {
		for _, a := range r.Gates[i].Answers {
			if a.Choice == "history" {
				continue
			}
			line := fmt.Sprintf("%s%s: %s — %s said %s", a.At.UTC().Format("2006-01-02 15:04 UTC"), who,
				text.Clip(text.OneLine(r.Gates[i].Question), 300), a.By.Login, a.Choice)
			if a.Text != "" {
				line += ": " + text.Clip(text.OneLine(a.Text), 300)
			}
			out = append(out, line)
		}
	}
	return out
}

// insights is what is worth knowing afterwards: what it took, what people said of it.
func insights(r *pipeline.Run, family []*pipeline.Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### How it went\n\n%s\n\n", text.OneLine(r.Ended))
	var took, said, judged []string
	for _, run := range slices.Concat([]*pipeline.Run{r}, family) {
		who := ""
		if run.Part != nil {
			who = " (" + run.Part.Module.ID + ")"
			took = append(took, fmt.Sprintf("module %s: %s", run.Part.Module.ID, effort(run)))
		} else {
			took = append(took, "the run itself: "+effort(run))
		}
		said = append(said, decisions(run, who)...)
		for i := range run.Findings {
			is := &run.Findings[i]
			if is.State != pipeline.IssueDismissed && is.Ruling == "" {
				continue
			}
			line := fmt.Sprintf("%s%s: %s", is.State, who, text.Clip(text.OneLine(is.Finding.Message), 200))
			if is.By.Login != "" {
				line += " (" + is.By.Login + ")"
			}
			judged = append(judged, line)
		}
		for _, w := range run.Waivers {
			judged = append(judged, fmt.Sprintf("let pass%s: %s", who, text.Clip(text.OneLine(w.What), 200)))
		}
	}
	writeSection(&b, "What it took", bullets(took))
	writeSection(&b, "What people decided", bullets(said))
	writeSection(&b, "What became of findings", bullets(judged))
	writeSection(&b, "After it had ended", bullets(r.Reopened))
	var ran []string
	for _, d := range deploymentsOf(r) {
		if d.State != "" {
			ran = append(ran, text.OneLine(d.String()))
		}
	}
	for _, file := range r.Escaped {
		in := ""
		if file != "" {
			in = " in " + code(file)
		}
		ran = append(ran, "a defect"+in+" reached production with it: neither review nor tests saw it")
	}
	writeSection(&b, "In production", bullets(ran))
	return b.String()
}

func effort(r *pipeline.Run) string {
	return fmt.Sprintf("%s, %s of work, %s, %s", text.Plural(len(r.Iterations), "iteration", "iterations"),
		text.Plural(int(r.Worked()/60_000), "minute", "minutes"),
		r.Total().Cost(), text.Plural(len(r.Gates), "question", "questions"))
}

func writeSection(b *strings.Builder, title, body string) {
	if body != "" {
		fmt.Fprintf(b, "#### %s\n\n%s\n\n", title, strings.TrimRight(body, "\n"))
	}
}

func numbered(list []string) string {
	var b strings.Builder
	for i, l := range list {
		fmt.Fprintf(&b, "%d. %s\n", i+1, l)
	}
	return strings.TrimRight(b.String(), "\n")
}
