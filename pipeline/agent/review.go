package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
)

// maxFindings caps one review (S22).
const maxFindings = 50

var complianceSchema = object(
	"criteria", listOf(object(
		"id", typed("string", "AC1"),
		"met", typed("boolean", "whether the change meets it"),
		"evidence", typed("string", "the test or the code that shows it, or what is missing"),
	), "every acceptance criterion, once"),
)

var qualitySchema = object(
	"summary", typed("string", "the change and its quality in two or three sentences"),
	"risk", typed("integer", "0 to 100"),
	"needs_human?", typed("string", "why a person must decide; empty otherwise"),
	"send_to?", oneOf("who should act on the findings, where their categories leave it open", "implement", "plan", "research"),
	"findings", listOf(object(
		"severity", oneOf("how bad it is", "info", "warning", "error", "critical"),
		"category", oneOf("what it is about", "correctness", "security", "performance", "style", "tests", "design", "requirements"),
		"rule?", typed("string", "short name of the rule that is broken, if there is one"),
		"message", typed("string", "what goes wrong, and when"),
		"file?", typed("string", "path"),
		"line?", typed("integer", "first line, in the file as it is now"),
		"end_line?", typed("integer", "last line"),
		"confidence", typed("number", "0 to 1"),
		"fix?", object(
			"description", typed("string", "what to do"),
			"replacement?", typed("string", "the new text of exactly these lines"),
			"diff?", typed("string", "unified diff, where other places change too"),
		),
	), "one entry for each problem; may be empty"),
)

func (p *phase) review(ctx context.Context) (pipeline.Review, error) {
	run := p.job.Run
	diff := splitDiff(p.job.Diff)
	review := pipeline.Review{Head: run.Head, Reviewed: diff.reviewed, NotReviewed: diff.skipped}
	if run.Plan != nil && len(run.Plan.Criteria) > 0 {
		var err error
		if review.Compliance, err = p.comply(ctx, diff); err != nil {
			return pipeline.Review{}, err
		}
	}
	q, err := p.judge(ctx, diff, review.Compliance)
	if err != nil {
		return pipeline.Review{}, err
	}
	review.Summary, review.Risk, review.NeedsHuman, review.SendTo = q.Summary, q.Risk, q.NeedsHuman, q.SendTo
	if len(diff.reviewed) == 0 && len(diff.skipped) > 0 && review.NeedsHuman == "" {
		review.NeedsHuman = "nothing of the change could be shown to the reviewer: " + firstLine(diff.skippedList())
	}
	review.Findings = unmet(run.Plan, review.Compliance)
	for _, f := range q.Findings {
		if err := p.settleFinding(ctx, &f, diff); err != nil {
			return pipeline.Review{}, err
		}
		review.Findings = append(review.Findings, f)
	}
	review.Findings = identify(review.Findings)
	return review, nil
}

// change appends what is to be reviewed.
func (w *prompt) change(diff patch) *prompt {
	w.task().plan()
	if it := w.p.job.Run.Current(); it != nil && it.Impl != nil {
		w.data("The implementer's words; no evidence", it.Impl.Summary+"\n"+strings.Join(it.Impl.Addressed, "\n"))
	}
	w.data("The change", diff.text)
	if diff.text == "" {
		w.say("The patch shows no text.")
	}
	return w.data("Files of the change that are not shown above; read them with the tools where they matter", diff.skippedList())
}

// comply is stage one: is each criterion met?
func (p *phase) comply(ctx context.Context, diff patch) ([]pipeline.Compliance, error) {
	var out []pipeline.Compliance
	err := p.converse(ctx, spec{
		name: "compliance", role: roleReviewer, system: system("compliance"),
		prompt: p.prompt().say("Check the following change against its acceptance criteria.").change(diff).String(),
		tools:  p.reading(), result: complianceSchema,
		accept: func(args json.RawMessage) []string {
			var problems []string
			out, problems = checkCompliance(p.job.Run.Plan.Criteria, args)
			return problems
		},
	})
	return out, err
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
// nothing of the reviewer's words, so that it is the same in every iteration.
func unmet(plan *pipeline.Plan, list []pipeline.Compliance) []pipeline.Finding {
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
		out = append(out, pipeline.Finding{
			Severity: pipeline.SeverityError, Category: "compliance", Criterion: c.Criterion, Confidence: 1, Fixable: true,
			Message: fmt.Sprintf("%s is not met: %s", c.Criterion, text), Fix: &pipeline.Fix{Description: c.Evidence},
		})
	}
	return out
}

// judgement is what stage two submits.
type judgement struct {
	Summary    string             `json:"summary"`
	Risk       int                `json:"risk"`
	NeedsHuman string             `json:"needs_human"`
	SendTo     pipeline.Target    `json:"send_to"`
	Findings   []pipeline.Finding `json:"findings"`
}

// judge is stage two: is the change good?
func (p *phase) judge(ctx context.Context, diff patch, met []pipeline.Compliance) (judgement, error) {
	w := p.prompt().say("Review the quality of the following change.").change(diff)
	var b strings.Builder
	for _, c := range met {
		fmt.Fprintf(&b, "%s met=%v %s\n", c.Criterion, c.Met, c.Evidence)
	}
	w.data("Stage one found", b.String())
	w.data("Dismissed by maintainers; not to be reported again unless the code changed", dismissed(p.job.Run)).recall()
	var out judgement
	err := p.converse(ctx, spec{
		name: "quality", role: roleReviewer, system: system("quality"), prompt: w.String(),
		tools: p.reading(), result: qualitySchema,
		accept: func(args json.RawMessage) []string {
			var problems []string
			out, problems = checkJudgement(args)
			return problems
		},
	})
	return out, err
}

