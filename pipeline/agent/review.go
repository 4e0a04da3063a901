package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/agent/change"
	"forge/pipeline/text"
)

// maxFindings caps one review (S22).
const maxFindings = 50

// How a change is shown to who reads all of it, and to who made it.
var (
	wholeChange = change.Limits{Part: 128 << 10, Parts: 24, Whole: 8 << 10}
	ownChange   = change.Limits{Part: 24 << 10, Parts: 1, Whole: 2 << 10}
)

var criteriaSchema = listOf(object(
	"id", typed("string", "The criterion's id, such as AC1."),
	"met", typed("boolean", "Whether the change meets it."),
	"evidence", typed("string", "The test or the code that shows it, or what is missing."),
), "Every acceptance criterion, once.")

var findingsSchema = listOf(object(
	"severity", oneOf("How bad it is.", "info", "warning", "error", "critical"),
	"category", oneOf("What it is about.", "correctness", "security", "performance", "style", "tests", "design", "requirements"),
	"rule?", typed("string", "The short name of the rule that is broken, if there is one."),
	"message", typed("string", "What goes wrong, and when."),
	"file?", typed("string", "The file's path."),
	"line?", typed("integer", "The first line, in the file as it is now."),
	"end_line?", typed("integer", "The last line."),
	"confidence", typed("number", "How sure you are that it is a real problem, from 0 to 1."),
	"fix?", object(
		"description", typed("string", "What to do."),
		"replacement?", typed("string", "The new text of exactly these lines."),
		"diff?", typed("string", "A unified diff, where other places change too."),
	),
), "One entry for each new problem. May be empty.")

// What the stages submit. The model is shown the forms of both: the tools come first in a
// prompt, and what two prompts are to have in common begins with them.
var (
	complianceSchema = object("criteria", criteriaSchema)
	feedbackSchema   = object("criteria", criteriaSchema, "uncovered?", uncoveredSchema) // where what no criterion covers is wanted, too

	qualityParts = []any{
		"summary", typed("string", "The change and its quality, in two or three sentences."),
		"risk", typed("integer", "How much harm the change could do in production, from 0 to 100."),
		"needs_human?", typed("string", "Why a person must decide. Empty otherwise."),
		"send_to?", oneOf("Who should act on the findings, where their categories leave it open.", "implement", "plan", "research"),
		"findings", findingsSchema,
	}
	viewSchema    = object(qualityParts...)
	qualitySchema = object(append(slices.Clone(qualityParts), "rulings?", rulingsSchema)...)
	rulingSchema  = object(append(slices.Clone(qualityParts), "rulings", rulingsSchema)...)
)

// The tools by which the stages of a review end.
const (
	submitCriteria = "submit_criteria"
	submitReview   = "submit_review"
)

func (p *phase) review(ctx context.Context) (pipeline.Review, error) {
	run := p.job.Run
	now, stop := p.head(ctx)
	read := change.Read(p.job.Diff)
	reading := read.Divide(wholeChange, now)
	claims, criteria, err := p.claims(ctx)
	if err = errors.Join(err, stop()); err != nil {
		return pipeline.Review{}, err
	}
	v := &reviewing{p: p, change: read, reading: reading, claims: claims}
	if err = stop(); err != nil {
		return pipeline.Review{}, err
	}
	v.assign()
	review := pipeline.Review{Head: run.Head, Ruled: true, Reviewed: v.files(), NotReviewed: reading.Unread}
	if run.Plan != nil && len(run.Plan.Criteria) > 0 {
		if err = v.comply(ctx, &review); err != nil {
			return pipeline.Review{}, err
		}
	}
	for _, c := range claims {
		if c.back {
			review.Back = append(review.Back, c.issue.Fingerprint())
		}
	}
	review.Rulings = ruleCriteria(run, criteria, review.Compliance)
	review.Findings = unmet(run.Plan, review.Compliance, criteria)
	for i := range max(1, len(reading.Parts)) {
		if i > 0 { // each part may take the steps of a phase
			p.limit += p.steps - v.begun
		}
		v.begun = p.steps
		if err := v.part(ctx, i, &review); err != nil {
			return pipeline.Review{}, err
		}
	}
	if len(reading.Parts) == 0 && len(reading.Unread) > 0 && review.NeedsHuman == "" {
		review.NeedsHuman = "nothing of the change could be shown to the reviewer: " + text.FirstLine(unreadList(reading.Unread))
	}
	review.Findings = identify(review.Findings)
	return review, nil
}

// reviewing is a review under way.
type reviewing struct {
	p       *phase
	change  change.Change
	reading change.Reading
	claims  []*claim
	begun   int // steps of the phase when the current part began
}

// assign gives each claim to the part that shows its file.
func (v *reviewing) assign() {
	for _, c := range v.claims {
		for i, part := range v.reading.Parts {
			if slices.Contains(part.Files, c.outcome.File) || slices.Contains(part.Files, c.issue.Finding.File) {
				c.part = i
				break
			}
		}
	}
}

