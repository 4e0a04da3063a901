package render

import (
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/role"
	"forge/pipeline/text"
	"forge/pipeline/track"
)

// Status is the one comment on the issue that is edited in place.
func (v Renderer) Status() string {
	return v.whole("status", "### "+v.headline(), v.notice(), v.modules(), v.phases(), v.facts(), v.earlier(), v.feedback(), v.measures(), v.plan(), v.footer())
}

// headline says in a few words where the run stands.
func (v Renderer) headline() string {
	r := v.Run
	round := ""
	if it := r.Current(); it != nil {
		round = fmt.Sprintf(" (iteration %d of %d)", it.Number, r.MaxIterations())
	}
	switch r.State {
	case pipeline.StateWaiting:
		return "✋ Forge needs a decision"
	case pipeline.StateStopped:
		return "⏸️ Forge was stopped"
	case pipeline.StateVerified:
		if r.Unread() {
			return "⚠️ Done: tested, and not reviewed" + v.released()
		}
		return "✅ Done: reviewed and tested" + v.released()
	case pipeline.StateAccepted:
		return "☑️ Accepted with known issues" + v.released()
	case pipeline.StateCancelled:
		return "🚫 Cancelled"
	case pipeline.StateFailed:
		return "❌ Forge could not finish this"
	case pipeline.StateSkipped:
		return "⏭️ Left by the circuit breaker"
	}
	if r.Active == nil {
		if r.Plan == nil {
			return "🚀 Forge has started"
		}
		if len(r.Parts) > 0 && r.Current() == nil {
			return "🔄 Forge is building " + text.Plural(len(r.Parts), "module", "modules")
		}
		return "🔄 Forge is working" + round
	}
	switch r.Active.Phase {
	case pipeline.PhaseContract:
		return "🔄 Forge is laying down what the modules promise each other"
	case pipeline.PhaseMerge:
		if r.Active.Mode == pipeline.ModeLook {
			return "🔄 Forge is looking whether the merged modules are still on the branch"
		}
		return "🔄 Forge is merging the module " + code(r.Active.Part)
	}
	doing := map[pipeline.Phase]string{pipeline.PhaseAnalyse: "analysing", pipeline.PhaseDesign: "designing", pipeline.PhasePlan: "planning",
		pipeline.PhaseImplement: "implementing", pipeline.PhaseReview: "reviewing", pipeline.PhaseTest: "testing",
		pipeline.PhaseResolve: "deciding what an agent asked", pipeline.PhaseUpdate: "taking " + r.Repo.DefaultBranch + " in"}[r.Active.Phase]
	if r.Await != nil {
		doing = "waiting for " + v.line(r.Await.What, 200)
	}
	if slices.Contains([]pipeline.Phase{pipeline.PhasePlan, pipeline.PhaseAnalyse, pipeline.PhaseDesign}, r.Active.Phase) {
		round = ""
	}
	return "🔄 Forge is " + doing + round
}

// released says where the work runs and how it fares there, for a headline.
func (v Renderer) released() string {
	var b strings.Builder
	for _, r := range v.Run.Rollouts {
		b.WriteString("; " + v.line(r.String(), 300))
	}
	return b.String()
}

