package render

import (
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/module"
	"forge/pipeline/proof"
)

// PullTitle is the task's title.
func (v Renderer) PullTitle() string {
	if t := v.line(v.Run.Task.Title, 240); t != "" {
		return t
	}
	return fmt.Sprintf("Run %d", v.Run.ID)
}

// PullBody says what the change is, why, what it must fulfil and how that was
// shown. It changes with results, not with every step.
func (v Renderer) PullBody() string {
	r := v.Run
	issues := "Still open"
	if r.State.Ended() {
		issues = "Known issues"
	}
	return v.body("pull", v.verdict(), v.what(), v.why(), v.criteria(),
		section("Decisions", bullets(v.decided())), section("Conflicts with what people committed", bullets(v.met())), section("Modules", v.modules()), section("Iterations", v.iterations()),
		section(issues, bullets(append(v.Left(50), v.unjudged()...))), section("Let pass by people", bullets(v.waivers())),
		section("Tests that had to change", bullets(v.changedTests())),
		section("Lock files written by package managers", v.locked()), section("Quality gates", v.measures()), v.debtLink(), v.laterLinks(), v.documentsLink(), v.artefacts(), v.report(),
		fmt.Sprintf("<sub>Made by Forge, run %d. Findings are review comments; a comment that begins with `/%s help` lists what you can ask for.</sub>", r.ID, v.Slug))
}

// anew says how work that was cancelled is begun again: opening what was closed does not.
func (v Renderer) anew() string {
	if v.Run.Task.Issue == 0 || v.Run.State != pipeline.StateCancelled {
		return ""
	}
	return fmt.Sprintf(". To begin anew, put the label %s on #%d again, or write `/%s run` there; opening what was closed begins nothing", code(v.Label), v.Run.Task.Issue, v.Slug)
}

// debtLink names the issue that keeps what was accepted.
func (v Renderer) debtLink() string {
	a := v.Run.Published.Artefacts["debt"]
	if a.ID == 0 {
		return ""
	}
	return fmt.Sprintf("What is left is kept as technical debt in #%d.", a.ID)
}

// Debt is the issue that keeps what a human accepted.
func (v Renderer) Debt() (title, body string) {
	r := v.Run
	title = Shorten("Known issues: "+v.PullTitle(), 240)
	from := "a run"
	if p := r.Published.Pull; p != nil {
		from = fmt.Sprintf("#%d", p.Number)
	}
	if r.Task.Issue != 0 {
		from += fmt.Sprintf(", made for #%d", r.Task.Issue)
	}
	return title, v.body("debt", fmt.Sprintf("%s was %s. This is what is left:", from, v.line(r.Ended, 300)), bullets(v.Left(50)),
		v.writtenDown())
}

// writtenDown is the last line of an issue that a run leaves behind.
func (v Renderer) writtenDown() string {
	return fmt.Sprintf("<sub>Written down by Forge, run %d. Put the label `%s` on this issue to have it worked on.</sub>", v.Run.ID, v.Label)
}

func section(title, text string) string {
	if text == "" {
		return ""
	}
	return "## " + title + "\n\n" + text
}

func (v Renderer) verdict() string {
	r := v.Run
	switch r.State {
	case pipeline.StateVerified:
		if r.Retargeted != "" {
			return quoted("WARNING", "**Verified** on "+v.commit(r.Head)+", but for another branch. "+v.behind())
		}
		if who := v.letPass(); who != "" {
			return quoted("NOTE", "**Verified** on "+v.commit(r.Head)+strings.ReplaceAll(who, ";", ", with")+"; see below.")
		}
		if r.Unread() {
			return quoted("NOTE", "**Tested, not reviewed**: the tests passed on "+v.commit(r.Head)+", and nobody has read the change.")
		}
		return quoted("TIP", "**Verified**: review and tests both passed on "+v.commit(r.Head)+".")
	case pipeline.StateAccepted:
		return quoted("WARNING", "**Accepted with known issues** by a human, not verified: see below.")
	case pipeline.StateCancelled:
		return quoted("NOTE", "**Cancelled**: "+v.line(r.Ended, 400)+v.anew())
	case pipeline.StateFailed, pipeline.StateSkipped:
		return quoted("CAUTION", "**Not finished**: "+v.line(r.Ended, 400))
	}
	if p := r.Published.Pull; p != nil && p.Ready {
		return quoted("NOTE", "**Not verified yet.** What is here now has not passed review and tests; do not merge it before they have.")
	}
	return quoted("NOTE", "**Not verified yet.** This stays a draft until review and tests have both passed on its newest commit.")
}

func (v Renderer) what() string {
	text := ""
	if p := v.Run.Plan; p != nil {
		text = v.block(p.Summary, 4000)
	}
	for i := range v.Run.Iterations {
		if m := v.Run.Iterations[i].Impl; m != nil && m.Summary != "" {
			text = strings.TrimSpace(text + "\n\n" + v.block(m.Summary, 4000))
			break // the first one made it, the others mended it: see the table
		}
	}
	for i := range v.Run.Iterations {
		if u := v.Run.Iterations[i].Update; u != nil && u.Resolved != "" {
			text += fmt.Sprintf("\n\nConflicts with %s were resolved by the implementer in %s: ", code(v.Run.Repo.DefaultBranch), v.commit(u.Head)) + v.block(u.Resolved, 2000)
		}
	}
	if v.Run.BaseWas != "" {
		text += fmt.Sprintf("\n\nThe branch that this is for was renamed from %s to %s while it was made.", code(v.Run.BaseWas), code(v.Run.Repo.DefaultBranch))
	}
	return section("What", strings.TrimSpace(text))
}