// files are the paths that the parts show.
func (v *reviewing) files() []string {
	var out []string
	for _, part := range v.reading.Parts {
		for _, f := range part.Files {
			if !slices.Contains(out, f) && !slices.ContainsFunc(v.reading.Unread, func(s pipeline.Skipped) bool { return s.Path == f }) {
				out = append(out, f)
			}
		}
	}
	return out
}

// prompt is what both stages begin with: the task, then the change, or a part of it.
func (v *reviewing) prompt(i int) *prompt {
	p := v.p
	w := p.prompt().say("Review a change. What you are to look at in it is said at the end.").task().plan().instructions().mark()
	w.notes().comments().tests()
	if it := p.job.Run.Current(); it != nil && it.Impl != nil {
		w.data("The implementer's words; no evidence", it.Impl.Summary)
	}
	w.claimed()
	w.changed(v.reading, i)
	return w.mark()
}

// changed appends a part of a change, and says what else there is.
func (w *prompt) changed(r change.Reading, i int) {
	n := len(r.Parts)
	if i < n {
		heading := "The change"
		if n > 1 {
			heading = fmt.Sprintf("The change, part %d of %d", i+1, n)
		}
		w.say("The numbers before the lines are those of the file as it is now; lines that are gone have none.")
		w.data(heading, escaped(r.Parts[i].Text))
	} else {
		w.say("The patch shows no text.")
	}
	if n > 1 {
		var b strings.Builder
		for k, part := range r.Parts {
			if k != i {
				fmt.Fprintf(&b, "part %d: %s\n", k+1, strings.Join(part.Files, ", "))
			}
		}
		w.data("Files of the other parts, which are read one after the other like this one; look into them with the tools where they matter", text.ClipBytes(b.String(), 16<<10))
	}
	w.data("Files of the change that cannot be shown", unreadList(r.Unread))
}

// unreadList says what a reviewer is not shown.
func unreadList(list []pipeline.Skipped) string {
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "%s: %s\n", s.Path, s.Why)
	}
	return b.String()
}

// shownChange appends the change for a role that need not read all of it.
func (p *phase) shownChange(ctx context.Context, w *prompt) {
	now, _ := p.head(ctx)
	w.changed(change.Read(p.job.Diff).Divide(wholeChange, now), 0)
}

// comply is stage one: is each criterion met?
func (v *reviewing) comply(ctx context.Context, review *pipeline.Review) error {
	p := v.p
	w := v.prompt(0).lastFault().say("%s", promptText("compliance"))
	s := w.spec("compliance", roleReviewer, system("reviewer"))
	s.tools, s.result, s.forms, s.other = p.examining(), complianceSchema, p.reviewForms(), submitReview
	if p.asksUncovered() {
		s.prompt += "\n\n" + promptText("compliance_uncovered")
		s.result = feedbackSchema
	}
	told := false
	s.accept = func(args json.RawMessage) []string {
		met, problems := checkCompliance(p.job.Run.Plan.Criteria, args)
		p.unshown(ctx, met)
		missing, bad := p.uncovered(args)
		review.Compliance, review.Uncovered = met, missing
		if len(bad) > 0 && told { // a wish that stays unfounded costs no review
			p.agent.opts.Log.Info("left out of a review what no words of the task ask for", "run", p.job.Run.ID, "why", strings.Join(bad, "; "))
			bad = nil
		}
		told = told || len(bad) > 0
		return append(problems, bad...)
	}
	if err := p.converse(ctx, s); err != nil {
		return err
	}
	return p.restore(ctx)
}

// part is stage two for a part of the change.
func (v *reviewing) part(ctx context.Context, i int, review *pipeline.Review) error {
	p := v.p
	d := &docket{}
	for _, c := range v.claims {
		if c.part == i {
			d.claims = append(d.claims, c)
		}
	}
	q, err := v.judge(ctx, i, d, review.Compliance)
	if err != nil {
		return err
	}
	if err := p.restore(ctx); err != nil {
		return err
	}
	for _, c := range d.claims {
		if r, ok := d.rulings[c]; ok {
			review.Rulings = append(review.Rulings, r)
		}
	}
	still, err := p.still(ctx, d)
	if err != nil {
		return err
	}
	review.Findings = append(review.Findings, still...)
	return v.take(ctx, review, q)
}

// take adds what was submitted of a part.
func (v *reviewing) take(ctx context.Context, review *pipeline.Review, q judgement) error {
	if !strings.Contains(review.Summary, q.Summary) {
		review.Summary = strings.TrimSpace(review.Summary + "\n\n" + q.Summary)
	}
	review.Risk = max(review.Risk, q.Risk)
	review.NeedsHuman = firstOf(review.NeedsHuman, q.NeedsHuman)
	if distance(q.SendTo) > distance(review.SendTo) {
		review.SendTo = q.SendTo
	}
	for _, f := range q.Findings {
		if err := v.p.settleFinding(ctx, &f, v.change); err != nil {
			return err
		}
		review.Findings = append(review.Findings, f)
	}
	return nil
}