// notice is what a person must see first: a question, a breakdown, an end.
func (v Renderer) notice() string {
	r := v.Run
	if g := r.Gate(); g != nil {
		var words []string
		for _, c := range g.Choices {
			words = append(words, v.command(c))
		}
		where := ""
		if r.Published.Pull != nil {
			where = fmt.Sprintf(" The details are in #%d.", r.Published.Pull.Number)
		}
		return quoted("IMPORTANT", fmt.Sprintf("%s%s\n\nAnswer with %s.", v.line(g.Question, 1800), where, strings.Join(words, " · ")))
	}
	if r.State.Ended() {
		kind := map[pipeline.State]string{pipeline.StateVerified: "TIP", pipeline.StateFailed: "CAUTION"}[r.State]
		if kind == "" {
			kind = "NOTE"
		}
		if r.Ended == "" {
			return ""
		}
		if v.unpublished() && r.Fault != nil && r.State != pipeline.StateCancelled {
			return quoted("WARNING", fmt.Sprintf("%s GitHub does not have %s, because it was not taken: %s", v.line(r.Ended, 800), v.commit(r.Head), v.line(r.Fault.Message, 1800)))
		}
		return quoted(kind, strings.TrimSpace(v.line(r.Ended, 800)+v.anew()+"\n\n"+v.behind()))
	}
	if r.State == pipeline.StateStopped {
		return quoted("NOTE", fmt.Sprintf("%sNothing is lost: `/%s resume` goes on from here. Without it the run is cancelled on %s.",
			stoppedBy(r), v.Slug, r.Deadline().UTC().Format("2006-01-02")))
	}
	if f := r.Fault; f != nil {
		next := "Forge tries again by itself; this costs no iteration."
		if f.Final {
			next = "Trying again cannot help before this is mended."
		}
		return quoted("WARNING", fmt.Sprintf("**A step broke down** (%s): %s\n\n%s", f.Class, v.line(f.Message, 1800), next))
	}
	return ""
}

// stoppedBy says who stopped the run, and how.
func stoppedBy(r *pipeline.Run) string {
	if r.StoppedBy.Login == "" {
		return ""
	}
	if n := len(r.Gates); n > 0 {
		if a := r.Gates[n-1].Answers; len(a) > 0 && a[len(a)-1].Choice == "take-over" && a[len(a)-1].At.Equal(r.Stopped) {
			return code(r.StoppedBy.Login) + " has taken over, to mend it on the branch " + code(r.Branch) + ". "
		}
	}
	return "Stopped by " + code(r.StoppedBy.Login) + ". "
}

// phases is the check list: state, result, time and cost of each phase.
func (v Renderer) phases() string {
	var b strings.Builder
	b.WriteString("| | Phase | Result | Time | Cost |\n|---|---|---|---|---|\n")
	type row struct {
		phase pipeline.Phase
		name  string
	}
	rows := []row{{pipeline.PhasePlan, "Plan"}, {pipeline.PhaseImplement, "Implement"}, {pipeline.PhaseReview, "Review"}, {pipeline.PhaseTest, "Test"}}
	if v.Run.Track.Name() == track.Full {
		rows = append([]row{{pipeline.PhaseAnalyse, "Analyse"}, {pipeline.PhaseDesign, "Design"}}, rows...)
	}
	for _, p := range rows {
		icon, text := v.phase(p.phase)
		cost := ""
		if u, ok := v.Run.Spent[p.phase]; ok && u.MicroUSD+u.Unpriced > 0 {
			cost = u.Cost()
		}
		fmt.Fprintf(&b, "| %s | **%s** | %s | %s | %s |\n", icon, p.name, text, took(v.Run.Millis[p.phase]), cost)
	}
	return b.String()
}

// wrote is what roles have written, in a phase before the plan.
func (v Renderer) wrote(roles ...role.Role) (icon, words string) {
	var list []string
	for _, who := range roles {
		if a := role.Of(v.Run.Artefacts, who); a != nil {
			list = append(list, fmt.Sprintf("%s: %s", who, text.Plural(len(a.Items), "item", "items")))
		}
	}
	if len(list) == 0 {
		return "⬜", ""
	}
	return "✅", strings.Join(list, ", ")
}

