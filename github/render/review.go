package render

import (
	"cmp"
	"fmt"
	"strings"

	"forge/pipeline"
	"forge/pipeline/text"

	gh "github.com/google/go-github/v62/github"
)

// maxComments is how many comments one review carries: GitHub has no stated
// limit, and this many are known to pass (github/README, 2.4).
const maxComments = 30

// maxSummed is how many findings a review's own text lists.
const maxSummed = 60

// Draft is a review as it will be posted.
type Draft struct {
	Body     string
	Comments []*gh.DraftReviewComment
	Inline   []pipeline.Finding // those of Comments, in the same order
	Summed   []pipeline.Finding // those that stand in the body
}

// Review renders the findings of an iteration that nobody has been told of yet.
// What has no place in the diff, or no room, stands in the review's own text.
func (v Renderer) Review(it *pipeline.Iteration, fresh []pipeline.Finding, p Patch) Draft {
	var d Draft
	for _, f := range worstFirst(fresh) {
		a, ok := p.anchor(&f)
		if !ok || len(d.Comments) == maxComments {
			d.Summed = append(d.Summed, f)
			continue
		}
		c := &gh.DraftReviewComment{Path: &a.path, Line: &a.line, Side: gh.String("RIGHT"), Body: gh.String(v.comment(&f, a))}
		if a.start > 0 {
			c.StartLine, c.StartSide = &a.start, gh.String("RIGHT")
		}
		d.Comments, d.Inline = append(d.Comments, c), append(d.Inline, f)
	}
	d.Body = v.reviewBody(it, d.Summed)
	return d
}

// Flat is the review with all findings in its text: when GitHub refuses an
// anchor, it refuses the whole review, and none may be lost.
func (v Renderer) Flat(it *pipeline.Iteration, d Draft) Draft {
	all := worstFirst(append(append([]pipeline.Finding{}, d.Inline...), d.Summed...))
	return Draft{Body: v.reviewBody(it, all), Summed: all}
}

func (v Renderer) reviewBody(it *pipeline.Iteration, summed []pipeline.Finding) string {
	r := it.Review
	verdict := "✅ nothing that blocks"
	if r.Unread() {
		verdict = "⚠️ there was none"
	}
	if n := len(r.Blocking()); n > 0 {
		verdict = "❌ " + text.Plural(n, "finding blocks", "findings block")
	}
	head := fmt.Sprintf("### Review of iteration %d: %s\n\n%s at %s · risk %d of 100", it.Number, verdict, tally(r.Findings), v.commit(r.Head), r.Risk)
	var places []string
	for i, f := range summed {
		if i == maxSummed {
			places = append(places, fmt.Sprintf("and %d more, in the pull request's validation report", len(summed)-i))
			break
		}
		s := v.finding(&f, r.Head)
		if f.Fix != nil && f.Fix.Description != "" {
			s += "<br>fix: " + v.line(f.Fix.Description, 400)
		}
		places = append(places, s)
	}
	var unread []string
	for _, s := range r.NotReviewed {
		unread = append(unread, code(s.Path)+": "+v.line(s.Why, 200))
	}
	list := ""
	if len(places) > 0 {
		list = "**Not on a line of the diff:**\n\n" + Cut(bullets(places), 40_000)
	}
	if len(unread) > 0 {
		list += "\n\n**Not reviewed:**\n\n" + Cut(bullets(unread), 8_000)
	}
	var held []string
	for _, h := range r.Suppressed {
		held = append(held, v.line(h.String(), 600))
	}
	if len(held) > 0 {
		list += "\n\n" + Folded(text.Plural(len(held), "finding was held back", "findings were held back"), Cut(bullets(held), 12_000))
	}
	if len(r.Views) > 0 {
		var views []string
		for _, view := range r.Views {
			views = append(views, view.String())
		}
		list += "\n\n**Looked at besides:**\n\n" + bullets(views)
	}
	human := ""
	if r.NeedsHuman != "" {
		human = quoted("IMPORTANT", "**A human must look:** "+v.line(r.NeedsHuman, 800))
	}
	return v.body(ReviewKey(it), head, human, v.block(r.Summary, 4000), list)
}

func ReviewKey(it *pipeline.Iteration) string {
	return fmt.Sprintf("review/%d/%s", it.Number, text.ShortSHA(it.Review.Head))
}