// locked are the lock files that package managers wrote for the change.
func (v Renderer) locked() string {
	var lines []string
	for _, it := range v.Run.Iterations {
		if it.Impl == nil {
			continue
		}
		for _, name := range it.Impl.Locked {
			if line := code(name); !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return bullets(lines)
}

// met are the commits of people that an agent resolved a conflict with, in the run and its
// modules: what is left of them.
func (v Renderer) met() (out []string) {
	say := func(where string, list []module.Met) {
		for _, m := range list {
			icon := "🔀"
			if m.Kept < m.Lines {
				icon = "⚠️"
			}
			out = append(out, fmt.Sprintf("%s %s%s", icon, v.line(m.String(), 400), where))
		}
	}
	say("", v.Run.Met)
	for i := range v.Run.Parts {
		p := &v.Run.Parts[i]
		say(fmt.Sprintf(", as the implementer of the module %s resolved it", code(p.ID)), p.Met)
	}
	return out
}

func (v Renderer) why() string {
	t := v.Run.Task
	if t.Issue == 0 {
		return section("Why", v.block(t.Body, 3000))
	}
	return section("Why", fmt.Sprintf("%s\n\nCloses #%d", v.line(t.Title, 240), t.Issue))
}

// criteria ticks what the newest review that judged a criterion found met.
func (v Renderer) criteria() string {
	if v.Run.Plan == nil {
		return ""
	}
	judged := map[string]pipeline.Compliance{}
	for _, it := range v.Run.Iterations {
		if it.Review == nil {
			continue
		}
		for _, c := range it.Review.Compliance {
			judged[c.Criterion] = c
		}
	}
	proofs := v.proofs()
	var b strings.Builder
	for _, c := range v.Run.Plan.Criteria {
		j, ok := judged[c.ID]
		box, note := " ", ""
		switch {
		case ok && j.Met && v.missed(c.ID):
			note = "<br>**open**: it was not met, and nothing was committed since"
		case ok && j.Met && j.Unshown != "":
			note = "<br>met by the reviewer's word alone: " + v.line(j.Unshown, 200)
			if j.Evidence != "" {
				note += " (" + v.line(j.Evidence, 400) + ")"
			}
		case ok && j.Met:
			box = "x"
			if j.Evidence != "" {
				note = "<br>shown by: " + v.line(j.Evidence, 400)
			}
		case ok:
			note = "<br>**not met**"
			if j.Evidence != "" {
				note += ": " + v.line(j.Evidence, 400)
			}
		}
		fmt.Fprintf(&b, "- [%s] **%s** %s%s%s\n", box, v.line(c.ID, 20), v.line(c.Text, 500), note, proofs[c.ID])
	}
	for _, c := range v.Run.Plan.LeftOut {
		why := "**left out**"
		if c.By != "" {
			why = "**a known limitation**, by " + code(c.By)
		}
		fmt.Fprintf(&b, "- [ ] **%s** %s<br>%s, see what people let pass\n", v.line(c.ID, 20), v.line(c.Text, 500), why)
	}
	return section("Acceptance criteria", b.String())
}

// missed reports whether it is still open that a criterion was not met: the reviewer's
// word that it is now does not close it.
func (v Renderer) missed(id string) bool {
	return slices.ContainsFunc(v.Run.Findings, func(is pipeline.Issue) bool {
		return is.Finding != nil && is.Finding.Criterion == id && is.State == pipeline.IssueOpen
	})
}

// proofs say of each criterion how the tests went that show it, at the newest head that
// was tested.
func (v Renderer) proofs() map[string]string {
	out := map[string]string{}
	for i := len(v.Run.Iterations) - 1; i >= 0; i-- {
		rows := v.Run.Proofs(&v.Run.Iterations[i])
		for _, row := range rows {
			out[row.Criterion] = v.proof(row)
		}
		if len(rows) > 0 {
			break
		}
	}
	return out
}

func (v Renderer) proof(row proof.Row) string {
	on := v.Run.Config.Loop.Proofs.On()
	if len(row.Tests) == 0 {
		if !on {
			return ""
		}
		return "<br>**not proved**: " + v.line(row.Lacks(), 300)
	}
	var tests []string
	for _, t := range row.Tests {
		word := string(t.State)
		if t.Before && on {
			word += ", as it does without the change"
		}
		tests = append(tests, code(t.Name)+" "+word)
	}
	note := "<br>tests: " + strings.Join(tests, ", ")
	if row.Commit != "" {
		note += ", since " + v.commit(row.Commit)
	}
	if lacks := row.Lacks(); on && lacks != "" {
		note += "<br>**not proved**: " + v.line(lacks, 300)
	}
	return note
}

// measures lists the quality gates as they were last measured; "" if there are none.
func (v Renderer) measures() string {
	for i := len(v.Run.Iterations) - 1; i >= 0; i-- {
		t := v.Run.Iterations[i].Tests
		if table := t.MeasureTable(); table != "" {
			head := ""
			if t.Head != v.Run.Head {
				head = "Measured on " + v.commit(t.Head) + ", not on what came after it.\n\n"
			}
			return strings.TrimSpace(head + v.block(table, 8000) + "\n\n" + bullets(v.lines(t.MeasureNotes())))
		}
	}
	return ""
}

// lines makes text of a tool's harmless, line by line.
func (v Renderer) lines(list []string) (out []string) {
	for _, s := range list[:min(len(list), 10)] {
		out = append(out, v.line(s, 500))
	}
	return out
}

// report is the validation report of the newest iteration that has one.
func (v Renderer) report() string {
	for i := len(v.Run.Iterations); i > 0; i-- {
		if text := v.Run.Report(i); text != "" {
			return Folded(fmt.Sprintf("Validation report, iteration %d", i), v.block(text, 25_000))
		}
	}
	return ""
}