func (v Renderer) phase(p pipeline.Phase) (icon, words string) {
	r := v.Run
	if r.Active != nil && r.Active.Phase == p && r.State == pipeline.StateRunning {
		if r.Active.Attempt > 1 {
			return "🔄", fmt.Sprintf("at work (attempt %d)", r.Active.Attempt)
		}
		return "🔄", "at work"
	}
	it := r.Current()
	switch p {
	case pipeline.PhaseAnalyse:
		return v.wrote(role.Analyst, role.Product)
	case pipeline.PhaseDesign:
		return v.wrote(role.Architect, role.UX)
	}
	if p == pipeline.PhasePlan {
		if r.Plan == nil {
			return "⬜", ""
		}
		return "✅", fmt.Sprintf("%s, %s", text.Plural(len(r.Plan.Steps), "step", "steps"),
			text.Plural(len(r.Plan.Criteria), "acceptance criterion", "acceptance criteria"))
	}
	if it == nil {
		return "⬜", ""
	}
	switch p {
	case pipeline.PhaseImplement:
		return v.implementPhase(it)
	case pipeline.PhaseReview:
		return v.reviewPhase(it)
	}
	return v.testPhase(it)
}

func (v Renderer) implementPhase(it *pipeline.Iteration) (icon, words string) {
	m := it.Impl
	switch {
	case m == nil:
		return "⬜", ""
	case m.Unable != "":
		return "✋", "needs a clarification"
	case m.Head == m.Parent:
		return "➖", "nothing changed"
	}
	words = fmt.Sprintf("%s in %s", text.Plural(len(m.Files), "file", "files"), v.commit(m.Head))
	if len(m.Files) == 0 { // modules, each with commits of its own
		words = fmt.Sprintf("%s: %s", v.line(m.Summary, 200), v.commit(m.Head))
	}
	if u := it.Update; u != nil && u.Resolved != "" {
		words += fmt.Sprintf("; conflicts with %s resolved in %s", code(v.Run.Repo.DefaultBranch), v.commit(u.Head))
	}
	return "✅", words
}

func (v Renderer) reviewPhase(it *pipeline.Iteration) (icon, words string) {
	review := it.Review
	switch {
	case review == nil:
		return "⬜", ""
	case len(v.Run.Blocking(review)) > 0:
		found := tally(review.Findings)
		if n := len(v.Run.Blocking(review)) - len(review.Blocking()); n > 0 {
			found += fmt.Sprintf("; %s still there", text.Plural(n, "earlier one", "earlier ones"))
		}
		return "❌", found
	case review.NeedsHuman != "":
		return "✋", "a human must look"
	case len(review.NotReviewed) > 0:
		return "⚠️", fmt.Sprintf("%s; %s not reviewed", tally(review.Findings), text.Plural(len(review.NotReviewed), "file", "files"))
	}
	return "✅", "nothing that blocks: " + tally(review.Findings)
}

func (v Renderer) testPhase(it *pipeline.Iteration) (icon, words string) {
	t := it.Tests
	switch {
	case t == nil && it.Review != nil && len(v.Run.Blocking(it.Review)) > 0:
		return "➖", "not run: the review sent the work back"
	case t == nil:
		return "⬜", ""
	case t.None != "":
		return "⚠️", "nothing could be tested"
	}
	words = fmt.Sprintf("%d of %d passed", t.Passed, t.Total)
	if t.Skipped > 0 {
		words += fmt.Sprintf(", %d skipped", t.Skipped)
	}
	if n := len(t.Before); n > 0 {
		words += fmt.Sprintf(", %d failed before this work", n)
	}
	if n := len(t.Flaky); n > 0 {
		words += fmt.Sprintf(", %d flaky", n)
	}
	if n := len(t.Tampered); n > 0 {
		words += fmt.Sprintf(", %s removed or weakened", text.Plural(n, "test", "tests"))
	}
	if c := t.Coverage; c != nil && c.Lines >= 0 {
		words += fmt.Sprintf(", coverage %.0f %%", c.Lines)
	}
	if t.OK() {
		return "✅", words
	}
	return "❌", words
}