// comment is one finding on its line.
func (v Renderer) comment(f *pipeline.Finding, a anchor) string {
	head := fmt.Sprintf("**%s** · %s · confidence %.0f %%", severityName(f.Severity), v.line(string(f.Category), 40), f.Confidence*100)
	fix := ""
	if f.Fix != nil {
		if f.Fix.Description != "" {
			fix = "**Fix:** " + v.block(f.Fix.Description, 3000)
		}
		if s, ok := a.suggestion(f); ok {
			fix += "\n\n" + text.Fence("suggestion", s)
		} else if d := f.Fix.Diff; d != "" {
			fix += "\n\n" + text.Fence("diff", Cut(Visible(d), 8000))
		} else if s := f.Fix.Replacement; s != nil {
			fix += "\n\n" + text.Fence("", Cut(Visible(*s), 8000))
		}
	}
	return v.body(FindingKey(f.Fingerprint), head, v.block(f.Message, 8000), fix, v.findingFoot(f))
}

func (v Renderer) findingFoot(f *pipeline.Finding) string {
	name := v.line(f.ID, 20)
	if h := v.Run.Handle(f.Fingerprint); h != "" {
		name = h
	}
	out := []string{"Finding " + name}
	if f.Rule != "" {
		out = append(out, "rule "+code(f.Rule))
	}
	if f.Criterion != "" {
		out = append(out, "criterion "+v.line(f.Criterion, 20))
	}
	if !f.Severity.Blocks() {
		out = append(out, "does not block")
	}
	return "<sub>" + strings.Join(out, " · ") + "</sub>"
}

func FindingKey(fp string) string { return "finding/" + fp }

// FixedNote answers a finding's thread when its fix has been reviewed.
func (v Renderer) FixedNote(is *pipeline.Issue, human bool) string {
	words := "✅ Fixed in " + v.commit(is.FixedIn) + "."
	if is.Ruling != "" {
		words += " " + v.line(is.Ruling, 600)
	}
	return Marker(v.Run.Trace, "fixed/"+is.Fingerprint()+"/"+text.ShortSHA(is.FixedIn)) + "\n" + words + leftOpen(human)
}

// WithdrawnNote answers a finding's thread when the reviewer has withdrawn it.
func (v Renderer) WithdrawnNote(is *pipeline.Issue, human bool) string {
	return Marker(v.Run.Trace, "withdrawn/"+is.Fingerprint()+"/"+text.ShortSHA(is.Seen)) + "\n☑️ Withdrawn: " + v.line(is.Ruling, 600) + leftOpen(human)
}

func leftOpen(human bool) string {
	if !human {
		return ""
	}
	return " I leave this open: there is a reply here that I have not answered."
}

// ArgumentNote shows in a finding's thread that the implementer disputes it, or that
// the reviewer upholds it all the same. key is "dispute/…" or "upheld/…".
func (v Renderer) ArgumentNote(is *pipeline.Issue, key string) string {
	if strings.HasPrefix(key, "dispute/") {
		return Marker(v.Run.Trace, key+"/"+Hash(is.Disputed)) + "\n💬 The implementer disputes this: " + v.line(is.Disputed, 800)
	}
	return Marker(v.Run.Trace, fmt.Sprintf("%s/%d", key, is.Upheld)) + "\n⚖️ The reviewer upholds it: " + v.line(is.Ruling, 800)
}

// BackNote answers a finding's thread when it has come back.
func (v Renderer) BackNote(fp, sha string) string {
	return Marker(v.Run.Trace, "back/"+fp+"/"+text.ShortSHA(sha)) + "\n↩️ This is back in " + v.commit(sha) + "."
}