// distance orders targets by how far they send the work back.
func distance(t pipeline.Target) int {
	return slices.Index([]pipeline.Target{"", pipeline.TargetImplement, pipeline.TargetPlan, pipeline.TargetResearch}, t)
}

func checkCompliance(criteria []pipeline.Criterion, args json.RawMessage) ([]pipeline.Compliance, []string) {
	var in struct {
		Criteria []struct {
			ID       string
			Met      *bool
			Evidence string
		}
	}
	if err := decode(args, &in); err != nil {
		return nil, []string{err.Error()}
	}
	var bad []string
	answers := map[string]pipeline.Compliance{}
	for _, c := range in.Criteria {
		id := strings.TrimSpace(c.ID)
		if !slices.ContainsFunc(criteria, func(k pipeline.Criterion) bool { return k.ID == id }) {
			bad = append(bad, fmt.Sprintf("there is no criterion %q", id))
			continue
		}
		if _, twice := answers[id]; twice {
			bad = append(bad, fmt.Sprintf("criterion %s is answered twice", id))
		}
		if c.Met == nil {
			bad = append(bad, fmt.Sprintf("criterion %s: met is missing", id))
			continue
		}
		if strings.TrimSpace(c.Evidence) == "" {
			bad = append(bad, fmt.Sprintf("criterion %s: evidence is missing", id))
		}
		answers[id] = pipeline.Compliance{Criterion: id, Met: *c.Met, Evidence: strings.TrimSpace(c.Evidence)}
	}
	var out []pipeline.Compliance
	for _, k := range criteria {
		a, ok := answers[k.ID]
		if !ok {
			bad = append(bad, fmt.Sprintf("criterion %s is not answered", k.ID))
		}
		out = append(out, a)
	}
	return out, bad
}

// unmet makes a finding of each criterion that is not met. Its message holds
// nothing of the reviewer's words, so that it is the same in every iteration; one
// that the run knows already keeps its fingerprint.
func unmet(plan *pipeline.Plan, list []pipeline.Compliance, known []*claim) []pipeline.Finding {
	var out []pipeline.Finding
	for _, c := range list {
		if c.Met {
			continue
		}
		text := ""
		for _, k := range plan.Criteria {
			if k.ID == c.Criterion {
				text = k.Text
			}
		}
		f := pipeline.Finding{
			Severity: pipeline.SeverityError, Category: pipeline.CategoryCompliance, Criterion: c.Criterion, Confidence: 1, Fixable: true,
			Message: notMet(c.Criterion, text), Fix: &pipeline.Fix{Description: c.Evidence},
		}
		for _, k := range known {
			if was := k.issue.Finding; was.Criterion == f.Criterion && was.Message == f.Message {
				f.Fingerprint = was.Fingerprint
			}
		}
		out = append(out, f)
	}
	return out
}

func notMet(id, text string) string { return fmt.Sprintf("%s is not met: %s", id, text) }

// judgement is what stage two submits.
type judgement struct {
	Summary    string             `json:"summary"`
	Risk       int                `json:"risk"`
	NeedsHuman string             `json:"needs_human"`
	SendTo     pipeline.Target    `json:"send_to"`
	Findings   []pipeline.Finding `json:"findings"`
}

// judge is stage two: is the change good, and what has become of what was found before?
func (v *reviewing) judge(ctx context.Context, i int, d *docket, met []pipeline.Compliance) (judgement, error) {
	p := v.p
	w := v.prompt(i)
	var b strings.Builder
	for _, c := range met {
		fmt.Fprintf(&b, "%s met=%v %s\n", c.Criterion, c.Met, c.Evidence)
	}
	w.data("Stage one found", b.String())
	w.data("Dismissed by maintainers; not to be reported again unless the code changed", dismissed(p.job.Run)).recall().lastFault()
	w.data("Open findings, to be ruled on", p.claimList(d.claims))
	w.say("%s", promptText("quality")).say("%s", promptText("findings"))
	if len(d.claims) > 0 {
		w.say("%s", promptText("rulings"))
	}
	if n := len(v.reading.Parts); n > 1 {
		w.say("This is part %d of %d: report what you find in the files of this part.", i+1, n)
	}
	var out judgement
	s := w.spec("quality", roleReviewer, system("reviewer"))
	s.tools, s.result, s.forms, s.other = p.examining(), qualitySchema, p.reviewForms(), submitCriteria
	if slices.ContainsFunc(d.claims, func(c *claim) bool { return c.issue.Finding.Severity.Blocks() }) {
		s.result = rulingSchema
	}
	if i > 0 { // a conversation of its own
		s.name += letters(i)
	}
	s.accept = func(args json.RawMessage) []string {
		var problems []string
		out, problems = checkJudgement(args)
		return slices.Concat(problems, d.take(args))
	}
	return out, p.converse(ctx, s)
}

// letters numbers the parts after the first, as the names on a tape want it: b, c, …
func letters(i int) string {
	if i < 26 {
		return string(rune('a' + i))
	}
	return letters(i/26-1) + letters(i%26)
}