// facts is the line of numbers and links.
func (v Renderer) facts() string {
	r := v.Run
	var out []string
	if it := r.Current(); it != nil {
		out = append(out, fmt.Sprintf("Iteration **%d of %d**", it.Number, r.MaxIterations()))
	}
	out = append(out, spent(r))
	var ms int64
	for _, n := range r.Millis {
		ms += n
	}
	if ms > 0 {
		out = append(out, "working time "+took(ms))
	}
	if p := r.Published.Pull; p != nil {
		kind := "draft"
		if p.Ready || v.Check().Conclusion == "success" { // it leaves draft after this comment
			kind = "ready for your review"
		}
		out = append(out, fmt.Sprintf("pull request #%d (%s)", p.Number, kind))
	}
	if r.Published.Head != "" {
		out = append(out, "branch "+code(r.Branch))
	}
	return strings.Join(out, " · ")
}

// spent is what the run has used of its budget: money, and tokens where the model
// has no price.
func spent(r *pipeline.Run) string {
	used := r.Total()
	cost := fmt.Sprintf("cost **%s**", used.Cost())
	switch l := r.CostLimit(); {
	case used.Unpriced > 0 && used.MicroUSD == 0:
		cost = "**cost unknown**"
	case l > 0:
		cost += " of " + text.USD(l)
	}
	if used.Unpriced > 0 {
		cost += fmt.Sprintf(" (%d tokens", used.Input+used.Output)
		if l := r.TokenLimit(); l > 0 {
			cost += fmt.Sprintf(" of %d", l)
		}
		cost += ")"
	}
	return cost
}

// earlier sums up the iterations that were sent back.
func (v Renderer) earlier() string {
	var out []string
	for _, b := range v.Run.Bounces {
		if b.Iteration < 1 || b.Iteration > len(v.Run.Iterations) {
			continue
		}
		by, to := "review", ""
		if b.Phase == pipeline.PhaseTest {
			by = "tests"
		}
		if b.Target == pipeline.TargetPlan || b.Target == pipeline.TargetResearch {
			to = " to the planner"
		}
		why := v.line(v.Run.WhyBack(&b), 200)
		out = append(out, fmt.Sprintf("%d. ↩️ sent back%s by the %s: %s", b.Iteration, to, by, why))
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "\n")
}

// plan is what is going to be done, folded.
func (v Renderer) plan() string {
	p := v.Run.Plan
	if p == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", v.block(p.Summary, 4000))
	for i, s := range p.Steps {
		fmt.Fprintf(&b, "%d. %s\n", i+1, v.line(s, 500))
	}
	if len(p.Criteria) > 0 {
		b.WriteString("\n**Acceptance criteria**\n\n")
	}
	for _, c := range p.Criteria {
		fmt.Fprintf(&b, "- **%s** %s\n", v.line(c.ID, 20), v.line(c.Text, 500))
	}
	b.WriteString(v.split())
	if len(p.Files) > 0 {
		var names []string
		for _, f := range p.Files {
			names = append(names, code(f))
		}
		fmt.Fprintf(&b, "\n**Files:** %s\n", Shorten(strings.Join(names, ", "), 3000))
	}
	if len(p.Risks) > 0 {
		b.WriteString("\n**Risks**\n\n")
	}
	for _, s := range p.Risks {
		fmt.Fprintf(&b, "- %s\n", v.line(s, 500))
	}
	if len(p.Related) > 0 {
		b.WriteString("\n**Related issues**\n\n")
	}
	for _, s := range p.Related {
		fmt.Fprintf(&b, "- %s\n", v.line(s, 300))
	}
	return Folded("Plan", Cut(strings.TrimSpace(b.String()), 30_000))
}

func (v Renderer) footer() string {
	r := v.Run
	who := ""
	if r.By.Login != "" {
		who = ", started by " + code(r.By.Login)
	}
	if r.State.Ended() {
		return fmt.Sprintf("<sub>Run %d%s</sub>", r.ID, who)
	}
	return fmt.Sprintf("<sub>Run %d%s · `/%s stop` · `/%s help`</sub>", r.ID, who, v.Slug, v.Slug)
}