var guardNames = map[pipeline.GuardName]string{
	pipeline.GuardIterations: "all iterations are used up", pipeline.GuardBounces: "sent back as often as allowed",
	pipeline.GuardSameFinding: "the same finding keeps coming back", pipeline.GuardSameFailure: "the same test keeps failing",
	pipeline.GuardDiminishing: "another round brought no progress", pipeline.GuardBreaker: "the circuit breaker opened",
	pipeline.GuardBudget: "the budget is used up", pipeline.GuardWall: "the time is used up",
	pipeline.GuardFaults: "a step keeps breaking down", pipeline.GuardNoFix: "no failure has a confident fix",
	pipeline.GuardDoubts:  "signs that going on does not help",
	pipeline.GuardNoTests: "there is nothing to test with", pipeline.GuardNoProgress: "rounds without a commit",
	pipeline.GuardHuman: "the review wants a human", pipeline.GuardMoved: "someone else works on this branch",
	pipeline.GuardUnable: "a clarification is needed", pipeline.GuardPlan: "the plan has a question",
	pipeline.GuardPublish: "GitHub refuses what must be published", pipeline.GuardManual: "manual mode: every step waits for your word",
	pipeline.GuardUnread: "part of the change could not be reviewed", pipeline.GuardDispute: "implementer and reviewer disagree",
	pipeline.GuardKnown: "tests failed before this work and still fail", pipeline.GuardUnclean: "a test suite did not end well",
	pipeline.GuardSecret: "what would be pushed looks like a secret",
	pipeline.GuardSplit:  "the plan has modules", pipeline.GuardRounds: "the integration keeps sending a module back", pipeline.GuardParts: "no module is left",
	pipeline.GuardGone: "the branch was deleted", pipeline.GuardBase: "the base branch has moved on",
	pipeline.GuardConflict: "the base branch does not merge by itself", pipeline.GuardUpstream: "what agents told each other is for you to decide",
}

// guard says which guard fired, with its numbers.
func (v Renderer) guard(g *pipeline.Guard) string {
	if g == nil {
		return ""
	}
	name := guardNames[g.Name]
	if name == "" {
		name = strings.ReplaceAll(v.line(string(g.Name), 40), "_", " ")
	}
	numbers := ""
	switch {
	case g.Limit == 0 || g.Name == pipeline.GuardGone || g.Name == pipeline.GuardBase:
	case g.Unit == "micro-USD":
		numbers = fmt.Sprintf(" (%s of %s)", text.USD(g.Value), text.USD(g.Limit))
	case g.Name == pipeline.GuardDiminishing:
		numbers = fmt.Sprintf(" (what is left weighs %d by severity, %d the time before)", g.Value, g.Limit)
	case g.Name == pipeline.GuardNoFix:
		numbers = fmt.Sprintf(" (a fix needs a confidence of %d %%)", g.Limit)
	default:
		numbers = strings.TrimRight(fmt.Sprintf(" (%d of %d %s", g.Value, g.Limit, g.Unit), " ") + ")"
	}
	return fmt.Sprintf("**Why it stopped:** %s%s", name, numbers)
}

var gateTitles = map[pipeline.GateKind]string{
	pipeline.GateEscalation: "Forge needs a decision", pipeline.GateStuck: "The tests do not get better: Forge needs a decision",
	pipeline.GateClarification: "Forge has a question", pipeline.GateApproval: "Forge waits for your word",
	pipeline.GateBudget: "The budget is reached: Forge needs a decision", pipeline.GateHuman: "A human must look",
	pipeline.GateFeedback: "Agents need a decision",
}

// Gate is the comment that asks a human, or shows what was answered.
func (v Renderer) Gate(g *pipeline.Gate) string {
	title := "✋ " + gateTitles[g.Kind]
	if g.Closed {
		return v.whole(g.ID, "### "+strings.Replace(title, "✋", "☑️", 1)+" — settled", v.guard(g.Guard), v.block(g.Question, 4000), v.answers(g))
	}
	tried := section("What was tried", v.iterations())
	left := ""
	if g.Kind != pipeline.GateClarification && g.Kind != pipeline.GateApproval {
		left = section("What is left", bullets(v.Left(20)))
	}
	return v.whole(g.ID, "### "+title, v.guard(g.Guard), v.block(g.Question, 4000), strings.ReplaceAll(tried, "## ", "#### "),
		strings.ReplaceAll(left, "## ", "#### "), v.choices(g), v.answers(g))
}