func dismissed(run *pipeline.Run) string {
	var b strings.Builder
	for _, is := range run.Findings {
		if is.Finding != nil && is.State == "dismissed" {
			fmt.Fprintf(&b, "%s%s %s\n", is.Finding.Category, where(is.Finding.File, is.Finding.Line, is.Finding.EndLine), is.Finding.Message)
		}
	}
	return b.String()
}

// checkJudgement reads what stage two submits. A severity that does not exist
// becomes error: what cannot be judged is not approved (lessons 5).
func checkJudgement(args json.RawMessage) (judgement, []string) {
	var in judgement
	if err := decode(args, &in); err != nil {
		return in, []string{err.Error()}
	}
	in.Summary, in.NeedsHuman = strings.TrimSpace(in.Summary), strings.TrimSpace(in.NeedsHuman)
	var bad []string
	if in.Summary == "" {
		bad = append(bad, "summary is missing")
	}
	if in.Risk < 0 || in.Risk > 100 {
		bad = append(bad, fmt.Sprintf("risk %d is not within 0 to 100", in.Risk))
	}
	if len(in.Findings) > maxFindings {
		bad = append(bad, fmt.Sprintf("%d findings are too many; report the %d that matter most", len(in.Findings), maxFindings))
	}
	for i := range in.Findings {
		f := &in.Findings[i]
		f.Message, f.Category = strings.TrimSpace(f.Message), strings.ToLower(strings.TrimSpace(f.Category))
		f.Severity = severity(string(f.Severity))
		if f.Message == "" {
			bad = append(bad, fmt.Sprintf("finding %d has no message", i+1))
		}
		if f.Confidence < 0 || f.Confidence > 1 {
			bad = append(bad, fmt.Sprintf("finding %d: confidence %v is not within 0 to 1", i+1, f.Confidence))
		}
		if f.Category == "" || f.Category == "compliance" {
			f.Category = "correctness"
		}
		// These are Forge's to say.
		f.ID, f.Fingerprint, f.Code, f.Criterion = "", "", "", ""
	}
	return in, bad
}

// severity reads a model's word, with the names that people use (R6).
func severity(s string) pipeline.Severity {
	switch s = strings.ToLower(strings.TrimSpace(s)); s {
	case "blocker":
		return pipeline.SeverityCritical
	case "minor":
		return pipeline.SeverityWarning
	}
	if pipeline.Severity(s).Rank() == 0 {
		return pipeline.SeverityError
	}
	return pipeline.Severity(s)
}

// settleFinding checks a finding's place against the file, fills in the code it
// is about, and tries its suggestion. A place that does not exist is dropped, the
// finding never (lessons 8).
func (p *phase) settleFinding(ctx context.Context, f *pipeline.Finding, diff patch) error {
	f.File = strings.TrimPrefix(strings.TrimSpace(f.File), "./")
	var lines []string
	var content string
	if f.File != "" {
		known := diff.files[f.File] || slices.Contains(p.job.Tree, f.File)
		if p.job.Workspace != nil {
			clean, err := inside(f.File)
			var data []byte
			if err == nil {
				data, err = p.job.Workspace.Read(ctx, clean)
			}
			if err != nil && ends(ctx, err) {
				return err
			}
			if err == nil && isText(data) {
				known, content = true, string(data)
				lines = splitLines(content)
			}
		}
		if !known {
			f.Message += fmt.Sprintf(" (reported for %s, which does not exist)", f.File)
			f.File, f.Line, f.EndLine = "", 0, 0
		}
	}
	if f.EndLine == f.Line {
		f.EndLine = 0
	}
	last := max(f.Line, f.EndLine)
	if f.File == "" || f.Line < 1 || f.EndLine != 0 && f.EndLine < f.Line || lines != nil && last > len(lines) {
		f.Line, f.EndLine = 0, 0
	}
	if f.Line > 0 && lines != nil {
		f.Code = strings.Join(lines[f.Line-1:last], "\n")
	}
	if f.Fix != nil {
		f.Fix.Description = strings.TrimSpace(f.Fix.Description)
		if f.Fix.Replacement != nil {
			tryReplacement(f, content)
		}
		if f.Fix.Description == "" && f.Fix.Replacement == nil && f.Fix.Diff == "" {
			f.Fix = nil
		}
	}
	f.Fixable = f.Fix != nil
	return nil
}

// identify numbers findings and gives them their fingerprints. The same finding
// twice is one, with the worse severity and the higher confidence; the same words
// at another place are another (lessons 25).
func identify(list []pipeline.Finding) []pipeline.Finding {
	out := []pipeline.Finding{}
	type place struct {
		fingerprint, file string
		line, end         int
	}
	at := map[place]int{}
	for _, f := range list {
		f.Fingerprint = pipeline.Fingerprint(&f)
		here := place{f.Fingerprint, f.File, f.Line, f.EndLine}
		if i, twice := at[here]; twice {
			if f.Severity.Rank() > out[i].Severity.Rank() {
				out[i].Severity = f.Severity
			}
			out[i].Confidence = max(out[i].Confidence, f.Confidence)
			continue
		}
		at[here] = len(out)
		f.ID = fmt.Sprintf("F%d", len(out)+1)
		out = append(out, f)
	}
	return out
}