// choices lists what can be answered: as a command, or by ticking its box.
func (v Renderer) choices(g *pipeline.Gate) string {
	if len(g.Choices) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("#### Your choice\n\n")
	for _, c := range g.Choices {
		box := "[ ] "
		if c.Arg == strings.ToUpper(c.Arg) && c.Arg != "N" && c.Arg != "" {
			box = "" // it needs words of one's own
		}
		fmt.Fprintf(&b, "- %s%s — %s\n", box, v.command(c), v.line(c.Label, 300))
	}
	if h := v.handle(); h != "" {
		fmt.Fprintf(&b, "- `/%s dismiss %s WHY` — the finding of that name is none: it is dismissed, in your name\n", v.Slug, h)
	}
	b.WriteString("\nComment with one of these commands, or tick a box; further lines of the comment are words for the next attempt. Only people with write access can choose.")
	if end := v.Run.Deadline(); !end.IsZero() {
		fmt.Fprintf(&b, " Without an answer %s on %s.", v.givenUp(), end.UTC().Format("2006-01-02"))
	}
	return b.String()
}

// givenUp says what becomes of a run that nobody answers.
func (v Renderer) givenUp() string {
	if v.Run.Part != nil {
		return fmt.Sprintf("the module %s is left out, with what needs it,", code(v.Run.Part.Module.ID))
	}
	return "the run is cancelled"
}

// handle is the name of an open finding that blocks, "" where there is none.
func (v Renderer) handle() string {
	for i := range v.Run.Findings {
		if is := &v.Run.Findings[i]; is.State == pipeline.IssueOpen && is.Finding.Severity.Blocks() {
			return v.Run.Handle(is.Fingerprint())
		}
	}
	return ""
}

// Reminder asks again, and by name, who started the run.
func (v Renderer) Reminder(key string, g *pipeline.Gate) string {
	who := ""
	if g.For.Login != "" && !g.For.Bot { // bots are never addressed (lessons 1)
		who = "@" + g.For.Login + ": "
	}
	asked := "a decision"
	if u := v.Run.Published.Artefacts[g.ID].URL; u != "" {
		asked = "[a decision](" + u + ")"
	}
	return v.body(key, fmt.Sprintf("%sForge has been waiting for %s since %s. Without one %s on %s.",
		who, asked, g.Opened.UTC().Format("2006-01-02 15:04 UTC"), v.givenUp(), v.Run.Deadline().UTC().Format("2006-01-02")))
}

func (v Renderer) answers(g *pipeline.Gate) string {
	var out []string
	for _, a := range g.Answers {
		what := "/" + v.Slug + " " + a.Choice
		if a.N > 0 {
			what += fmt.Sprint(" ", a.N)
		}
		did := "**Answered** " + code(what)
		if a.Via == "dismissal" { // by a command, a word, or a click in a conversation
			did = "What stood in the way was **dismissed**"
		}
		s := fmt.Sprintf("%s by %s on %s", did, code(a.By.Login), a.At.UTC().Format("2006-01-02 15:04 UTC"))
		if a.Via == "box" || a.Via == "button" || a.Via == "review" || a.Via == "cli" {
			s += " (" + a.Via + ")"
		}
		if a.Text != "" {
			s += ": “" + v.line(a.Text, 500) + "”"
		}
		out = append(out, s)
	}
	return bullets(out)
}

// maxHistory bounds a history, in characters: more than that nobody reads.
const maxHistory = 300_000

// History is the whole scratchpad, folded.
func (v Renderer) History(key string) string {
	return v.whole(key, "### Everything that was tried", Folded("History of run "+fmt.Sprint(v.Run.ID), v.block(v.Run.Scratchpad(), maxHistory)))
}

// CheckState is what a check run shows.
type CheckState struct {
	Status, Conclusion, Title, Summary string
	Buttons                            []*gh.CheckRunAction // at most 3
	Notes                              []*gh.CheckRunAnnotation
}

// maxNotes is how many annotations GitHub takes at once.
const maxNotes = 50

// notes are the places that gates of quality have found on the head, at the lines of the
// change's files.
func (v Renderer) notes() (out []*gh.CheckRunAnnotation) {
	it := v.iterationOf(v.Run.Head)
	if it == nil || it.Tests == nil || it.Tests.Head != v.Run.Head {
		return nil
	}
	for _, m := range it.Tests.Measures {
		level := "warning"
		if m.Block {
			level = "failure"
		}
		for _, p := range m.Places {
			if p.File != "" && p.Line > 0 && !m.OK && !m.Before && len(out) < maxNotes {
				out = append(out, &gh.CheckRunAnnotation{Path: gh.String(p.File), StartLine: &p.Line, EndLine: &p.Line, AnnotationLevel: &level,
					Title: gh.String(Shorten(strings.TrimSpace(m.Name+" "+p.Rule), 250)), Message: gh.String(text.Clip(cmp.Or(p.Message, p.Rule, m.Name), 2000))})
			}
		}
	}
	return out
}

// Check renders the check run for the run's head. Success is for verified alone,
// and only when review and tests both saw this very commit.
func (v Renderer) Check() CheckState {
	r := v.Run
	it := v.iterationOf(r.Head)
	done := func(conclusion, title string) CheckState {
		words := v.guardOrEnd()
		if base := v.behind(); base != "" {
			words += "\n\n" + base
		}
		if rep := strings.TrimSpace(v.lastReport()); rep != "" {
			words += "\n\n" + v.block(rep, 50_000)
		}
		if table := v.modules(); table != "" {
			words = strings.TrimSpace(words) + "\n\n" + table
		}
		return CheckState{"completed", conclusion, Shorten(title, 250), strings.TrimSpace(words), v.buttons(), v.notes()}
	}
	switch r.State {
	case pipeline.StateVerified:
		if r.Retargeted != "" {
			return done("action_required", fmt.Sprintf("Verified for %s, but the pull request goes into %s", v.line(r.Repo.DefaultBranch, 100), v.line(r.Retargeted, 100)))
		}
		if c := r.Current(); c != nil && c.Review != nil && c.Tests != nil && c.Review.Head == r.Head && c.Tests.Head == r.Head && c.Tests.OK() {
			if m := r.Mergeable; m != nil && m.Conflict {
				return done("action_required", "Verified, but it conflicts with "+v.line(r.Repo.DefaultBranch, 100)+" by now")
			}
			if r.Unread() {
				return done("neutral", fmt.Sprintf("Tested, not reviewed: %d tests passed", c.Tests.Passed))
			}
			return done("success", fmt.Sprintf("Verified in %s: %d tests passed%s", text.Plural(c.Number, "iteration", "iterations"), c.Tests.Passed, v.letPass()))
		}
		return done("neutral", "Not verified on this commit")
	case pipeline.StateAccepted:
		return done("neutral", "Accepted with known issues, not verified")
	case pipeline.StateCancelled:
		return done("cancelled", "Cancelled")
	case pipeline.StateFailed:
		return done("failure", "Failed")
	case pipeline.StateSkipped:
		return done("neutral", "Left by the circuit breaker, not verified")
	case pipeline.StateWaiting:
		return done("action_required", "A human must decide")
	case pipeline.StateStopped:
		return done("neutral", "Stopped by a human, not verified")
	}
	if it != nil && it.Result == pipeline.ResultFailed {
		return done("failure", "Sent back: "+v.line(cmp.Or(it.Brief, r.WhyBack(&pipeline.Bounce{Iteration: it.Number})), 200))
	}
	n := 1
	if it != nil {
		n = it.Number
	}
	if v.Run.Current() == nil && len(v.Run.Parts) > 0 {
		return CheckState{"in_progress", "", fmt.Sprintf("%s at work", text.Plural(len(v.Run.Parts), "module", "modules")), v.modules(), nil, nil}
	}
	return CheckState{"in_progress", "", fmt.Sprintf("Iteration %d of %d", n, r.MaxIterations()),
		"Review and tests are under way. The status comment in the issue shows where they stand.", nil, v.notes()}
}

// iterationOf returns the iteration whose commit this is, or the current one.
func (v Renderer) iterationOf(sha string) *pipeline.Iteration {
	for i := len(v.Run.Iterations) - 1; i >= 0; i-- {
		if m := v.Run.Iterations[i].Impl; m != nil && m.Head == sha && m.Head != m.Parent {
			return &v.Run.Iterations[i]
		}
	}
	return v.Run.Current()
}

func (v Renderer) guardOrEnd() string {
	if g := v.Run.Gate(); g != nil {
		return strings.TrimSpace(v.guard(g.Guard) + "\n\n" + v.line(g.Question, 1800))
	}
	return v.line(v.Run.Ended, 1000)
}

func (v Renderer) lastReport() string {
	for i := len(v.Run.Iterations); i > 0; i-- {
		if text := v.Run.Report(i); text != "" {
			return text
		}
	}
	return ""
}
